//! Lists what is to be copied.

use super::message::{Entry, Kind};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::ffi::OsString;
use std::fs::{self, FileType};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// An entry that could not be copied.
#[derive(Debug, Serialize)]
pub struct Failure {
    /// Its path on this side.
    #[serde(serialize_with = "path_as_text")]
    pub path: PathBuf,
    pub why: String,
}

/// Serializes a path as text, lossily if it is not UTF-8.
fn path_as_text<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Like [`path_as_text`], for an optional path.
pub fn as_text<S: serde::Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path_as_text(path.as_deref().unwrap_or(Path::new("")), serializer)
}

/// The source and everything below it.
pub struct Tree {
    /// Each folder comes before its content; names are in byte order. The first entry is the source
    /// itself.
    pub entries: Vec<Entry>,
    /// Sum of the files' sizes.
    pub bytes: u64,
    /// Entries that could not be examined or cannot be copied.
    pub failures: Vec<Failure>,
}

impl Tree {
    /// Lists `source`, which must exist, and everything below it. Links are not followed.
    pub fn walk(source: &Path) -> Result<Tree> {
        let mut tree = Tree { entries: Vec::new(), bytes: 0, failures: Vec::new() };
        let root = entry_of(source, OsString::new())
            .with_context(|| format!("cannot copy {}", source.display()))?;
        let mut pending = vec![root];
        while let Some(entry) = pending.pop() {
            match entry.kind {
                Kind::Folder => match below(source, &entry.path, &mut tree.failures) {
                    // A stack: the last entry comes next.
                    Ok(children) => pending.extend(children.into_iter().rev()),
                    Err(error) => {
                        tree.fail(source, &entry.path, &error);
                        if tree.entries.is_empty() {
                            let why = crate::command::sentence(&error);
                            bail!("cannot copy {}: {why}", source.display());
                        }
                        continue;
                    }
                },
                Kind::File { size } => tree.bytes += size,
                Kind::Link { .. } => {}
            }
            tree.entries.push(entry);
        }
        Ok(tree)
    }

    fn fail(&mut self, source: &Path, path: &OsString, error: &anyhow::Error) {
        self.failures
            .push(Failure { path: absolute(source, path), why: crate::command::sentence(error) });
    }
}

pub fn absolute(source: &Path, path: &OsString) -> PathBuf {
    if path.is_empty() { source.to_owned() } else { source.join(path) }
}

/// The entries of a folder, in order.
fn below(source: &Path, path: &OsString, failures: &mut Vec<Failure>) -> Result<Vec<Entry>> {
    let mut names = Vec::new();
    for child in fs::read_dir(absolute(source, path))? {
        names.push(child?.file_name());
    }
    names.sort();
    let mut entries = Vec::with_capacity(names.len());
    for name in names {
        let child = Path::new(path).join(name).into_os_string();
        match entry_of(&absolute(source, &child), child.clone()) {
            Ok(entry) => entries.push(entry),
            Err(error) => failures.push(Failure {
                path: absolute(source, &child),
                why: crate::command::sentence(&error),
            }),
        }
    }
    Ok(entries)
}

fn entry_of(place: &Path, path: OsString) -> Result<Entry> {
    let metadata = fs::symlink_metadata(place)?;
    let mode = metadata.permissions().mode() & 0o7777;
    let file_type = metadata.file_type();
    let kind = if file_type.is_dir() {
        Kind::Folder
    } else if file_type.is_file() {
        Kind::File { size: metadata.size() }
    } else if file_type.is_symlink() {
        Kind::Link { target: fs::read_link(place)?.into_os_string() }
    } else {
        bail!("{} is no file, folder or link, and is left out", what(file_type));
    };
    Ok(Entry { path, mode, kind })
}

fn what(file_type: FileType) -> &'static str {
    match () {
        () if file_type.is_fifo() => "a named pipe",
        () if file_type.is_socket() => "a socket",
        () => "a device",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree is listed in order, folders first. Links are kept as links, and special files are
    /// reported.
    #[test]
    fn trees_are_listed_in_order() {
        let root = std::env::temp_dir().join(format!("bellwire-walk-{}", std::process::id()));
        fs::create_dir_all(root.join("b/c")).expect("folders");
        fs::write(root.join("b/c/file"), "12345").expect("a file");
        fs::write(root.join("a"), "").expect("a file");
        std::os::unix::fs::symlink("/nowhere", root.join("z")).expect("a link");
        let socket = std::os::unix::net::UnixListener::bind(root.join("s")).expect("a socket");

        let tree = Tree::walk(&root).expect("it is there");
        let paths: Vec<_> = tree.entries.iter().map(|e| e.path.to_str().expect("text")).collect();
        assert_eq!(paths, ["", "a", "b", "b/c", "b/c/file", "z"]);
        assert_eq!(tree.bytes, 5);
        assert_eq!(tree.entries[5].kind, Kind::Link { target: "/nowhere".into() });
        assert_eq!(tree.failures.len(), 1);
        assert_eq!(tree.failures[0].path, root.join("s"));

        drop(socket);
        fs::remove_dir_all(&root).expect("ours");
        assert!(Tree::walk(&root).is_err(), "it is gone");
    }
}
