//! Completion queues: rings that cannot overflow.

use bellwire_device::{Buffer, Completion};
use std::mem::{MaybeUninit, offset_of};
use std::ptr::{addr_of, addr_of_mut};

/// Handle of a completion queue: finished descriptors and arrivals, oldest first.
///
/// ```no_run
/// # use bellwire::{CompletionQueue, Function, Result};
/// # fn example(function: &mut Function) -> Result<()> {
/// let queue: CompletionQueue = function.create_completion_queue(64)?;
/// while let Some(done) = function.poll(queue)? {
///     println!("{:?} {}: {}", done.operation, done.context, done.status);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompletionQueue {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// What a poll finds in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Nothing,
    Completion,
    /// A completion, and the poll looks for packets all the same. Requests may complete when they
    /// are posted, so a program that posts one for each would never look.
    Many,
}

/// Finished descriptors, oldest first (C-13, C-14). Each posted descriptor reserves an entry, so
/// its completion always has room. A program that does not poll loses nothing (C-16).
pub(crate) struct CompletionRing {
    /// One slot per entry of the depth. The `length` slots from `oldest` on hold a completion, the
    /// others nothing.
    slots: Box<[Place]>,
    oldest: usize,
    length: usize,
    reserved: usize,
    /// Queue pair sides that complete here.
    pub(crate) users: usize,
    /// Something waited because no entry was free.
    pub(crate) starved: bool,
}

impl CompletionRing {
    pub(crate) fn new(depth: usize) -> Self {
        let slots = (0..depth).map(|_| Place::new()).collect();
        CompletionRing { slots, oldest: 0, length: 0, reserved: 0, users: 0, starved: false }
    }

    pub(crate) fn depth(&self) -> usize {
        self.slots.len()
    }

    /// Whether one more entry is free.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.length + self.reserved < self.slots.len()
    }

    /// Entries that are neither used nor reserved.
    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        self.slots.len() - self.length - self.reserved
    }

    /// Keeps an entry free for later; `false` if there is none.
    #[inline]
    pub(crate) fn reserve(&mut self) -> bool {
        let room = self.has_room();
        self.reserved += room as usize;
        room
    }

    /// Keeps an entry free that [`CompletionRing::has_room`] promised.
    #[inline(always)]
    pub(crate) fn reserve_promised(&mut self) {
        debug_assert!(self.has_room(), "the caller has looked");
        self.reserved += 1;
    }

    /// Gives a reservation up.
    #[inline(always)]
    pub(crate) fn release(&mut self) {
        debug_assert!(self.reserved > 0, "a reservation is released once");
        self.reserved -= 1;
    }

    /// Uses a reservation.
    #[inline(always)]
    pub(crate) fn push_reserved(&mut self, completion: Completion) {
        self.reserved_place().put(completion);
    }

    /// Uses a reservation. The caller writes the completion into the place.
    #[inline(always)]
    pub(crate) fn reserved_place(&mut self) -> &mut Place {
        self.release();
        self.place()
    }

    /// Uses an entry that [`CompletionRing::has_room`] promised.
    #[inline(always)]
    pub(crate) fn push(&mut self, completion: Completion) -> &mut Completion {
        self.place().put(completion)
    }

    #[inline(always)]
    fn place(&mut self) -> &mut Place {
        debug_assert!(self.has_room(), "the ring holds what was reserved and no more");
        let (depth, next) = (self.slots.len(), self.oldest + self.length);
        let next = if next < depth { next } else { next - depth };
        self.length += 1;
        // SAFETY: `oldest` is below the depth and `length` was below it, so `next` is a slot.
        unsafe { self.slots.get_unchecked_mut(next) }
    }

    /// Takes the oldest completion out.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<Taken<'_>> {
        if self.length == 0 {
            return None;
        }
        let (place, next) = (self.oldest, self.oldest + 1);
        self.length -= 1;
        // An empty ring starts again at its first slots, which are in the cache.
        self.oldest = if self.length == 0 || next == self.slots.len() { 0 } else { next };
        Some(Taken(&self.slots[place]))
    }

    /// Whether there is nothing to take.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// A slot for a completion. Its users track whether it holds one.
