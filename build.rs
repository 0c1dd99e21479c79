//! Gives the two executables, `touchline` and `touchline-bench`, a number of the sources that engine and adapter are
//! made of, by which one build is told from another: in `--version`, and in what the bench reports. Run by cargo for
//! both packages.
//!
//! It is reckoned from the files alone, so it is there without a repository, and right where something has been changed
//! and not committed. Both packages are compiled anew anyway when one of these files changes, so it costs nothing else.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// What both executables have in common, below the workspace's folder.
const FOLDERS: [&str; 4] = ["protocol/src", "engine/core/src", "engine/src", "adapter/src"];

/// And what they are built of.
const LOCK_FILE: &str = "Cargo.lock";

fn main() -> Result<(), Box<dyn Error>> {
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let is_workspace = package.join(FOLDERS[0]).is_dir();
    let root =
        if is_workspace { package.as_path() } else { package.parent().ok_or("no parent")? };
    let mut files = vec![root.join(LOCK_FILE)];
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut hash = Fnv::new();
    for file in &files {
        hash.add(file.strip_prefix(root)?.to_string_lossy().as_bytes());
        hash.add(&fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?);
        println!("cargo::rerun-if-changed={}", file.display());
    }
    println!("cargo::rustc-env=TOUCHLINE_SOURCES={:012x}", hash.0 >> 16);
    Ok(())
}

/// Rust sources below `folder`, without those of tests, which are in neither executable.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        if path.file_stem().is_some_and(|name| name == "tests") {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// FNV-1a of 64 bits: names builds, and guards nothing.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        // The length, so that nothing moves from one file into the next unseen.
        for &byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
