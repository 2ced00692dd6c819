//! Buffers that a program posts and a completion returns.

use crate::memory::{Memory, View};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// An owner that keeps memory mapped.
pub trait Holder {
    /// The memory.
    fn memory(&self) -> &Memory;
}

/// A whole vector, or a part of the memory that an `H` keeps mapped.
///
/// One word: its parts stand apart in memory. A piece is posted, taken out of a queue, put in a
/// completion and handed to the program within nanoseconds. A structure of several words would be
/// stored and loaded at each move, in different widths. A load that spans two recent stores defeats
/// store forwarding; that took a third of a message's time.
///
/// The parts' memory is reused, so a program that makes one piece per message allocates nothing.
pub struct Piece<H>(NonNull<Parts<H>>);

struct Parts<H> {
    start: NonNull<u8>,
    length: usize,
    /// The vector's capacity, or the part's offset in its memory.
    extra: usize,
    /// `None` for a vector.
    holder: Option<H>,
}

/// Memory for the parts of a piece, for any holder.
type Place = [u64; 4];

/// Places that a thread keeps for its next pieces.
const SPARE: usize = 64;

thread_local! {
    // Boxed: pieces point to them.
    #[allow(clippy::vec_box)]
    static SPARES: RefCell<Vec<Box<Place>>> = const { RefCell::new(Vec::new()) };
}

// SAFETY: a vector of bytes may go to another thread, and memory is accessed through views, which
// tolerate concurrency.
unsafe impl<H: Send> Send for Piece<H> {}
// SAFETY: as above; shared access to a vector only reads.
unsafe impl<H: Sync> Sync for Piece<H> {}

impl<H> Piece<H> {
    #[inline]
    fn new(parts: Parts<H>) -> Self {
        const {
            assert!(size_of::<Parts<H>>() <= size_of::<Place>(), "a holder is one word");
            assert!(align_of::<Parts<H>>() <= align_of::<Place>());
        }
        // At the end of a thread the list is gone.
        let spare = SPARES.try_with(|spares| spares.borrow_mut().pop());
        let place = spare.ok().flatten().unwrap_or_default();
        let place = NonNull::from(Box::leak(place)).cast::<Parts<H>>();
        // SAFETY: the place is ours, aligned and large enough, as asserted above.
        unsafe { place.write(parts) };
        Piece(place)
    }

    #[inline(always)]
    fn parts(&self) -> &Parts<H> {
        // SAFETY: the place holds parts as long as there is a piece.
        unsafe { self.0.as_ref() }
    }

    /// Takes the parts out and recycles their place.
    #[inline]
    fn into_parts(self) -> Parts<H> {
        let this = ManuallyDrop::new(self);
        // SAFETY: the place holds parts, which are moved out once, and came from a leaked box.
        let (parts, place) =
            unsafe { (this.0.read(), Box::from_raw(this.0.cast::<Place>().as_ptr())) };
        // At the end of a thread the list is gone and the place is freed.
        let _ = SPARES.try_with(|spares| {
            let mut spares = spares.borrow_mut();
            if spares.len() < SPARE {
                spares.push(place);
            }
        });
        parts
    }
}

impl<H: Holder> Piece<H> {
    /// A whole vector.
    #[inline]
    pub fn of_vec(bytes: Vec<u8>) -> Self {
        let mut bytes = ManuallyDrop::new(bytes);
        // SAFETY: a vector's pointer is never null.
        let start = unsafe { NonNull::new_unchecked(bytes.as_mut_ptr()) };
        Piece::new(Parts { start, length: bytes.len(), extra: bytes.capacity(), holder: None })
    }

    /// The part of a holder's memory from `offset`, `length` bytes long. Panics if it does not lie
    /// inside, or is read-only.
    pub fn of_part(holder: H, offset: usize, length: usize) -> Self {
        let part =
            holder.memory().view().part(offset, length).expect("a part lies inside its memory");
        let start = part.writable_start().expect("a piece can be written");
        Piece::new(Parts { start, length, extra: offset, holder: Some(holder) })
    }

    /// Bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.parts().length
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The holder of its memory; `None`: it is a vector.
    #[inline(always)]
    pub fn holder(&self) -> Option<&H> {
        self.parts().holder.as_ref()
    }

    /// Offset of the part in its memory, in bytes; 0 for a vector.
    pub fn offset(&self) -> usize {
        if self.holder().is_some() { self.parts().extra } else { 0 }
    }

