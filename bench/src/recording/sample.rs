//! A small hand-made recording for tests.

use super::rows::{Row, read_messages};
use std::io::Write;

/// Reads rows from text, the way a file is read.
pub(crate) fn parse(text: &str) -> Vec<Row> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    read_messages(file.path()).unwrap()
}

/// Every kind of row, and every cause of an execution out of turn: 4 is older than 11 although its
/// row comes later; 13 passes over the older 11; 9 is introduced by no row.
pub(crate) fn rows() -> Vec<Row> {
    parse(
        "1.0,1,10,50,100,1\n\
         1.1,1,11,30,100,1\n\
         1.2,1,12,20,103,-1\n\
         1.3,5,0,10,101,1\n\
         1.4,2,10,20,100,1\n\
         1.5,4,10,30,100,1\n\
         1.6,1,4,7,100,1\n\
         1.7,4,4,5,100,1\n\
         1.7,4,4,2,100,1\n\
         1.8,7,0,0,-1,-1\n\
         1.8,1,13,9,100,1\n\
         1.9,4,13,9,100,1\n\
         2.0,3,9,40,102,-1\n\
         2.1,3,11,30,100,1\n",
    )
}
