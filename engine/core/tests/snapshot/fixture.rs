//! Snapshots of an earlier day: written once by the build that introduced version 1 of the sections,
//! checked in, and read by every build since. Together they have something in every section.
//!
//! `TOUCHLINE_WRITE_FIXTURE=1` writes them anew: for another version under another name, for this one only
//! as long as nobody has snapshots of it.

use crate::hostile::samples;
use crate::parts::{read, write};
use std::fs;
use std::path::{Path, PathBuf};

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshot/sections-1.bin")
}

#[test]
fn snapshots_of_version_1_are_what_they_were() {
    if std::env::var_os("TOUCHLINE_WRITE_FIXTURE").is_some() {
        fs::write(path(), samples().concat()).unwrap();
    }
    let bytes = fs::read(path()).unwrap();
    let (mut rest, mut count) = (&bytes[..], 0);
    while !rest.is_empty() {
        let (core, left) =
            read(rest, 3).unwrap_or_else(|error| panic!("number {count}: {error:?}"));
        let (one, behind) = rest.split_at(rest.len() - left);
        core.validate().unwrap();
        assert_eq!(write(&core), one, "number {count}");
        (rest, count) = (behind, count + 1);
    }
    assert!(count > 3, "{count}");
}