    /// The bytes of a vector; `None` for a part of memory, which others may change at any time.
    #[inline]
    pub fn as_slice(&self) -> Option<&[u8]> {
        let Parts { start, length, holder, .. } = self.parts();
        // SAFETY: these are the initialized bytes of the vector that it was made of, borrowed with
        // `self`.
        holder.is_none().then(|| unsafe { std::slice::from_raw_parts(start.as_ptr(), *length) })
    }

    /// The vector that the piece was made from.
    ///
    /// # Errors
    /// Returns a part of memory unchanged.
    pub fn into_vec(self) -> Result<Vec<u8>, Self> {
        if self.holder().is_some() {
            return Err(self);
        }
        Ok(self.into_parts().into_vec())
    }

    /// The bytes. Read-only if they are a vector's.
    #[inline(always)]
    pub fn view(&self) -> View<'_> {
        let Parts { start, length, holder, .. } = self.parts();
        // SAFETY: a vector's bytes are initialized, and memory stays mapped while its holder
        // exists.
        let view = unsafe { View::new(*start, *length) };
        view.writable_if(holder.is_some())
    }

    /// The bytes, for writing.
    #[inline(always)]
    pub fn view_mut(&mut self) -> View<'_> {
        // SAFETY: as above; the vector's bytes are borrowed for writing, and `of_part` has checked
        // that memory is writable.
        unsafe { View::new(self.parts().start, self.parts().length) }
    }
}

impl<H> Parts<H> {
    /// The vector of these parts, which have no holder.
    fn into_vec(self) -> Vec<u8> {
        // SAFETY: the parts came from a vector, and this is its only owner.
        unsafe { Vec::from_raw_parts(self.start.as_ptr(), self.length, self.extra) }
    }
}

impl<H> Drop for Piece<H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the piece is not used again.
        let parts = unsafe { std::ptr::read(self) }.into_parts();
        if parts.holder.is_none() {
            drop(parts.into_vec());
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    struct Kept(Box<Memory>);

    impl Holder for Kept {
        fn memory(&self) -> &Memory {
            &self.0
        }
    }

    /// A vector comes back unchanged, with its capacity, and a part of memory stays one. Places are
    /// reused within their bound, also by another thread that drops the piece.
    #[test]
    fn pieces_come_back_as_they_were() {
        for round in 0..3 * SPARE {
            let mut bytes = Vec::with_capacity(20);
            bytes.extend([round as u8; 10]);
            let (start, capacity) = (bytes.as_ptr(), bytes.capacity());
            let piece: Piece<Kept> = Piece::of_vec(bytes);
            assert_eq!((piece.len(), piece.offset(), piece.is_empty()), (10, 0, false));
            assert_eq!(piece.as_slice(), Some(&[round as u8; 10][..]));
            let bytes = piece.into_vec().ok().expect("it was a vector");
            assert_eq!((bytes.as_ptr(), bytes.capacity(), bytes.len()), (start, capacity, 10));
        }
        let many: Vec<Piece<Kept>> = (0..2 * SPARE).map(|n| Piece::of_vec(vec![0; n])).collect();
        std::thread::spawn(move || drop(many)).join().expect("it only drops");

        let memory = Memory::from_vec(vec![7; 64]);
        let mut part = Piece::of_part(Kept(Box::new(memory.clone())), 16, 8);
        part.view_mut().write(0, &[1, 2]);
        assert_eq!((part.len(), part.offset()), (8, 16));
        assert!(part.as_slice().is_none(), "others may change it");
        let Err(part) = part.into_vec() else { panic!("it is no vector") };
        let mut bytes = [0; 4];
        memory.view().read(15, &mut bytes);
        assert_eq!(bytes, [7, 1, 2, 7]);
        drop(part);
    }

    /// A piece releases its memory when it is dropped, and a view of a vector cannot write to it.
    #[test]
    fn pieces_release_their_memory() {
        let bytes = vec![7; 64];
        let start = bytes.as_ptr();
        let memory = Memory::from_vec(bytes);
        let part = Piece::of_part(Kept(Box::new(memory.clone())), 64, 0);
        assert!(part.is_empty() && part.view().writable_start().is_some());
        drop(part);
        let back = memory.into_vec();
        assert_eq!(back.as_ptr(), start, "no other clone is left");

        let mut vector: Piece<Kept> = Piece::of_vec(vec![1, 2]);
        assert!(vector.view().writable_start().is_none());
        vector.view_mut().write(1, &[3]);
        assert_eq!(vector.view().to_vec(), [1, 3]);
    }
}
