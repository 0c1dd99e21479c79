//! Looks for the end of a head that comes in pieces, however small, at each byte a fixed number of times: whoever sends
//! byte by byte costs no more by what has come before. Called by the gate.

/// Bytes of the longest empty line, and of the line end before it.
const END_MAX: usize = 3;

/// How far one head has been looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Search {
    /// Bytes of empty lines before the request line, which are part of the head.
    blank: usize,
    /// Bytes in which no head ends.
    scanned: usize,
    /// Bytes up to the last that is known to be of the method.
    method: usize,
    /// A blank stands behind the method.
    is_method_whole: bool,
}

#[cfg(test)]
thread_local! {
    /// Bytes that were looked at, of this thread.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn looked_at(_bytes: usize) {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + _bytes);
}

impl Search {
    /// The length of the head at the start of `held`, its empty line included. `held` begins with what it was at the
    /// last call.
    pub(super) fn end(&mut self, held: &[u8]) -> Option<usize> {
        let is_blank = |byte: &&u8| matches!(byte, b'\r' | b'\n');
        let blank = held[self.blank..].iter().take_while(is_blank).count();
        looked_at(blank + 1);
        self.blank += blank;
        // An empty line is up to three bytes, which may have come one by one.
        let from = self.scanned.saturating_sub(END_MAX).max(self.blank);
        self.scanned = held.len();
        looked_at(held.len() - from);
        memchr::memchr_iter(b'\n', &held[from..]).find_map(|at| match &held[from + at + 1..] {
            [b'\n', ..] => Some(from + at + 2),
            [b'\r', b'\n', ..] => Some(from + at + 3),
            _ => None,
        })
    }

    /// False if what is held, in which [`Search::end`] has found none, cannot become a request line, so that waiting
    /// for more is of no use.
    pub(super) fn may_be_a_request(&mut self, held: &[u8]) -> bool {
        self.method = self.method.max(self.blank);
        while !self.is_method_whole
            && let Some(byte) = held.get(self.method)
        {
            looked_at(1);
            match byte {
                b' ' => self.is_method_whole = true,
                byte if byte.is_ascii_graphic() => self.method += 1,
                _ => return false,
            }
        }
        true
    }
}
