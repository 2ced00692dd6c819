//! The registered memory of a function, and its keys.

use bellwire_device::{
    Error, FunctionAddress, MemoryRegion, RemoteKey, Result, Rights, Status, fill_random,
};
use std::collections::VecDeque;

#[cfg(test)]
mod guesses;

/// Free indices before one is reused, so that a dead key's index is reused late. Not all indices
/// take turns: each touches tables of this side and of its peers, which should stay in the cache.
const REUSE_AFTER: usize = 64;

/// Regions by index. A key names index and secret; all bits of the secret are compared (C-09).
pub(crate) struct Regions {
    owner: FunctionAddress,
    entries: Vec<Entry>,
    /// Free indices, oldest first.
    free: VecDeque<u16>,
    limit: usize,
    secrets: Secrets,
}

enum Entry {
    Free,
    /// Registered: the program may have given the key to peers.
    Region(MemoryRegion),
    /// Used by our own descriptors only. No peer can reach it, and the device does not know it.
    Private(MemoryRegion),
    /// Lent to one receiver for one long message. Reached by the device only, never by packets.
    Lent,
}

impl Regions {
    /// At most `limit` regions of `owner`. `seed`: the source of keys, instead of the kernel.
    pub(crate) fn new(owner: FunctionAddress, limit: usize, seed: Option<u64>) -> Self {
        let limit = limit.min(1 << 16);
        Regions {
            owner,
            entries: Vec::new(),
            free: VecDeque::new(),
            limit,
            secrets: Secrets::new(seed),
        }
    }

    /// A new key for `length` bytes, with its index reserved. [`Regions::release`] frees it.
    pub(crate) fn reserve(&mut self, length: usize) -> Result<RemoteKey> {
        let key = self.secrets.next()?;
        let has_room = self.entries.len() < self.limit;
        let index = if has_room && self.free.len() < REUSE_AFTER {
            self.entries.push(Entry::Lent);
            self.entries.len() - 1
        } else {
            let hint = "Deregister one, or make fewer and larger ones";
            let limit = self.limit as u64;
            let index = self.free.pop_front();
            index.ok_or(Error::Exhausted { what: "memory regions", limit, hint })? as usize
        };
        self.entries[index] = Entry::Lent;
        let FunctionAddress { node, function } = self.owner;
        Ok(RemoteKey { node, function, index: index as u16, key, length: length as u64 })
    }

    /// Lets descriptors of this side name `region`. If it is `exported`, peers that hold its key
    /// can reach it by packets too.
    pub(crate) fn enter(&mut self, region: MemoryRegion, exported: bool) {
        let index = region.remote_key().index as usize;
        self.entries[index] = if exported { Entry::Region(region) } else { Entry::Private(region) };
    }

    /// Whether the device knows `region`, which is registered here.
    pub(crate) fn is_exported(&self, region: &MemoryRegion) -> bool {
        matches!(self.entries[region.remote_key().index as usize], Entry::Region(_))
    }

    /// Forgets the region behind `key`. The key is then dead.
    pub(crate) fn release(&mut self, key: RemoteKey) {
        self.entries[key.index as usize] = Entry::Free;
        self.free.push_back(key.index);
    }

    /// Whether `region` is registered here (M-05).
    #[inline]
    pub(crate) fn holds(&self, region: &MemoryRegion) -> bool {
        let key = region.remote_key();
        match self.entries.get(key.index as usize) {
            Some(Entry::Region(known) | Entry::Private(known)) => known.remote_key() == key,
            _ => false,
        }
    }

    /// The region that a peer's request names, if the peer has the right `right` there. Checks
    /// secret, bounds and rights in this order: without the secret a peer learns nothing else.
    pub(crate) fn check(&self, request: Request, right: Rights) -> Result<&MemoryRegion, Status> {
        let entry = usize::try_from(request.index).ok().and_then(|index| self.entries.get(index));
        let region = match entry {
            Some(Entry::Region(region)) if region.remote_key().key == request.key => region,
            _ => return Err(Status::WrongKey),
        };
        let length = region.remote_key().length;
        if request.offset > length || request.length > length - request.offset {
            return Err(Status::OutOfBounds);
        }
        if !region.rights().contains(right) {
            return Err(Status::NotPermitted);
        }
        Ok(region)
    }
}

/// The memory that a peer asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) key: u64,
    pub(crate) index: u64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Random words from the kernel. Fetched many at a time: each long message needs one.
struct Secrets {
    pool: [u8; 512],
    used: usize,
    /// On a simulated device words come from this seed instead.
    seed: Option<u64>,
}

