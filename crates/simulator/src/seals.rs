//! What was sealed in a world with a key, as the wire shows it. It knows no key, and judges what
//! functions open: only what was sealed, once, and in time.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use bellwire_wire::frame::keyed::{KeyedHeader, KeyedStep};

/// A sealed frame.
struct Seal {
    hash: u64,
    sealed_ns: u64,
    is_opened: bool,
}

/// All sealed and tagged frames of a world.
pub struct Seals {
    /// How long a key opens anything, in ns.
    end_ns: u64,
    /// By session and counter.
    sealed: HashMap<(u64, u64), Seal>,
    /// Hashes of frames with tags, which may come more than once.
    tagged: HashSet<u64>,
}

impl Seals {
    /// Nothing is sealed yet. `end_ns`: how long a key opens anything, in ns.
    pub fn new(end_ns: u64) -> Seals {
        Seals { end_ns, sealed: HashMap::new(), tagged: HashSet::new() }
    }

    /// A function sends a frame.
    ///
    /// # Errors
    /// Its session had a frame with this counter before, or it has no key at all.
    pub fn leaves(&mut self, bytes: &[u8], now_ns: u64) -> Result<(), String> {
        let header = KeyedHeader::parse(bytes).map_err(|_| "a frame leaves that has no key")?;
        let hash = hash(&bytes[..header.length as usize]);
        match header.step {
            KeyedStep::Sealed => {
                let seal = Seal { hash, sealed_ns: now_ns, is_opened: false };
                if self.sealed.insert((header.session, header.counter), seal).is_some() {
                    return Err(format!("counter {} seals twice", header.counter));
                }
            }
            KeyedStep::Tagged => drop(self.tagged.insert(hash)),
            _ => {}
        }
        Ok(())
    }

    /// A function has opened what came.
    ///
    /// # Errors
    /// Nobody sealed it, or it was altered, or opened before, or is too old.
    pub fn opens(&mut self, bytes: &[u8], now_ns: u64) -> Result<(), String> {
        let header = KeyedHeader::parse(bytes).map_err(|_| "a frame opens that has no key")?;
        let hash = hash(&bytes[..header.length as usize]);
        if header.step == KeyedStep::Tagged {
            let is_known = self.tagged.contains(&hash);
            return if is_known { Ok(()) } else { Err("nobody has made this tag".into()) };
        }
        let seal = self.sealed.get_mut(&(header.session, header.counter));
        let Some(seal) = seal.filter(|seal| seal.hash == hash) else {
            return Err(format!("a frame opens that nobody sealed: {header:?}"));
        };
        if std::mem::replace(&mut seal.is_opened, true) {
            return Err(format!("counter {} opens twice", header.counter));
        }
        let age_ns = now_ns - seal.sealed_ns;
        if age_ns > self.end_ns {
            return Err(format!("a frame opens {age_ns} ns after it was sealed"));
        }
        Ok(())
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
