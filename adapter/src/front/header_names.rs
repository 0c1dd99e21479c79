//! Names of header fields as hyper takes them. Called by the front on hyper for each field of each reply.
//!
//! To make a name of text is to look at each character, and for one that is no standard name to keep a
//! copy. A service uses few names again and again, so each worker remembers the first that it meets.

use std::cell::RefCell;

use hyper::header::HeaderName;

/// Names that a worker remembers. Any further one is made each time.
const REMEMBERED_MAX: usize = 32;

thread_local! {
    /// As they were written, and as hyper takes them.
    static REMEMBERED: RefCell<Vec<(Box<str>, HeaderName)>> = const { RefCell::new(Vec::new()) };
}

/// The name with this text; `None` for a text that is no name.
pub(super) fn find(text: &str) -> Option<HeaderName> {
    REMEMBERED.with_borrow_mut(|remembered| {
        if let Some((_, name)) = remembered.iter().find(|(known, _)| **known == *text) {
            return Some(name.clone());
        }
        let name = HeaderName::from_bytes(text.as_bytes()).ok()?;
        if remembered.len() < REMEMBERED_MAX {
            remembered.push((text.into(), name.clone()));
        }
        Some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_each_time_and_not_all_are_kept() {
        for round in 0..2 {
            for number in 0..2 * REMEMBERED_MAX {
                let name = find(&format!("X-Name-{number}")).unwrap();
                assert_eq!(name.as_str(), format!("x-name-{number}"), "round {round}");
            }
        }
        assert_eq!(REMEMBERED.with_borrow(Vec::len), REMEMBERED_MAX);
        for text in ["", "a b", "a:", "\u{e9}"] {
            assert_eq!(find(text), None, "{text:?}");
        }
    }
}
