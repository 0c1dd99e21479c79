//! Making folders under names that something else may have: what the system says of that names neither. Used by whoever
//! makes the folders of a data folder, and by who tells what is wrong with one.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::Path,
};

/// Makes a folder that only this user may enter, if it is not there, and likewise those above it.
///
/// # Errors
/// As the system says; where something that is no folder has the name, or that of one above, what it is.
pub fn make(folder: &Path) -> io::Result<()> {
    let made = DirBuilder::new().mode(0o700).recursive(true).create(folder);
    made.map_err(|error| {
        let in_the_way = folder.ancestors().find_map(|path| Some((path, why_no_folder(path)?)));
        match in_the_way {
            Some((path, why)) if path == folder => io::Error::new(error.kind(), why),
            Some((path, why)) => io::Error::new(error.kind(), format!("{}: {why}", path.display())),
            None => error,
        }
    })
}

/// What has the name of a folder and is none; `None` of a folder, and where nothing is or can be seen.
#[must_use]
pub fn why_no_folder(path: &Path) -> Option<&'static str> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
            Some("it is a link, and what it leads to is not there: is the disk mounted?")
        }
        Ok(found) if !found.is_dir() => Some("what is there is no folder"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn what_is_in_the_way_of_a_folder_is_named() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        make(&at("a/b")).unwrap();
        make(&at("a/b")).unwrap();
        assert_eq!(fs::metadata(at("a")).unwrap().permissions().mode() & 0o777, 0o700);
        symlink(at("a"), at("led")).unwrap();
        make(&at("led/c")).unwrap();
        symlink("nowhere", at("link")).unwrap();
        fs::write(at("file"), "").unwrap();
        let no_disk = "it is a link, and what it leads to is not there: is the disk mounted?";
        let no_folder = "what is there is no folder";
        for (name, why) in [("link", no_disk), ("file", no_folder)] {
            assert_eq!(make(&at(name)).unwrap_err().to_string(), why);
            let within = make(&at(name).join("d/e")).unwrap_err().to_string();
            assert_eq!(within, format!("{}: {why}", at(name).display()));
        }
        assert_eq!([at("a"), at("led"), at("none")].map(|path| why_no_folder(&path)), [None; 3]);
        assert!(make(Path::new("/proc/none")).is_err());
    }
}
