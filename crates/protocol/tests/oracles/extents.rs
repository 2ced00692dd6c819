//! A plain model of the extent pool: one `bool` per chunk, searched from the bottom.

use bellwire_protocol::{Extent, ExtentPool, GiveError};
use proptest::prelude::*;

/// Three words of the bitmap; the last one is not full.
const CHUNKS: u16 = 150;

#[derive(Clone, Debug)]
pub enum Op {
    Take(u16),
    TakeUpTo(u16),
    /// Gives back the extent at this index among those held.
    Give(usize),
    /// Gives any extent at all.
    GiveAny(Extent),
}

pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let count = prop_oneof![4 => 0u16..12, 1 => 0u16..200, 1 => 60u16..70];
    let near = (0u16..200, 0u16..80).prop_map(|(first, count)| Extent { first, count });
    let far = (any::<u16>(), any::<u16>()).prop_map(|(first, count)| Extent { first, count });
    let op = prop_oneof![
        4 => count.clone().prop_map(Op::Take),
        4 => count.prop_map(Op::TakeUpTo),
        6 => any::<usize>().prop_map(Op::Give),
        1 => prop_oneof![near, far].prop_map(Op::GiveAny),
    ];
    prop::collection::vec(op, 1..200)
}

pub fn agree(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut pool = ExtentPool::new(CHUNKS);
    let mut model = Model { free: vec![true; CHUNKS as usize] };
    let mut held = Vec::new();
    for op in ops {
        match op {
            Op::Take(count) => {
                let got = pool.take(count);
                prop_assert_eq!(got, model.take(count));
                held.extend(got);
            }
            Op::TakeUpTo(count) => {
                let got = pool.take_up_to(count);
                prop_assert_eq!(got, model.take_up_to(count));
                held.extend(got);
            }
            Op::Give(_) if held.is_empty() => {}
            Op::Give(at) => {
                let extent = held.swap_remove(at % held.len());
                prop_assert_eq!(pool.give(extent), model.give(extent));
            }
            Op::GiveAny(extent) => {
                prop_assert_eq!(pool.give(extent), model.give(extent));
            }
        }
        for chunk in 0..CHUNKS {
            prop_assert_eq!(pool.is_free(chunk), model.free[chunk as usize]);
        }
        prop_assert_eq!(pool.free_chunks(), model.free_chunks());
    }
    Ok(())
}

/// Which chunks are free.
pub struct Model {
    pub free: Vec<bool>,
}

impl Model {
    pub fn free_chunks(&self) -> u16 {
        self.free.iter().filter(|&&free| free).count() as u16
    }

    pub fn take(&mut self, count: u16) -> Option<Extent> {
        let runs = self.free.windows(count.max(1) as usize);
        let first = runs.into_iter().position(|run| run.iter().all(|&free| free))? as u16;
        let extent = Extent { first, count };
        self.free[extent.chunks()].fill(false);
        (count > 0).then_some(extent)
    }

    pub fn take_up_to(&mut self, count: u16) -> Option<Extent> {
        (0..16).rev().map(|power| 1 << power).filter(|&n| n <= count).find_map(|n| self.take(n))
    }

    pub fn give(&mut self, extent: Extent) -> Result<(), GiveError> {
        if extent.count == 0 || extent.chunks().end > self.free.len() {
            return Err(GiveError::Outside { extent, chunks: self.free.len() as u16 });
        }
        let chunks = &mut self.free[extent.chunks()];
        if chunks.contains(&true) {
            return Err(GiveError::DoubleFree { extent });
        }
        chunks.fill(true);
        Ok(())
    }
}
