//! Links that another user of the receiver's host swaps in while a copy arrives. He may write where
//! the part is, and where a folder in it is. Nothing outside of the part may change.

use super::copying::{Listener, Stranger, begin, chunk, file, folder, link};
use super::{Folder, unique};
use bellwire::Put;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// One attack. The link leads to the folder outside, or to a file in it for a file.
#[derive(Clone, Copy, Debug)]
struct Swap {
    /// What the link is swapped in for: below the part, or empty for the part.
    of: &'static str,
    /// The steps of the sender before that.
    after: usize,
    /// Whether the copy is a folder, and not a file alone.
    folder: bool,
    /// Whether an earlier attempt left a part.
    resumed: bool,
    /// Whether the sender abandons a file in the folder.
    abandons: bool,
}

/// Steps of a sender; see [`Sender::step`].
const STEPS: usize = 5;
const STEPS_ALONE: usize = 2;
/// The step in which a sender abandons a file.
const ABANDONS: usize = 3;

/// Swaps links in at each moment of a copy. The check takes the name of a planted fault.
pub fn swapped_links(fault: Option<&str>) -> Result<(), String> {
    let mut swaps = Vec::new();
    for (resumed, abandons) in [(false, false), (true, false), (false, true), (true, true)] {
        for of in ["", "sub"] {
            // The sender has made it by then.
            let first = if of == "sub" && !resumed { 2 } else { 0 };
            let swap = |after| Swap { of, after, folder: true, resumed, abandons };
            swaps.extend((first..STEPS).map(swap).filter(|it| !abandons || it.after == ABANDONS));
        }
    }
    let alone = Swap { of: "", after: 0, folder: false, resumed: false, abandons: false };
    swaps.extend((0..STEPS_ALONE).map(|after| Swap { after, ..alone }));
    for swap in swaps {
        attack(swap, fault).map_err(|why| format!("{swap:?}: {why}"))?;
    }
    Ok(())
}

fn attack(swap: Swap, fault: Option<&str>) -> Result<(), String> {
    let place = Folder::new("swap");
    let [into, outside, away] = ["into", "outside", "away"].map(|name| place.path().join(name));
    fs::create_dir(&into).expect("a folder");
    // What the copy has, too, and what it has not.
    fs::create_dir_all(outside.join("sub")).expect("folders");
    for name in ["precious", "a", "other", "sub/precious", "sub/other"] {
        fs::write(outside.join(name), "precious").expect("a file");
        fs::set_permissions(outside.join(name), Permissions::from_mode(0o640)).expect("ours");
    }
    let before = all_in(&outside);

    let device = format!("shm:{}", unique("swap"));
    let _listener = Listener::start_with(&device, &into, fault);
    if swap.resumed {
        let mut earlier = Sender::begin(&device, true)?;
        (0..2).try_for_each(|number| earlier.step(number, swap))?;
        earlier.settle("other")?;
        earlier.settle("sub/other")?;
        // When this is answered, the listener has left the part.
        earlier.stranger.turned_away(&[begin()]);
    }
    let mut sender = Sender::begin(&device, swap.folder)?;
    let parts: Vec<_> = fs::read_dir(&into).expect("ours").flatten().collect();
    let [part] = &parts[..] else { return Err(format!("{} parts", parts.len())) };
    let target = if swap.folder { outside.clone() } else { outside.join("precious") };
    let mut sent = Ok(());
    let steps = if swap.folder { STEPS } else { STEPS_ALONE };
    for number in 0..steps {
        if number == swap.after {
            // A path that ends with a slash would follow the link.
            let place = if swap.of.is_empty() { part.path() } else { part.path().join(swap.of) };
            fs::rename(&place, &away).expect("ours");
            symlink(&target, &place).expect("a link");
        }
        sent = sent.and_then(|()| sender.step(number, swap));
    }
    let after = all_in(&outside);
    if after != before {
        return Err(format!("what is outside changed: {before:?}, then {after:?}"));
    }
    // Until it is sent, a folder in the part is like a leftover, which gives way.
    let gives_way = swap.of == "sub" && swap.after < 2;
    match sent {
        Ok(()) if gives_way => match fs::symlink_metadata(into.join("copy/sub")) {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            other => Err(format!("no folder: {other:?}")),
        },
        Err(why) if !gives_way && why.contains("something else was put into") => Ok(()),
        other => Err(format!("it ended with {other:?}")),
    }
}

