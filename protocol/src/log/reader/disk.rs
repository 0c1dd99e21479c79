//! The reader's side of the disk log: frames out of segment files, by large reads. Called by the
//! reader for what the window does not hold.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{ReadError, failed};
use crate::{
    log::{
        MAX_FRAME_BYTES,
        frame::{self, FRAME_HEADER_BYTES, FrameError, FrameHeader},
        segment::{LogIdentity, SegmentError},
        segment_number, segment_path,
    },
    regular_file,
};

/// Bytes read at once: twice the largest frame, so that most frames cost no read of their own.
const READ_BYTES: usize = 2 * MAX_FRAME_BYTES;

/// Bytes of a segment's header that hold anything.
const HEADER_BYTES: usize = 64;

/// Number of the oldest segment in `folder`, and the log it belongs to.
pub(super) fn oldest_segment(folder: &Path) -> Result<(u64, LogIdentity), ReadError> {
    first_of(folder, || oldest_number(folder))
}

/// As [`oldest_segment`], where `oldest` lists the folder.
fn first_of(
    folder: &Path,
    mut oldest: impl FnMut() -> Result<u64, ReadError>,
) -> Result<(u64, LogIdentity), ReadError> {
    let mut number = oldest()?;
    loop {
        match identity_in(folder, number) {
            Err(ReadError::Io { what, path, source })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                let now = oldest()?;
                if now <= number {
                    return Err(failed(what, &path)(source));
                }
                // It was pruned after it was listed.
                number = now;
            }
            found => return found.map(|identity| (number, identity)),
        }
    }
}

/// The log that the segment `number` belongs to, by its header.
fn identity_in(folder: &Path, number: u64) -> Result<LogIdentity, ReadError> {
    let path = segment_path(folder, number);
    let refuse = |source| ReadError::Segment { path: path.clone(), source };
    let file = regular_file::open(&path).map_err(failed("opening", &path))?;
    let length = file.metadata().map_err(failed("reading", &path))?.len();
    if length < HEADER_BYTES as u64 {
        return Err(refuse(SegmentError::TooShort { have: length as usize }));
    }
    let mut bytes = [0; HEADER_BYTES];
    file.read_exact_at(&mut bytes, 0).map_err(failed("reading", &path))?;
    let (identity, found) = LogIdentity::read_header(&bytes).map_err(refuse)?;
    if found != number {
        return Err(refuse(SegmentError::Number { found, expected: number }));
    }
    Ok(identity)
}

/// Checks that the segment is the one of this log that its name says.
fn check_header(
    identity: &LogIdentity,
    number: u64,
    file: &File,
    path: &Path,
) -> Result<(), ReadError> {
    let mut bytes = [0; HEADER_BYTES];
    let refuse = |source| ReadError::Segment { path: path.to_owned(), source };
    match file.read_exact_at(&mut bytes, 0) {
        // No segment is so short: as if there stood nothing.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(refuse(SegmentError::Blank));
        }
        read => read.map_err(failed("reading the header of", path))?,
    }
    identity.check_header(number, &bytes).map_err(refuse)
}

fn oldest_number(folder: &Path) -> Result<u64, ReadError> {
    let mut oldest = None;
    for entry in fs::read_dir(folder).map_err(failed("listing", folder))? {
        let name = entry.map_err(failed("listing", folder))?.file_name();
        let number = name.to_str().and_then(segment_number);
        oldest = oldest.into_iter().chain(number).min();
    }
    oldest.ok_or_else(|| ReadError::NoLog { path: folder.to_owned() })
}

/// The segments of one log, and a stretch of one of them in memory.
pub(super) struct Disk {
    folder: PathBuf,
    identity: LogIdentity,
    open: Option<(u64, File)>,
    buffer: Box<[u64]>,
    start: u64,
    filled: usize,
}

impl Disk {
    pub(super) fn new(folder: PathBuf, identity: LogIdentity) -> Self {
        let buffer = vec![0; READ_BYTES / 8].into_boxed_slice();
        Self { folder, identity, open: None, buffer, start: 0, filled: 0 }
    }

    /// Another one of the same segments, with nothing in memory.
    pub(super) fn another(&self) -> Self {
        Self::new(self.folder.clone(), self.identity)
    }

    /// Where the oldest segment begins that there is now.
    pub(super) fn oldest(&self) -> Result<u64, ReadError> {
        self.begin_of(oldest_number(&self.folder)?)
    }

    /// Where the segment `number` begins, which may be any that a file has in its name.
    pub(super) fn begin_of(&self, number: u64) -> Result<u64, ReadError> {
        self.identity.begin_of(number).map_err(|source| {
            let path = segment_path(&self.folder, number);
            ReadError::Segment { path, source }
        })
    }

    /// Drops what was read ahead, and the open file.
    pub(super) fn forget(&mut self) {
        self.filled = 0;
        self.open = None;
    }

    /// The error of a bad frame at `position`.
    pub(super) fn damaged(&self, position: u64, why: FrameError) -> ReadError {
        ReadError::Damaged {
            path: segment_path(&self.folder, position / self.identity.segment_bytes),
            offset: position % self.identity.segment_bytes,
            position,
            why,
        }
    }