impl Secrets {
    fn new(seed: Option<u64>) -> Self {
        Secrets { pool: [0; 512], used: 512, seed }
    }

    /// Never zero.
    fn next(&mut self) -> Result<u64> {
        loop {
            if self.used == self.pool.len() {
                self.fill()?;
            }
            let bytes = &mut self.pool[self.used..self.used + 8];
            let secret = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
            // A secret is given out once and kept nowhere else.
            bytes.fill(0);
            self.used += 8;
            if secret != 0 {
                return Ok(secret);
            }
        }
    }

    fn fill(&mut self) -> Result<()> {
        self.used = 0;
        if let Some(state) = &mut self.seed {
            for word in self.pool.chunks_exact_mut(8) {
                word.copy_from_slice(&splitmix(state).to_le_bytes());
            }
            return Ok(());
        }
        fill_random(&mut self.pool)
    }
}

/// Splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwire_ring::memory::Memory;

    const OWNER: FunctionAddress = FunctionAddress { node: 1, function: 0 };

    /// The generator gives the published numbers of splitmix64 from seed 0, and a simulated
    /// device's keys are those numbers.
    #[test]
    fn seeded_keys_are_splitmix64() {
        let (done, is_done) = std::sync::mpsc::channel();
        let runner = std::thread::spawn(move || {
            check_seeded_keys();
            done.send(()).expect("somebody waits");
        });
        let limit = std::time::Duration::from_secs(8);
        assert!(is_done.recv_timeout(limit).is_ok() || runner.is_finished(), "it does not end");
        runner.join().expect("the keys are right");
    }

    fn check_seeded_keys() {
        let published = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f_u64];
        let mut state = 0;
        assert_eq!([(); 3].map(|()| splitmix(&mut state)), published);
        let mut regions = Regions::new(OWNER, 8, Some(0));
        assert_eq!([(); 3].map(|()| regions.reserve(8).expect("room").key), published);
    }

    /// The kernel's words make keys, many at a time, and none comes twice.
    #[test]
    fn keys_differ_beyond_one_filling_of_the_pool() {
        let mut secrets = Secrets::new(None);
        let keys: std::collections::HashSet<u64> =
            (0..1_000).map(|_| secrets.next().expect("random words")).collect();
        assert_eq!(keys.len(), 1_000);
    }

    /// A word of zeros is no secret: memory that nobody registered holds it, too.
    #[test]
    fn zero_is_no_secret() {
        let mut secrets = Secrets { pool: [0; 512], used: 0, seed: Some(0) };
        assert_eq!(secrets.next().expect("the next filling"), 0xe220_a839_7b1d_cdaf);
    }

    /// There are as many indices as regions may be. The index of a dead key comes again after 64
    /// others, or when there is no new one.
    #[test]
    fn indices_are_used_again_late() {
        let mut few = Regions::new(OWNER, 3, Some(1));
        let keys: Vec<RemoteKey> = (0..3).map(|_| few.reserve(8).expect("room")).collect();
        assert_eq!(keys.iter().map(|key| key.index).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(matches!(few.reserve(8), Err(Error::Exhausted { limit: 3, .. })));
        few.release(keys[1]);
        assert_eq!(few.reserve(8).expect("one is free").index, 1);

        let mut many = Regions::new(OWNER, 1_000, Some(1));
        let mut next = || {
            let key = many.reserve(8).expect("room");
            many.release(key);
            key.index
        };
        let used: Vec<u16> = (0..130).map(|_| next()).collect();
        assert_eq!(used, (0..64).chain(0..64).chain(0..2).collect::<Vec<u16>>());
    }

    /// A request may end where its region ends, and no byte later. Nothing at the end is inside.
    #[test]
    fn bounds_are_exact() {
        let mut regions = Regions::new(OWNER, 8, None);
        let key = regions.reserve(100).expect("room");
        let memory = Memory::from_vec(vec![0; 100]);
        regions.enter(MemoryRegion::new(memory, Rights::REMOTE_READ, key), true);
        let check = |offset, length| {
            let request = Request { key: key.key, index: key.index.into(), offset, length };
            regions.check(request, Rights::REMOTE_READ).map(drop)
        };
        for (offset, length) in [(0, 100), (40, 60), (99, 1), (100, 0)] {
            assert_eq!(check(offset, length), Ok(()), "{length} at {offset}");
        }
        for (offset, length) in [(0, 101), (40, 61), (100, 1), (101, 0), (u64::MAX, 1)] {
            assert_eq!(check(offset, length), Err(Status::OutOfBounds), "{length} at {offset}");
        }
    }
}
