//! A table of objects that keep their place.

/// Objects by index; free places are used again.
pub(crate) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
    limit: usize,
}

impl<T> Slab<T> {
    pub(crate) fn new(limit: usize) -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new(), limit }
    }

    /// `None`: the table is full.
    pub(crate) fn insert(&mut self, value: T) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            self.places[index as usize] = Some(value);
            return Some(index);
        }
        if self.places.len() >= self.limit {
            return None;
        }
        self.places.push(Some(value));
        Some(self.places.len() as u32 - 1)
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.places.get(index as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.places.get_mut(index as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let value = self.places.get_mut(index as usize)?.take()?;
        self.free.push(index);
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.places.iter().zip(0..).filter_map(|(place, index)| Some((index, place.as_ref()?)))
    }
}
