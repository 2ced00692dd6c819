//! Memory of the program, used where it is.

use bellwire::{Error, Function, MemoryRegion, Result, Rights};
use bellwire_ring::memory::View;
use std::ptr::NonNull;

/// Maximum number of spans of one message or access that is not copied.
pub(crate) const MAX_SPANS: usize = 4;

/// A span of memory that belongs to the program.
///
/// ```
/// let mut bytes = [0; 16];
/// // SAFETY: no operation uses it.
/// let span = unsafe { bellwire_tagged::Span::new(bytes.as_mut_ptr(), bytes.len()) };
/// assert_eq!(span.len(), 16);
/// ```
#[must_use]
#[derive(Clone, Copy, Debug)]
pub struct Span {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: an address and a length; the caller of `new` promised that the bytes can be used from
// anywhere.
unsafe impl Send for Span {}

impl Span {
    /// `length` bytes at `start`, which may be null if `length` is 0.
    ///
    /// # Safety
    /// The bytes stay mapped and readable, and writable if they are for receiving, and no Rust
    /// reference to them is in use. This holds until all operations on them have completed or were
    /// cancelled and their exposure is withdrawn, or until the endpoint is dropped.
    pub unsafe fn new(start: *const u8, length: usize) -> Span {
        Span { start: NonNull::new(start.cast_mut()).unwrap_or(NonNull::dangling()), length }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Address of the first byte.
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

    /// Copies as much of `from` as fits behind the first `at` bytes; returns the rest.
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
        // SAFETY: mapped by the promise of `new` as long as it is used; written only if it is for
        // receiving.
        unsafe { View::new(self.start, self.length) }
    }

    /// Registers it for one message, in one direction.
    pub(crate) fn register(&self, function: &mut Function, rights: Rights) -> Result<MemoryRegion> {
        // SAFETY: the promise of `new` lasts as long as the message, and the region is released
        // before that ends.
        unsafe { function.register_foreign(self.start, self.length, rights) }
    }
}

/// One or several spans of memory, as one message. One span costs no allocation.
///
/// ```
/// use bellwire_tagged::{Span, Spans};
///
/// let (head, body) = ([0; 8], [0; 100]);
/// // SAFETY: no operation uses them.
/// let spans = [&head[..], &body[..]].map(|part| unsafe { Span::new(part.as_ptr(), part.len()) });
/// assert_eq!(Spans::of(&spans).len(), 108);
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct Spans {
    /// With several spans: no address, and the sum of their lengths.
    one: Span,
    /// Replaces `one` with several spans. It is one word, because receives are moved around.
    #[allow(clippy::box_collection)]
    more: Option<Box<Vec<Span>>>,
}

impl Spans {
    /// No bytes.
    pub(crate) fn empty() -> Spans {
        Span { start: NonNull::dangling(), length: 0 }.into()
    }

    /// The concatenation of `spans`.
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

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.one.length
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.one.length == 0
    }

    /// Address of the first byte; 0 without spans.
    #[inline]
    pub fn address(&self) -> usize {
        self.spans().first().map_or(0, Span::address)
    }

    /// The only span.
    #[inline(always)]
    pub(crate) fn as_one(&self) -> Option<&Span> {
        self.more.is_none().then_some(&self.one)
    }

    #[inline]
    pub(crate) fn spans(&self) -> &[Span] {
        match &self.more {
            None => std::slice::from_ref(&self.one),
            Some(more) => more,
        }
    }

    /// A copy of its bytes. The span is valid as long as the copy.
    pub(crate) fn copied(&self) -> (Box<[u8]>, Span) {
        let mut copy = vec![0; self.len()].into_boxed_slice();
        self.read(&mut copy);
        let span = Span { start: NonNull::from(&mut *copy).cast(), length: copy.len() };
        (copy, span)
    }

    /// Refuses more spans than `what` may have.
    pub(crate) fn check_count(&self, what: &'static str) -> Result<()> {
        let (length, maximum) = (self.spans().len(), MAX_SPANS);
        if length > maximum { Err(Error::TooLong { length, maximum, what }) } else { Ok(()) }
    }

    /// Copies everything to the start of `into`, which has room.
    #[inline]
    pub(crate) fn read(&self, mut into: &mut [u8]) {
        for span in self.spans() {
            let (now, rest) = into.split_at_mut(span.length);
            span.read(now);
            into = rest;
        }
    }

    /// Copies the bytes from `at` on to `into`, which must not be longer than the rest.
    pub(crate) fn read_from(&self, mut at: usize, mut into: &mut [u8]) {
        for span in self.spans() {
            let part = span.part(at, into.len());
            let (now, rest) = into.split_at_mut(part.length);
            part.read(now);
            into = rest;
            at = at.saturating_sub(span.length);
        }
    }

    /// `length` bytes from `at` on: in place, or gathered in `scratch`.
    pub(crate) fn segment<'a>(
        &'a self,
        at: usize,
        length: usize,
        scratch: &'a mut [u8],
    ) -> View<'a> {
        match self.more {
            None => self.one.view().part(at, length).expect("a segment lies inside its message"),
            Some(_) => {
                self.read_from(at, &mut scratch[..length]);
                View::of(&scratch[..length])
            }
        }
    }

    /// Copies as much of `from` as fits behind the first `at` bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn span(bytes: &mut [u8]) -> Span {
        // SAFETY: the tests keep their bytes.
        unsafe { Span::new(bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Spans know their length, and whether they are one.
    #[test]
    fn spans_know_their_lengths() {
        let (mut a, mut b) = ([1, 2, 3], [4, 5]);
        let (one, other) = (span(&mut a), span(&mut b));
        assert!(!one.is_empty() && span(&mut []).is_empty());
        let both = Spans::of(&[one, other]);
        assert!(both.len() == 5 && !both.is_empty() && Spans::empty().is_empty());
        assert_eq!(both.address(), one.address());
        assert_eq!(Spans::from(other).as_one().map(Span::address), Some(other.address()));
        assert!(both.as_one().is_none());
        // Up to four spans are one message.
        assert!(Spans::of(&[one; MAX_SPANS]).check_count("it").is_ok());
        assert!(Spans::of(&[one; MAX_SPANS + 1]).check_count("it").is_err());
    }

    /// Parts of several spans are read and written across their borders.
    #[test]
    fn parts_cross_borders() {
        let (mut a, mut b) = ([1, 2, 3], [4, 5]);
        let both = Spans::of(&[span(&mut a), span(&mut b)]);
        let mut part = [0; 3];
        both.read_from(1, &mut part);
        assert_eq!(part, [2, 3, 4]);
        let mut scratch = [0; 8];
        assert_eq!(both.segment(2, 3, &mut scratch).to_vec(), [3, 4, 5]);
        both.write_at(2, View::of(&[7, 8, 9, 9]));
        let (copy, whole) = both.copied();
        assert_eq!((&copy[..], whole.len()), (&[1, 2, 7, 8, 9][..], 5));
        let one = Spans::from(whole);
        assert_eq!(one.segment(1, 2, &mut scratch).to_vec(), [2, 7]);
    }
}
