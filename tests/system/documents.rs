//! The documents: whatever one of them links to is there.

use super::structure::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// All documents of the project, by folder.
fn documents() -> Vec<PathBuf> {
    let folders = ["", "docs", "protocol", "bench", "tuning", "engine/core"];
    let mut found: Vec<_> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(root().join(folder)).expect("a folder of the project"))
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    found.sort();
    found
}

/// A text without its blocks of code.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// Where the links of a text lead to.
fn links(text: &str) -> Vec<String> {
    let behind = |part: &str| part.split_once(')').map(|(target, _)| target.to_owned());
    prose(text).split("](").skip(1).filter_map(behind).collect()
}

/// What a heading is linked to by: its letters and digits in lower case, hyphens for spaces.
fn anchors(text: &str) -> BTreeSet<String> {
    let of = |heading: &str| -> String {
        let kept = heading.trim_start_matches('#').trim().chars();
        let kept = kept.filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    prose(text).lines().filter(|line| line.starts_with('#')).map(of).collect()
}

/// What is wrong with a link from a document.
fn wrong(from: &Path, link: &str) -> Option<String> {
    if link.contains("://") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, at)| (file, Some(at)));
    let folder = from.parent().expect("a document lies in a folder");
    let path = if file.is_empty() { from.to_owned() } else { folder.join(file) };
    if !path.exists() {
        return Some(format!("{}: {link} is not there", from.display()));
    }
    let anchor = anchor?;
    let text = fs::read_to_string(&path).expect("only documents have anchors");
    (!anchors(&text).contains(anchor)).then(|| format!("{}: no heading {link}", from.display()))
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let documents = documents();
    let mut linked = 0;
    let mut faults = Vec::new();
    for document in &documents {
        let text = fs::read_to_string(document).expect("documents are text");
        for link in links(&text) {
            linked += 1;
            faults.extend(wrong(document, &link));
        }
    }
    assert!(documents.len() >= 9 && linked >= 30, "{linked} links of {documents:?}");
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("a.md");
    let text = "# One thing\n[x](#one-thing) [y](#other) [z](b.md) [u](https://example.org/)\n\
                ```\n# no heading\n[v](c.md)\n```\n## What is `x`, then\n[w](a.md#what-is-x-then)\n";
    fs::write(&path, text).expect("the folder is ours");
    let faults: Vec<_> = links(text).iter().filter_map(|link| wrong(&path, link)).collect();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("#other") && faults[1].contains("b.md"), "{faults:?}");
}
