//! What sender and receiver say to each other, as JSON; the data itself goes by PUT.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// A BLAKE3 hash.
pub type Hash = [u8; blake3::OUT_LEN];

/// From the sender, in this order: `Hello`, then for each entry `Entry` and what belongs to it, then `Finish` or
/// `Cancel`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ToReceiver {
    /// What comes.
    Hello {
        /// The last part of the source's name, for a destination that is a folder.
        name: OsString,
        /// Whether it is a folder.
        folder: bool,
        /// In all its files, more or less, for those who watch.
        bytes: u64,
        /// Where it comes from: a receiver of strangers' copies goes on only with what the same origin left.
        origin: Hash,
    },
    /// The next file, folder or link; folders before what is in them.
    Entry(Entry),
    /// The sender compares its file with what the receiver has. That takes long for a large file, so the sender tells how it gets on.
    Comparing {
        /// Bytes compared since the last such message.
        bytes: u64,
    },
    /// The file's data from this byte on; whatever the receiver has beyond it is not wanted.
    Begin {
        /// In bytes.
        from: u64,
    },
    /// The next bytes of the file are in a slot of the receiver's memory.
    Chunk {
        /// Which one.
        slot: u32,
        /// Bytes.
        length: u32,
    },
    /// The file is complete.
    End {
        /// Of all of it.
        hash: Hash,
    },
    /// The file cannot be read to its end, or changed meanwhile: forget it.
    Abandon,
    /// Everything was sent: compare, and give it its name.
    Finish {
        /// Of the tree.
        hash: Hash,
        /// Files that could not be copied.
        failures: u64,
    },
    /// There is nothing to finish.
    Cancel,
}

/// One file, folder or symbolic link.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Relative to the source; empty for the source itself.
    pub path: OsString,
    /// Permission bits.
    pub mode: u32,
    /// What it is.
    pub kind: Kind,
}

impl Entry {
    /// Whether its path leads to a place inside the copy, and is written as we would write it: otherwise a name that came already would
    /// be another one.
    pub fn leads_inside(&self) -> bool {
        let path = Path::new(&self.path);
        let shortest: PathBuf = path.components().collect();
        path.components().all(|part| matches!(part, Component::Normal(_)))
            && shortest.as_os_str() == self.path
    }
}

/// What an entry is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A file.
    File {
        /// In bytes.
        size: u64,
    },
    /// A symbolic link.
    Link {
        /// Where it points to; not followed.
        target: OsString,
    },
}

/// From the receiver.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ToSender {
    /// In answer to `Hello`.
    Ready {
        /// Key of the memory for chunks.
        key: Vec<u8>,
        /// Slots in it.
        slots: u32,
        /// Whether something is left of an earlier attempt, so that each file is answered by `Have`.
        resuming: bool,
    },
    /// What is there of the file that was announced.
    Have {
        /// From its beginning.
        bytes: u64,
        /// Of these bytes.
        hash: Hash,
    },
    /// The slot is free again.
    Credit {
        /// Which one.
        slot: u32,
    },
    /// Everything is in its place.
    Finished,
    /// Nothing more will be done.
    Failed {
        /// In words.
        why: String,
    },
}

/// How much was copied.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Counts {
    pub files: u64,
    pub folders: u64,
    pub links: u64,
    /// Of all files, those included that the receiver had already.
    pub bytes: u64,
    /// That an earlier attempt had copied, compared by hash.
    pub resumed_bytes: u64,
}

/// The hash of a tree: over all its entries in order, with their names, permissions, and hashes or targets. Both sides compute
/// it, each from what it read or wrote itself.
#[derive(Default)]
pub struct TreeHash(blake3::Hasher);

impl TreeHash {
    /// Adds a file with the hash of its content, or a folder or link.
    pub fn add(&mut self, entry: &Entry, content: Option<&Hash>) {
        let path = entry.path.as_encoded_bytes();
        // Lengths before texts, so that no two trees give the same bytes.
        let mut add = |bytes: &[u8]| {
            self.0.update(&(bytes.len() as u64).to_le_bytes());
            self.0.update(bytes);
        };
        add(path);
        add(&entry.mode.to_le_bytes());
        match &entry.kind {
            Kind::Folder => add(b"folder"),
            Kind::File { size } => {
                add(b"file");
                add(&size.to_le_bytes());
            }
            Kind::Link { target } => {
                add(b"link");
                add(target.as_encoded_bytes());
            }
        }
        add(content.map_or(&[], |hash| &hash[..]));
    }

    /// The hash of what was added.
    pub fn finish(&self) -> Hash {
        *self.0.finalize().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    /// Names that are no text survive a message.
    #[test]
    fn any_name_survives_a_message() {
        let path = OsString::from_vec(vec![0xff, b'/', 0x80, b'\n']);
        let entry = Entry { path: path.clone(), mode: 0o4755, kind: Kind::Link { target: path } };
        let text = serde_json::to_vec(&ToReceiver::Entry(entry.clone())).expect("plain data");
        let back: ToReceiver = serde_json::from_slice(&text).expect("the same");
        assert_eq!(back, ToReceiver::Entry(entry));
    }

    /// The tree's hash notices every change of name, permission, kind, content and order.
    #[test]
    fn the_tree_hash_notices_planted_changes() {
        let file =
            |path: &str, mode, size| Entry { path: path.into(), mode, kind: Kind::File { size } };
        let hash = |entries: &[(Entry, Hash)]| {
            let mut tree = TreeHash::default();
            entries.iter().for_each(|(entry, content)| tree.add(entry, Some(content)));
            tree.finish()
        };
        let (a, b) = ((file("a", 0o644, 1), [1; 32]), (file("b", 0o644, 1), [2; 32]));
        let right = hash(&[a.clone(), b.clone()]);
        let wrong = [
            vec![a.clone()],
            vec![b.clone(), a.clone()],
            vec![a.clone(), (file("b", 0o645, 1), [2; 32])],
            vec![a.clone(), (file("b", 0o644, 2), [2; 32])],
            vec![a.clone(), (file("c", 0o644, 1), [2; 32])],
            vec![a.clone(), (file("b", 0o644, 1), [3; 32])],
            vec![a, (Entry { path: "b".into(), mode: 0o644, kind: Kind::Folder }, [2; 32])],
        ];
        for entries in wrong {
            assert_ne!(hash(&entries), right, "{entries:?}");
        }
    }
}