pub struct Place(MaybeUninit<Completion>);

impl Place {
    fn new() -> Self {
        Place(MaybeUninit::uninit())
    }

    /// Puts a completion into an empty place.
    #[inline(always)]
    pub(crate) fn put(&mut self, completion: Completion) -> &mut Completion {
        // SAFETY: the place is ours.
        unsafe {
            write_in_pieces(self.0.as_mut_ptr(), completion);
            self.0.assume_init_mut()
        }
    }
}

/// A completion that its ring no longer counts, still in its place.
pub struct Taken<'a>(&'a Place);

impl Taken<'_> {
    /// Moves it out in the [`Piece`]s of [`write_in_pieces`]. It may have been stored just before,
    /// and other widths would defeat store forwarding.
    #[inline(always)]
    pub(crate) fn completion(self) -> Completion {
        let mut completion = MaybeUninit::<Completion>::uninit();
        let (from, to) = (self.0.0.as_ptr(), completion.as_mut_ptr());
        // SAFETY: a `Taken` is made once for each completion, of the place that holds it, when the
        // ring stops counting it. All fields are moved: the pieces are those from the queue pair to
        // the length.
        unsafe {
            addr_of_mut!((*to).buffer).write(addr_of!((*from).buffer).read());
            let pieces = addr_of!((*from).queue_pair).cast::<Piece>();
            let places = addr_of_mut!((*to).queue_pair).cast::<Piece>();
            for piece in 0..PIECES - 1 {
                piece::copy(pieces.add(piece), places.add(piece));
            }
            addr_of_mut!((*to).word).write(addr_of!((*from).word).read());
            addr_of_mut!((*to).rest).write(addr_of!((*from).rest).read());
            addr_of_mut!((*to).operation).write(addr_of!((*from).operation).read());
            completion.assume_init()
        }
    }
}

/// A place for one completion that bypasses its ring, for the program that polls for it.
pub(crate) struct CompletionBypass {
    place: Place,
    /// The slot of the queue that is polled, or [`FULL`] or [`CLOSED`]. One word, because every
    /// message reads it.
    queue: u32,
}

/// The bypass holds a completion. No queue has this slot, nor the next one.
const FULL: u32 = u32::MAX;
/// No program polls.
const CLOSED: u32 = u32::MAX - 1;

impl CompletionBypass {
    pub(crate) fn new() -> Self {
        CompletionBypass { place: Place::new(), queue: CLOSED }
    }

    /// Opens the bypass for a completion of `queue`.
    #[inline(always)]
    pub(crate) fn open(&mut self, queue: u32) {
        self.queue = queue;
    }

    /// Whether a completion of `queue` can take the bypass.
    #[inline(always)]
    pub(crate) fn is_open(&self, queue: u32) -> bool {
        self.queue == queue
    }

    /// The place. The caller writes a completion into it.
    #[inline(always)]
    pub(crate) fn place(&mut self) -> &mut Place {
        self.queue = FULL;
        &mut self.place
    }

    /// Whether a completion came since the bypass was opened.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.queue == FULL
    }

    /// Closes the bypass. Returns the completion that came since it was opened.
    #[inline(always)]
    pub(crate) fn close(&mut self) -> Option<Taken<'_>> {
        match std::mem::replace(&mut self.queue, CLOSED) {
            FULL => Some(Taken(&self.place)),
            _ => None,
        }
    }
}

