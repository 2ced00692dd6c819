//! Memory of the program, used where it is.

use bellwire::{Function, MemoryRegion, Result, Rights};
use bellwire_ring::memory::View;
use std::ptr::NonNull;

/// A stretch of memory that belongs to the program.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: an address and a length; whoever made it promised that the bytes can be used from anywhere.
unsafe impl Send for Span {}

impl Span {
    /// `length` bytes at `start`, which may be null if there are none.
    ///
    /// # Safety
    /// Until all that it is posted for has completed or was cancelled, what it is exposed for is withdrawn, or the endpoint is dropped: the bytes stay mapped, readable, and
    /// writable if they are for receiving, and no Rust reference to them is in use.
    pub unsafe fn new(start: *const u8, length: usize) -> Span {
        Span { start: NonNull::new(start.cast_mut()).unwrap_or(NonNull::dangling()), length }
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where it starts.
    pub fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }

    /// The part from `offset`, at most `length` bytes long.
    #[inline(always)]
    pub(crate) fn part(&self, offset: usize, length: usize) -> Span {
        let offset = offset.min(self.length);
        // SAFETY: inside, or one past the end.
        let start = unsafe { self.start.add(offset) };
        Span { start, length: length.min(self.length - offset) }
    }

    pub(crate) fn read(&self, into: &mut [u8]) {
        let length = self.length.min(into.len());
        self.view().read(0, &mut into[..length]);
    }

    /// Copies as much of `from` as there is room for behind the first `at` bytes; returns the rest.
    #[inline(always)]
    fn write_at<'a>(&self, at: usize, from: View<'a>) -> View<'a> {
        let part = self.part(at, from.len());
        let (now, rest) = from.split_at(part.length);
        part.view().copy_from(now);
        rest
    }

    /// Its bytes, which others may change at any time.
    #[inline(always)]
    pub(crate) fn view(&self) -> View<'_> {
        // SAFETY: mapped by the promise of `new` as long as it is used; written only where it is for receiving.
        unsafe { View::new(self.start, self.length) }
    }

    /// Registers it for one message, in one direction.
    pub(crate) fn register(&self, function: &mut Function, rights: Rights) -> Result<MemoryRegion> {
        // SAFETY: the promise of `new` lasts as long as the message, and the region is released before that ends.
        unsafe { function.register_foreign(self.start, self.length, rights) }
    }
}

/// One stretch of memory or several, as one message: one costs no allocation.
#[derive(Clone, Debug)]
pub struct Spans {
    /// If there are several: nowhere, and as long as all together.
    one: Span,
    /// Instead of `one`, if there are several. In one word, as receives are moved to and fro.
    #[allow(clippy::box_collection)]
    more: Option<Box<Vec<Span>>>,
}

impl Spans {
    /// All of `spans`, one after the other.
    pub fn of(spans: &[Span]) -> Spans {
        if let [one] = spans {
            return Spans::from(*one);
        }
        let length = spans.iter().map(Span::len).sum();
        Spans {
            one: Span { start: NonNull::dangling(), length },
            more: Some(Box::new(spans.into())),
        }
    }

    /// Bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.one.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.one.length == 0
    }

    /// Where it starts; 0 if there are no stretches.
    #[inline]
    pub fn address(&self) -> usize {
        self.parts().first().map_or(0, Span::address)
    }

    #[inline]
    pub(crate) fn parts(&self) -> &[Span] {
        match &self.more {
            None => std::slice::from_ref(&self.one),
            Some(more) => more,
        }
    }

    /// Copies all of it to the start of `into`, which has room.
    #[inline]
    pub(crate) fn read(&self, mut into: &mut [u8]) {
        for span in self.parts() {
            let (now, rest) = into.split_at_mut(span.length);
            span.read(now);
            into = rest;
        }
    }

    /// Copies the bytes from `at` on to `into`, which has room for no more than there are.
    pub(crate) fn read_from(&self, mut at: usize, mut into: &mut [u8]) {
        for span in self.parts() {
            let part = span.part(at, into.len());
            let (now, rest) = into.split_at_mut(part.length);
            part.read(now);
            into = rest;
            at = at.saturating_sub(span.length);
        }
    }

    /// `length` bytes from `at` on: where they are, or brought together in `scratch`.
    pub(crate) fn piece<'a>(&'a self, at: usize, length: usize, scratch: &'a mut [u8]) -> View<'a> {
        match self.more {
            None => self.one.view().part(at, length).expect("a piece lies inside its message"),
            Some(_) => {
                self.read_from(at, &mut scratch[..length]);
                View::of(&scratch[..length])
            }
        }
    }

    /// Copies as much of `from` as there is room for behind the first `at` bytes.
    #[inline(always)]
    pub(crate) fn write_at(&self, at: usize, from: View<'_>) {
        match &self.more {
            None => drop(self.one.write_at(at, from)),
            Some(more) => Self::write_several(more, at, from),
        }
    }

    #[cold]
    fn write_several(spans: &[Span], mut at: usize, mut from: View<'_>) {
        for span in spans {
            from = span.write_at(at, from);
            at = at.saturating_sub(span.length);
        }
    }
}

impl From<Span> for Spans {
    #[inline]
    fn from(one: Span) -> Self {
        Spans { one, more: None }
    }
}
