//! Numbers for places: the protocol knows paths by number only.

use bellwire_protocol::reliable::PathId;
use std::collections::HashMap;
use std::hash::Hash;

/// Places that are numbered, at most. More than that send frames to us only if somebody makes addresses up.
const PLACES: usize = 65_536;

/// Places that frames go to and come from, by number.
pub(crate) struct Places<P> {
    known: Vec<P>,
    numbers: HashMap<P, u32>,
    /// The place that was asked for last: frames come in bursts.
    last: Option<(P, u32)>,
}

impl<P: Copy + Eq + Hash> Places<P> {
    pub fn new() -> Places<P> {
        Places { known: Vec::new(), numbers: HashMap::new(), last: None }
    }

    /// The number of a place; `None` if there are too many.
    #[inline]
    pub fn number(&mut self, place: P) -> Option<PathId> {
        if let Some((last, number)) = self.last
            && last == place
        {
            return Some(PathId(number));
        }
        self.look_up(place)
    }

    fn look_up(&mut self, place: P) -> Option<PathId> {
        let number = match self.numbers.get(&place) {
            Some(&number) => number,
            None if self.known.len() < PLACES => {
                let number = self.known.len() as u32;
                self.known.push(place);
                self.numbers.insert(place, number);
                number
            }
            None => return None,
        };
        self.last = Some((place, number));
        Some(PathId(number))
    }

    /// The place of a number that this table gave.
    #[inline]
    pub fn place(&self, path: PathId) -> P {
        self.known[path.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place keeps its number, and made-up places cannot fill the memory.
    #[test]
    fn places_have_numbers_up_to_a_limit() {
        let mut places = Places::new();
        for place in 0..PLACES as u64 {
            let number = places.number(place).expect("a number");
            assert_eq!((places.place(number), places.number(place)), (place, Some(number)));
        }
        assert_eq!(places.number(u64::MAX), None);
        assert_eq!(places.number(3), Some(PathId(3)));
    }
}
