//! The messages between sender and receiver, as JSON; the data itself goes by PUT.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

pub type Hash = [u8; blake3::OUT_LEN];

/// From the sender, in this order: `Hello`, then for each entry `Entry` and its data, then `Finish`
/// or `Cancel`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ToReceiver {
    /// Announces the copy.
    Hello {
        /// The last part of the source's name, used if the destination is a folder.
        name: OsString,
        /// Whether the source is a folder.
        folder: bool,
        /// Approximate bytes of all files, for progress bars.
        bytes: u64,
        /// Where the copy comes from. A receiver of strangers' copies resumes only parts of the
        /// same origin.
        origin: Hash,
    },
    /// The next file, folder or link; a folder comes before its content.
    Entry(Entry),
    /// The sender hashes its file to compare it with the receiver's part. That takes long for a
    /// large file, so the sender reports progress.
    Comparing {
        /// Bytes compared since the last such message.
        bytes: u64,
    },
    /// The file's data follows from this byte on; the receiver drops its own bytes past it.
    Begin {
        /// In bytes.
        from: u64,
    },
    /// The next bytes of the file are in a slot of the receiver's memory.
    Chunk {
        slot: u32,
        /// Bytes.
        length: u32,
    },
    /// The file is complete.
    End {
        /// Hash of the whole file.
        hash: Hash,
    },
    /// The file cannot be read to its end, or changed meanwhile: drop it.
    Abandon,
    /// Everything was sent: compare, and rename the copy to its final name.
    Finish {
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
    /// File, folder or link.
    pub kind: Kind,
}

impl Entry {
    /// Whether its path leads to a place inside the copy and is in normal form. Another form could
    /// name an entry that came already.
    pub fn leads_inside(&self) -> bool {
        let path = Path::new(&self.path);
        let shortest: PathBuf = path.components().collect();
        path.components().all(|part| matches!(part, Component::Normal(_)))
            && shortest.as_os_str() == self.path
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Kind {
    Folder,
    File {
        /// In bytes.
        size: u64,
    },
    Link {
        /// The link's target; not followed.
        target: OsString,
    },
}

/// From the receiver.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ToSender {
    /// The answer to `Hello`.
    Ready {
        /// Key of the memory for chunks.
        key: Vec<u8>,
        /// Number of slots in that memory.
        slots: u32,
        /// Whether an earlier attempt left a part. Then the receiver answers each file with `Have`.
        resuming: bool,
    },
    /// The part of the announced file that the receiver has.
    Have {
        /// Bytes from the file's beginning.
        bytes: u64,
        /// Hash of these bytes.
        hash: Hash,
    },
    /// The slot is free again.
    Credit { slot: u32 },
    /// The copy is complete and has its final name.
    Finished,
    /// The receiver gives up.
    Failed { why: String },
}

/// How much was copied.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Counts {
    pub files: u64,
    pub folders: u64,
    pub links: u64,
    /// Bytes of all files, including those that the receiver already had.
    pub bytes: u64,
    /// Bytes that an earlier attempt had copied, compared by hash.
    pub resumed_bytes: u64,
}

/// The hash of a tree: over all entries in order, with names, permissions, and hashes or targets.
/// Each side computes it from the data that it read or wrote itself.
#[derive(Default)]
pub struct TreeHash(blake3::Hasher);

impl TreeHash {
    /// Adds a file with the hash of its content, or a folder or link.
    pub fn add(&mut self, entry: &Entry, content: Option<&Hash>) {
        let path = entry.path.as_encoded_bytes();
        // Lengths come before texts, so that different trees give different bytes.
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

    /// The hash of all entries added.
    pub fn finish(&self) -> Hash {
        *self.0.finalize().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    /// Names that are not UTF-8 survive a message.
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