/// Permissions and contents of everything below `folder`.
fn all_in(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = fs::symlink_metadata(&path).expect("it is there");
        if metadata.is_dir() {
            left.extend(fs::read_dir(&path).expect("ours").flatten().map(|child| child.path()));
        }
        let content = if metadata.is_file() { fs::read(&path).expect("ours") } else { Vec::new() };
        all.insert(path, (metadata.mode(), content));
    }
    all
}

/// A sender that waits after each step until the listener has dealt with it.
struct Sender {
    stranger: Stranger,
    /// Over all entries, as the listener computes it.
    tree: blake3::Hasher,
    /// Whether it sends a file alone.
    is_alone: bool,
}

impl Sender {
    /// Announces a copy. Returns when its part is there.
    fn begin(device: &str, folder: bool) -> Result<Sender, String> {
        let mut stranger = Stranger::accepted(device);
        let answer = stranger.hello("copy", folder);
        match answer["Ready"].is_object() {
            true => Ok(Sender { stranger, tree: blake3::Hasher::new(), is_alone: !folder }),
            false => Err(answer.to_string()),
        }
    }

    fn step(&mut self, number: usize, swap: Swap) -> Result<(), String> {
        match number {
            0 if self.is_alone => self.begin_file(""),
            1 if self.is_alone => {
                self.end_file("");
                self.finish()
            }
            0 => {
                self.folder("");
                self.settle("a")
            }
            1 => {
                self.folder("sub");
                self.settle("b")
            }
            2 => self.begin_file("sub/precious"),
            ABANDONS => {
                if swap.abandons {
                    self.say(&json!("Abandon"));
                } else {
                    self.end_file("sub/precious");
                }
                self.link("sub/link", "nowhere");
                self.settle("c")
            }
            _ => self.finish(),
        }
    }

    fn folder(&mut self, path: &str) {
        self.say(&folder(path));
        self.add(path, 0o755, &[b"folder", b""]);
    }

    fn link(&mut self, path: &str, target: &str) {
        self.say(&link(path, target));
        self.add(path, 0o777, &[b"link", target.as_bytes(), b""]);
    }

    /// Sends a file of one byte but for its end. Returns when the byte is written.
    fn begin_file(&mut self, path: &str) -> Result<(), String> {
        self.say(&file(path, 1));
        self.say(&begin());
        let to = self.stranger.key.expect("a key").slice(0, 1);
        // It fails only if the listener has refused something, which is heard below.
        let _ = self.stranger.function.post_put(self.stranger.pair, Put::new(b"x".to_vec(), to));
        self.say(&chunk(0, 1));
        self.hear("Credit")
    }

    fn end_file(&mut self, path: &str) {
        let hash = *blake3::hash(b"x").as_bytes();
        self.say(&json!({ "End": { "hash": hash } }));
        self.add(path, 0o644, &[b"file", &1_u64.to_le_bytes(), &hash]);
    }

    /// Sends a file, and so waits until the listener has dealt with everything before it.
    fn settle(&mut self, path: &str) -> Result<(), String> {
        self.begin_file(path)?;
        self.end_file(path);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        let hash = *self.tree.finalize().as_bytes();
        self.say(&json!({ "Finish": { "hash": hash, "failures": 0 } }));
        self.hear("Finished")
    }

    fn say(&mut self, message: &Value) {
        self.stranger.try_to_say(&message.to_string());
    }

    /// Waits for this answer; an error if the copy has failed.
    fn hear(&mut self, answer: &str) -> Result<(), String> {
        loop {
            let heard = self.stranger.try_to_hear()?;
            if let Some(why) = heard["Failed"]["why"].as_str() {
                return Err(why.to_owned());
            }
            if heard == answer || !heard[answer].is_null() {
                return Ok(());
            }
        }
    }

    /// Adds an entry to the hash of the tree.
    fn add(&mut self, path: &str, mode: u32, parts: &[&[u8]]) {
        let first: [&[u8]; 2] = [path.as_bytes(), &mode.to_le_bytes()];
        for part in first.iter().chain(parts) {
            self.tree.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
    }
}