/// Puts a completion in its place, in [`Piece`]s.
///
/// A processor forwards a recent store to a load only if the load lies inside the store. A
/// completion is built of small fields, popped at once, and moved by the polling program. The
/// compiler would move it by wide loads. Wide loads of recent narrow stores defeat store
/// forwarding; the stall costs more than this function.
///
/// No code between building the completion and this call may panic: the compiler would first build
/// it in memory, to drop it on the panic.
///
/// # Safety
/// As for [`std::ptr::write`].
#[inline(always)]
unsafe fn write_in_pieces(slot: *mut Completion, completion: Completion) {
    let Completion { buffer, queue_pair, peer, operation, status, has_immediate, .. } = completion;
    let Completion { context, length, word, rest, .. } = completion;
    let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let how = status as u64 | (has_immediate as u64) << 8;
    // SAFETY: the slot is the caller's; each piece has the layout of a completion there, as
    // asserted below.
    unsafe {
        addr_of_mut!((*slot).buffer).write(buffer);
        let pieces = addr_of_mut!((*slot).queue_pair).cast::<Piece>();
        let pair = two(queue_pair.number, queue_pair.slot);
        piece::write(pieces.add(0), pair, two(queue_pair.generation, peer.node));
        piece::write(pieces.add(1), two(peer.queue_pair, peer.function.into()), how);
        piece::write(pieces.add(2), context, length as u64);
        match rest {
            None => piece::write(pieces.add(3), word, 0),
            Some(_) => {
                addr_of_mut!((*slot).word).write(word);
                addr_of_mut!((*slot).rest).write(rest);
            }
        }
        addr_of_mut!((*slot).operation).write(operation);
    }
}

const _: () = {
    assert!(offset_of!(Completion, buffer) == 0 && size_of::<Option<Buffer>>() == 8);
    assert!(offset_of!(Completion, queue_pair.number) == 8);
    assert!(offset_of!(Completion, queue_pair.slot) == 12);
    assert!(offset_of!(Completion, queue_pair.generation) == 16);
    assert!(offset_of!(Completion, peer.node) == 20);
    assert!(offset_of!(Completion, peer.queue_pair) == 24);
    assert!(offset_of!(Completion, peer.function) == 28);
    assert!(offset_of!(Completion, status) == 32);
    assert!(offset_of!(Completion, has_immediate) == 33);
    assert!(offset_of!(Completion, context) == 40);
    assert!(offset_of!(Completion, length) == 48);
    assert!(offset_of!(Completion, word) == 56);
    assert!(offset_of!(Completion, rest) == 64);
    assert!(offset_of!(Completion, operation) == 8 + PIECES * size_of::<Piece>());
    assert!(cfg!(target_endian = "little"));
};

/// Pieces of a completion between its buffer and its operation.
const PIECES: usize = 4;

use piece::Piece;

/// The pieces in which a completion is moved: two words, the width in which compilers move
/// structures.
#[cfg(target_arch = "x86_64")]
mod piece {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_set_epi64x, _mm_storeu_si128};
    use std::mem::MaybeUninit;

    pub(super) type Piece = MaybeUninit<__m128i>;

    /// # Safety
    /// As for [`std::ptr::write_unaligned`].
    #[inline(always)]
    pub(super) unsafe fn write(to: *mut Piece, low: u64, high: u64) {
        // SAFETY: the caller's promise; every x86-64 processor has the instruction.
        unsafe { _mm_storeu_si128(to.cast(), _mm_set_epi64x(high as i64, low as i64)) }
    }

    /// # Safety
    /// As for [`std::ptr::read_unaligned`] and [`std::ptr::write_unaligned`], of initialized bytes
    /// without pointers.
    #[inline(always)]
    pub(super) unsafe fn copy(from: *const Piece, to: *mut Piece) {
        // SAFETY: the caller's promise.
        unsafe { _mm_storeu_si128(to.cast(), _mm_loadu_si128(from.cast())) }
    }
}

/// The pieces in which a completion is moved.
#[cfg(not(target_arch = "x86_64"))]
mod piece {
    pub(super) type Piece = [u64; 2];