    /// Copies the frame at `position` into `into`, all checks made. Nothing at or above `limit` is
    /// looked at: it may still change.
    pub(super) fn load(
        &mut self,
        position: u64,
        limit: Option<u64>,
        into: &mut [u64],
    ) -> Result<FrameHeader, ReadError> {
        let head = self.bytes(position, FRAME_HEADER_BYTES, limit)?;
        let shape = FrameHeader::read(head)
            .and_then(|header| header.check_shape(position).map(|_| header.length as usize));
        let length = shape.map_err(|why| self.damaged(position, why))?;
        let salt = self.identity.salt;
        let bytes = self.bytes(position, length, limit)?;
        let bytes = &bytes[..length.min(bytes.len())];
        let checked = frame::check(bytes, position, salt);
        bytemuck::cast_slice_mut(into)[..bytes.len()].copy_from_slice(bytes);
        checked.map_err(|why| self.damaged(position, why))
    }

    /// At least `need` bytes from `position` on, or as many as there are.
    fn bytes(
        &mut self,
        position: u64,
        need: usize,
        limit: Option<u64>,
    ) -> Result<&[u8], ReadError> {
        let held = self.start..self.start + self.filled as u64;
        if !(held.contains(&position) && position + need as u64 <= held.end) {
            self.fill(position, limit)?;
        }
        let from = (position - self.start) as usize;
        Ok(&bytemuck::cast_slice(&self.buffer)[from..self.filled])
    }

    fn fill(&mut self, position: u64, limit: Option<u64>) -> Result<(), ReadError> {
        self.start = position;
        self.filled = 0;
        let segment_bytes = self.identity.segment_bytes;
        let offset = position % segment_bytes;
        let rest = segment_bytes - offset;
        let readable = limit.map_or(rest, |limit| rest.min(limit.saturating_sub(position)));
        let number = position / segment_bytes;
        if !self.open_segment(number, position, limit)? {
            return Ok(());
        }
        let Some((_, file)) = &self.open else { return Ok(()) };
        let most = READ_BYTES.min(usize::try_from(readable).unwrap_or(READ_BYTES));
        let target = &mut bytemuck::cast_slice_mut(&mut self.buffer)[..most];
        while self.filled < target.len() {
            match file.read_at(&mut target[self.filled..], offset + self.filled as u64) {
                Ok(0) => break,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let path = segment_path(&self.folder, number);
                    return Err(failed("reading", &path)(error));
                }
            }
        }
        Ok(())
    }

    /// False if there is no such segment and, without a limit, there need not be one. One that there is must have
    /// its header, as a start asks of it.
    fn open_segment(
        &mut self,
        number: u64,
        position: u64,
        limit: Option<u64>,
    ) -> Result<bool, ReadError> {
        if self.open.as_ref().is_some_and(|(open, _)| *open == number) {
            return Ok(true);
        }
        let path = segment_path(&self.folder, number);
        match regular_file::open(&path) {
            Ok(file) => {
                check_header(&self.identity, number, &file, &path)?;
                self.open = Some((number, file));
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let oldest = oldest_number(&self.folder)?;
                if number < oldest {
                    let oldest = self.begin_of(oldest)?;
                    return Err(ReadError::TooOld { position, oldest });
                }
                if limit.is_some() { Err(failed("opening", &path)(error)) } else { Ok(false) }
            }
            Err(error) => Err(failed("opening", &path)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{SEGMENT_BYTES_DEFAULT, SEGMENT_HEADER_BYTES};

    /// The number is in a name, and in a header whose checksum is right.
    #[test]
    fn a_segment_behind_the_last_position_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let identity =
            LogIdentity { log_id: [1; 16], salt: 2, segment_bytes: SEGMENT_BYTES_DEFAULT };
        let mut header = vec![0; SEGMENT_HEADER_BYTES as usize];
        let path = segment_path(folder.path(), u64::MAX);
        identity.write_header(u64::MAX, &mut header);
        fs::write(&path, header).unwrap();
        let mut disk = Disk::new(folder.path().to_owned(), identity);
        let opened = oldest_segment(folder.path()).map(drop);
        let read = disk.open_segment(0, 0, None).map(drop);
        for refused in [opened, disk.oldest().map(drop), read] {
            let refused = refused.unwrap_err().to_string();
            let told = format!("{} offset 0: segment 18446744073709551615 of", path.display());
            assert!(refused.starts_with(&told), "{refused}");
        }
    }

    #[test]
    fn a_segment_that_is_pruned_after_it_was_listed_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let log_id = [1; 16];
        let identity = LogIdentity { log_id, salt: 2, segment_bytes: SEGMENT_BYTES_DEFAULT };
        let mut header = vec![0; SEGMENT_HEADER_BYTES as usize];
        identity.write_header(3, &mut header);
        fs::write(segment_path(folder.path(), 3), header).unwrap();
        let listed = |numbers: &'static [u64]| {
            let mut numbers = numbers.iter().copied();
            first_of(folder.path(), move || Ok(numbers.next().unwrap()))
        };
        let (number, found) = listed(&[1, 2, 3]).unwrap();
        assert_eq!((number, found.log_id), (3, log_id));
        for length in [0, HEADER_BYTES - 1] {
            fs::write(segment_path(folder.path(), 4), vec![0; length]).unwrap();
            let told = listed(&[4]).unwrap_err();
            let too_short = SegmentError::TooShort { have: length };
            assert!(
                matches!(&told, ReadError::Segment { source, .. } if *source == too_short),
                "{told}"
            );
            assert!(told.is_damage());
        }
        // One that is listed again and again, and cannot be opened, is told.
        let told = listed(&[1, 2, 2]).unwrap_err().to_string();
        assert!(told.contains(&segment_path(folder.path(), 2).display().to_string()), "{told}");
    }
}
