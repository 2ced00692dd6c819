//! The paths of one link: interfaces that carry the same channel (H-29). Each frame goes by the path with the fewest frames in
//! flight, so that bandwidth adds up in proportion; losses are judged among the frames of one path, so that a path that is
//! slower than another loses nothing by it.

use super::config::PATHS;

/// A path, as the device numbers it. To the protocol it is only a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PathId(pub u32);

#[derive(Clone, Copy)]
pub(super) struct Path {
    pub id: PathId,
    pub in_flight: u32,
    /// Frames sent so far: the stamp of the next.
    pub stamp: u32,
    /// Latest stamp that is known to have arrived.
    pub arrived: u32,
    /// Only for use when there is no other until then.
    pub suspect_until_ns: u64,
}

pub(super) struct Paths {
    paths: [Path; PATHS],
    count: u8,
    turn: u8,
}

impl Paths {
    pub fn new(first: PathId) -> Self {
        let path = Path { id: first, in_flight: 0, stamp: 1, arrived: 0, suspect_until_ns: 0 };
        Paths { paths: [path; PATHS], count: 1, turn: 0 }
    }

    /// Adds a path unless it is there or there are enough.
    pub fn add(&mut self, id: PathId) {
        if self.iter().any(|path| path.id == id) || self.count as usize == PATHS {
            return;
        }
        let path = Path { id, in_flight: 0, stamp: 1, arrived: 0, suspect_until_ns: 0 };
        self.paths[self.count as usize] = path;
        self.count += 1;
    }

    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.paths[..self.count as usize].iter()
    }

    #[inline]
    pub fn at(&mut self, index: u8) -> &mut Path {
        &mut self.paths[index as usize % PATHS]
    }

    /// The path for the next frame.
    #[inline]
    pub fn choose(&mut self, now_ns: u64) -> u8 {
        if self.count == 1 {
            return 0;
        }
        self.turn = (self.turn + 1) % self.count;
        (0..self.count)
            .map(|index| (index + self.turn) % self.count)
            .min_by_key(|&index| {
                let path = &self.paths[index as usize];
                (path.suspect_until_ns > now_ns, path.in_flight)
            })
            .unwrap_or(0)
    }
}