    /// # Safety
    /// As for [`std::ptr::write`].
    #[inline(always)]
    pub(super) unsafe fn write(to: *mut Piece, low: u64, high: u64) {
        // SAFETY: the caller's promise.
        unsafe { to.write([low, high]) }
    }

    /// # Safety
    /// As for [`std::ptr::read`] and [`std::ptr::write`], of initialized bytes without pointers.
    #[inline(always)]
    pub(super) unsafe fn copy(from: *const Piece, to: *mut Piece) {
        // SAFETY: the caller's promise.
        unsafe { to.write(from.read()) }
    }
}

impl Drop for CompletionRing {
    fn drop(&mut self) {
        while let Some(taken) = self.take() {
            drop(taken.completion());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring has as much room as is neither used nor reserved.
    #[test]
    fn room_is_what_is_left() {
        let mut ring = CompletionRing::new(5);
        assert_eq!((ring.depth(), ring.room(), ring.is_empty()), (5, 5, true));
        assert!(ring.reserve() && ring.reserve());
        assert_eq!((ring.depth(), ring.room()), (5, 3));
        ring.push_reserved(numbered(1));
        ring.push(numbered(2));
        assert_eq!((ring.room(), ring.has_room(), ring.is_empty()), (2, true, false));
        assert!(ring.reserve() && ring.reserve() && !ring.reserve());
        assert_eq!((ring.room(), ring.has_room()), (0, false));
        ring.release();
        assert_eq!(ring.room(), 1);
        let taken = ring.take().map(|taken| taken.completion().context);
        assert_eq!((taken, ring.room()), (Some(1), 2));
    }

    fn numbered(context: u64) -> Completion {
        use bellwire_device::{Address, Operation, QueuePair, Status};
        let queue_pair = QueuePair { number: 1, slot: 2, generation: 3 };
        let (operation, status) = (Operation::Send, Status::Success);
        Completion::new(queue_pair, Address::new(4, 5, 6), operation, status, context, 7)
    }
    use bellwire_device::{Address, Operation, QueuePair, Status};

    fn completion(context: u64) -> Completion {
        Completion {
            queue_pair: QueuePair { number: 1, slot: 0, generation: 1 },
            operation: Operation::Receive,
            status: Status::Truncated,
            context,
            length: 3,
            has_immediate: true,
            word: 4,
            peer: Address::new(6, 7, 8),
            buffer: Some(vec![9; 10].into()),
            rest: Some(Box::new(vec![vec![context as u8].into()])),
        }
    }

    /// Completions come out whole and in order, at any fill level and across the wrap. The ring
    /// drops the remaining ones.
    // shows: C-13, C-14
    #[test]
    fn completions_come_out_as_they_went_in() {
        let mut ring = CompletionRing::new(5);
        let (mut pushed, mut popped) = (0, 0);
        for fill in [1, 5, 3, 4, 5, 2, 1, 5, 0, 5, 4] {
            while pushed - popped < fill {
                ring.push(completion(pushed));
                pushed += 1;
            }
            while pushed - popped > fill / 2 {
                let out = ring.take().unwrap().completion();
                assert_eq!(format!("{out:?}"), format!("{:?}", completion(popped)));
                popped += 1;
            }
            assert_eq!(ring.is_empty(), pushed == popped);
        }
        assert!(!ring.is_empty());
        drop(ring);
    }

    /// A reservation keeps its entry free, even if other completions arrive.
    // shows: C-16
    #[test]
    fn reservations_keep_their_entries() {
        let mut ring = CompletionRing::new(3);
        assert!(ring.reserve() && ring.reserve());
        ring.push(completion(0));
        assert!(!ring.has_room() && !ring.reserve());
        ring.push_reserved(completion(1));
        ring.release();
        assert!(ring.has_room());
        ring.push(completion(2));
        assert!(!ring.has_room());
        assert_eq!(ring.take().map(|out| out.completion().context), Some(0));
        assert!(ring.has_room());
    }
}
