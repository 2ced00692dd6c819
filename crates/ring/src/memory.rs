//! Memory that others may change at any time.
//!
//! Examples are a region that a peer can write by PUT, a pool slot that a sender fills, and a
//! registered buffer on the wire. `&[u8]` must not refer to them: Rust forbids others to change the
//! target of a shared reference. [`View`] only copies. [`Memory`] owns the bytes and keeps them
//! mapped while a view is in use.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use crate::canary::planted;

/// A borrowed window on bytes that others may change meanwhile: copy in, copy out, nothing else.
///
/// Two words, so calls pass it in registers. A larger structure would be stored and then loaded in
/// other widths, which defeats store forwarding.
#[derive(Clone, Copy)]
pub struct View<'a> {
    start: NonNull<u8>,
    /// The length, shifted by [`FLAGS`] bits, with the flags below it.
    extent: usize,
    lifetime: PhantomData<&'a ()>,
}

/// The window can be written.
const WRITABLE: usize = 1;
/// Copies through the window bypass the cache.
const STREAMING: usize = 2;
/// The number of flag bits. No length in memory needs the highest bits.
const FLAGS: u32 = 2;

const _: () = assert!(size_of::<View>() == 2 * size_of::<usize>());

// SAFETY: a view is an address and a length; every access copies and tolerates concurrent writers.
unsafe impl Send for View<'_> {}
// SAFETY: as above; a view has no state of its own.
unsafe impl Sync for View<'_> {}

impl<'a> View<'a> {
    /// A window of `length` bytes at `start`.
    ///
    /// # Safety
    /// The bytes must stay mapped for `'a`, readable, and writable too if [`View::write`] or an
    /// atomic is ever called.
    #[inline(always)]
    pub unsafe fn new(start: NonNull<u8>, length: usize) -> Self {
        Self::with(start, length, WRITABLE)
    }

    #[inline(always)]
    fn with(start: NonNull<u8>, length: usize, flags: usize) -> Self {
        debug_assert!(length.leading_zeros() >= FLAGS, "memory is smaller");
        View { start, extent: (length << FLAGS) | flags, lifetime: PhantomData }
    }

    /// A window of no bytes.
    pub fn empty() -> Self {
        Self::with(NonNull::dangling(), 0, WRITABLE)
    }

    /// A read-only window on ordinary bytes: writing through it panics.
    #[inline(always)]
    pub fn of(bytes: &'a [u8]) -> Self {
        Self::with(NonNull::from(bytes).cast(), bytes.len(), 0)
    }

    /// A writable window on ordinary bytes.
    pub fn of_mut(bytes: &'a mut [u8]) -> Self {
        let length = bytes.len();
        Self::with(NonNull::from(bytes).cast(), length, WRITABLE)
    }

    /// The same window, for a copy that is larger than the cache, or whose target another
    /// processor's cache holds. Writes go straight to memory: that saves reading the target first,
    /// and evicts nothing from the cache.
    #[inline]
    pub fn streaming(self) -> Self {
        View { extent: self.extent | STREAMING, ..self }
    }

    /// Whether copies of this window go straight to memory.
    #[inline]
    pub fn is_streaming(&self) -> bool {
        self.has(STREAMING)
    }

    /// The same window, read-only unless `writable`.
    #[inline(always)]
    pub(crate) fn writable_if(self, writable: bool) -> Self {
        let flag = if writable { WRITABLE } else { 0 };
        View { extent: (self.extent & !WRITABLE) | flag, ..self }
    }

    #[inline(always)]
    fn has(&self, flag: usize) -> bool {
        self.extent & flag != 0
    }

    /// Bytes in the window.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.extent >> FLAGS
    }

    /// Whether the window has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The window's start, if it is writable.
    pub(crate) fn writable_start(&self) -> Option<NonNull<u8>> {
        self.has(WRITABLE).then_some(self.start)
    }

    /// The window's start, for system calls that take an address (cross-memory attach).
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The part from `offset`, `length` bytes long, or `None` if it does not lie inside.
    #[inline(always)]
    pub fn part(&self, offset: usize, length: usize) -> Option<View<'a>> {
        let end = self.len() + usize::from(crate::canary::planted("part-beyond-end"));
        if offset > end || length > end - offset {
            return None;
        }
        // SAFETY: offset <= length of this window, so the result points into the window or one past
        // its end. (A planted fault breaks this: the sanitizer has to notice it.)
        let start = unsafe { self.start.add(offset) };
        Some(Self::with(start, length, self.extent & (WRITABLE | STREAMING)))
    }

    /// The first `length` bytes, and the others. Panics if there are fewer: callers check first.
    #[inline(always)]
    pub fn split_at(&self, length: usize) -> (View<'a>, View<'a>) {
        let parts = self.part(0, length).zip(self.part(length, self.len().wrapping_sub(length)));
        parts.expect("the parts lie inside the view")
    }

    /// Copies bytes out, from `offset` on. Panics if they do not lie inside: callers check first.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let part = self.part(offset, into.len()).expect("read lies inside the view");
        // SAFETY: `part` lies inside mapped memory by the contract of `new`; `into` is exclusively
        // borrowed, and no view of the same bytes can exist beside that borrow. So they do not
        // overlap.
        unsafe { copy_bytes(part.start.as_ptr(), into.as_mut_ptr(), into.len()) }
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = vec![0; self.len()];
        self.read(0, &mut copy);
        copy
    }

    /// Copies bytes in, from `offset` on. Panics if they do not lie inside: callers check first.
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) {
        let part = self.part(offset, from.len()).expect("write lies inside the view");
        assert!(self.has(WRITABLE), "write through a view that is only for reading");
        // SAFETY: as in `read`, with the directions exchanged; writability is part of the contract
        // of `new`.
        unsafe { copy_bytes(from.as_ptr(), part.start.as_ptr(), from.len()) }
    }

    /// Copies all of `from` to the start of this window. Both may be shared and may overlap. Panics
    /// if it does not fit.
    #[inline(always)]
    pub fn copy_from(&self, from: View<'_>) {
        assert!(self.has(WRITABLE), "write through a view that is only for reading");
        assert!(
            from.len() <= self.len(),
            "copy of {} bytes into a view of {}",
            from.len(),
            self.len()
        );
        if from.len() <= SHORT_BYTES {
            // SAFETY: both windows are mapped and long enough; a copy of this length reads all
            // bytes before it writes.
            unsafe { copy_bytes(from.start.as_ptr(), self.start.as_ptr(), from.len()) }
        } else {
            self.copy_long(from);
        }
    }

    /// The rest of [`View::copy_from`].
    #[inline(never)]
    fn copy_long(self, from: View<'_>) {
        if self.overlaps(&from) {
            // SAFETY: both windows are mapped for their lifetimes and long enough.
            unsafe { std::ptr::copy(from.start.as_ptr(), self.start.as_ptr(), from.len()) }
        } else {
            let (source, target) = (from.start.as_ptr(), self.start.as_ptr());
            // SAFETY: both windows are mapped, long enough, and apart.
            unsafe {
                if self.has(STREAMING) || from.has(STREAMING) {
                    copy_streaming(source, target, from.len());
                } else {
                    copy_bytes(source, target, from.len());
                }
            }
        }
    }

    /// As [`View::copy_from`], for windows that do not overlap: a lane's slot and a program's
    /// buffer.
    #[inline(always)]
    pub fn copy_nonoverlapping(&self, from: View<'_>) {
        assert!(self.has(WRITABLE) && from.len() <= self.len());
        debug_assert!(!self.overlaps(&from));
        let (source, target) = (from.start.as_ptr(), self.start.as_ptr());
        // SAFETY: both windows are mapped and long enough. If they overlap after all, only bytes
        // inside them are garbled.
        unsafe {
            if from.len() >= LONG_BYTES && from.has(STREAMING) {
                copy_streaming(source, target, from.len());
            } else {
                copy_bytes(source, target, from.len());
            }
        }
    }

    /// As [`View::copy_from`], but the last word is written after all bytes before it. The last
    /// word is the bytes from the last multiple of 8 on.
    ///
    /// PUTs use this: some targets watch the last bytes instead of taking an event, and network
    /// cards write from front to back. If the end is not a whole word, its bytes become visible in
    /// any order.
    #[inline(always)]
    pub fn deposit(&self, from: View<'_>) {
        assert!(from.len() <= self.len(), "{} bytes into a view of {}", from.len(), self.len());
        let is_aligned = self.start.as_ptr().cast::<u64>().is_aligned();
        if from.len() == 8 && is_aligned && self.has(WRITABLE) {
            // SAFETY: both windows are mapped, and 8 bytes long at least; the target is aligned and
            // may be written.
            return unsafe {
                let word = from.start.as_ptr().cast::<u64>().read_unaligned();
                self.start.as_ptr().cast::<u64>().write_volatile(word);
            };
        }
        self.deposit_parts(from);
    }

    /// The rest of [`View::deposit`].
    #[inline(never)]
    fn deposit_parts(self, from: View<'_>) {
        let end = self.start.as_ptr() as usize + from.len();
        let tail = (end.wrapping_sub(1) % 8 + 1).min(from.len());
        let head = from.len() - tail;
        if head == 0 {
            return self.copy_from(from);
        }
        let mut word = [0; 8];
        // Read before the first write, because the windows may overlap.
        from.read(head, &mut word[..tail]);
        if planted("last-word-first") {
            self.write(head, &word[..tail]);
        }
        self.copy_from(from.part(0, head).expect("a part of all"));
        fence(Ordering::Release);
        self.write(head, &word[..tail]);
    }

    fn overlaps(&self, other: &View<'_>) -> bool {
        let (a, b) = (self.start.as_ptr() as usize, other.start.as_ptr() as usize);
        a < b + other.len() && b < a + self.len()
    }

    /// The 8-byte word at `offset`, or `None` if it is not aligned to 8 bytes or not inside.
    #[inline]
    fn word(&self, offset: usize) -> Option<&'a AtomicU64> {
        let part = self.part(offset, 8)?;
        if !self.has(WRITABLE) || !(part.start.as_ptr() as usize).is_multiple_of(8) {
            return None;
        }
        // SAFETY: aligned, inside, mapped for 'a. Concurrent access to such a word is atomic, or is
        // a racing write of a hostile or careless peer, which only affects the value.
        Some(unsafe { &*part.start.as_ptr().cast::<AtomicU64>() })
    }

    /// Adds `operand` to the little-endian word at `offset` and returns its previous value; `None`
    /// if misaligned or outside.
    pub fn fetch_add(&self, offset: usize, operand: u64) -> Option<u64> {
        Some(self.word(offset)?.fetch_add(operand, Ordering::SeqCst))
    }

    /// Replaces the word at `offset` by `new` if it equals `expected`; returns its previous value;
    /// `None` if misaligned or outside.
    pub fn compare_swap(&self, offset: usize, expected: u64, new: u64) -> Option<u64> {
        let word = self.word(offset)?;
        Some(match word.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(before) | Err(before) => before,
        })
    }

    /// Changes the number of `size` bytes (1, 2, 4 or 8) at `offset`, atomically with respect to
    /// other atomics. Returns its previous value. `None`: it lies outside or is misaligned.
    ///
    /// An unchanged value is not written, so this also reads read-only memory.
    pub fn change(
        &self,
        offset: usize,
        size: usize,
        mut how: impl FnMut(u64) -> u64,
    ) -> Option<u64> {
        let at = self.part(offset, size)?.start.as_ptr();
        if !(at as usize).is_multiple_of(size.max(1)) {
            return None;
        }
        /// For one integer type. AcqRel: a reader of the new number also sees its writer's earlier
        /// writes. Pairs with the same operation on other sides.
        macro_rules! change {
            ($number:ty, $atomic:ty) => {{
                if self.has(WRITABLE) {
                    // SAFETY: inside, aligned, and mapped as long as the view; all other users
                    // access it by atomics or tolerate the race.
                    let place = unsafe { <$atomic>::from_ptr(at.cast()) };
                    let mut old = place.load(Ordering::Acquire);
                    loop {
                        let new = how(u64::from(old)) as $number;
                        if new == old {
                            break;
                        }
                        let (done, seen) = (Ordering::AcqRel, Ordering::Acquire);
                        match place.compare_exchange_weak(old, new, done, seen) {
                            Ok(_) => break,
                            Err(other) => old = other,
                        }
                    }
                    u64::from(old)
                } else {
                    // Rust has no atomic access to memory that is only for reading.
                    // SAFETY: as above.
                    let old = unsafe { at.cast::<$number>().read_volatile() };
                    fence(Ordering::Acquire);
                    let new = how(u64::from(old)) as $number;
                    assert!(new == old, "write through a view that is only for reading");
                    u64::from(old)
                }
            }};
        }
        Some(match size {
            1 => change!(u8, AtomicU8),
            2 => change!(u16, AtomicU16),
            4 => change!(u32, AtomicU32),
            8 => change!(u64, AtomicU64),
            _ => return None,
        })
    }

    /// Reads the word at `offset`. Its writer's earlier writes are visible too (acquire, pairs with
    /// [`View::store`]).
    pub fn load(&self, offset: usize) -> Option<u64> {
        Some(self.word(offset)?.load(Ordering::Acquire))
    }

    /// Writes the word at `offset` after all earlier writes (release, pairs with [`View::load`]).
    pub fn store(&self, offset: usize, value: u64) -> Option<()> {
        self.word(offset)?.store(value, Ordering::Release);
        Some(())
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({} B)", self.len())
    }
}

/// Shortest copy into a lane that may go straight to memory.
pub(crate) const LONG_BYTES: usize = 2048;

/// Longest copy that [`copy_bytes`] reads completely before it writes.
const SHORT_BYTES: usize = 32;

/// Copies `length` bytes between memory that does not overlap.
///
/// Up to 32 bytes take a few moves, all read before the first write: a call of `memcpy` costs as
/// much as a short message. More go through `memcpy`: the compiler cannot see its body, so it can
/// neither split nor repeat a read of foreign memory.
///
/// # Safety
/// Both sides valid for `length` bytes and apart.
#[inline(always)]
pub unsafe fn copy_bytes(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: every branch touches exactly `length` bytes on both sides: two moves that overlap in
    // the middle.
    unsafe {
        // Tested first: the most frequent length of short messages.
        if matches!(length, 8..=16) {
            return pair::<u64>(from, to, length);
        }
        match length {
            0 => {}
            1..=3 => {
                let (a, b, c) = (*from, *from.add(length / 2), *from.add(length - 1));
                *to = a;
                *to.add(length / 2) = b;
                *to.add(length - 1) = c;
            }
            4..=7 => pair::<u32>(from, to, length),
            17..=SHORT_BYTES => pair::<u128>(from, to, length),
            _ => {
                libc::memcpy(to.cast(), from.cast(), length);
            }
        }
    }
}

/// Copies `length` bytes between memory that does not overlap, with stores that bypass the cache.
///
/// # Safety
/// As for [`copy_bytes`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn copy_streaming(from: *const u8, to: *mut u8, length: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const BLOCK: usize = 64;
    let head = to.align_offset(BLOCK).min(length);
    let blocks = (length - head) / BLOCK;
    let tail = head + blocks * BLOCK;
    // SAFETY: head, blocks and tail are the parts of `length`, one after the other; the target of
    // each block is aligned to 64.
    unsafe {
        copy_bytes(from, to, head);
        for at in (head..tail).step_by(BLOCK) {
            let (source, target) = (from.add(at).cast::<__m128i>(), to.add(at).cast::<__m128i>());
            let parts = [0, 1, 2, 3].map(|part| _mm_loadu_si128(source.add(part)));
            for (part, value) in parts.into_iter().enumerate() {
                _mm_stream_si128(target.add(part), value);
            }
        }
        copy_bytes(from.add(tail), to.add(tail), length - tail);
        // Streaming stores are unordered; a later release store must not overtake them.
        _mm_sfence();
    }
}

/// Processors without a known streaming store.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use copy_bytes as copy_streaming;

/// Copies `length` bytes, between one and two sizes of `T`, as two unaligned moves.
///
/// # Safety
/// As for [`copy_bytes`], and `size_of::<T>() <= length <= 2 * size_of::<T>()`.
#[inline(always)]
unsafe fn pair<T: Copy>(from: *const u8, to: *mut u8, length: usize) {
    let last = length - size_of::<T>();
    // SAFETY: both moves lie inside the first `length` bytes by the bound on `length`.
    unsafe {
        let head = from.cast::<T>().read_unaligned();
        let tail = from.add(last).cast::<T>().read_unaligned();
        to.cast::<T>().write_unaligned(head);
        to.add(last).cast::<T>().write_unaligned(tail);
    }
}

/// Bytes with an owner. They stay mapped until the last clone is dropped.
#[derive(Clone)]
pub struct Memory {
    start: NonNull<u8>,
    length: usize,
    writable: bool,
    /// Whether `owner` is a `FromVec`.
    brought: bool,
    owner: Arc<dyn Owner>,
}

// SAFETY: access goes through `View`, which tolerates concurrency; the owner is Send + Sync.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// What keeps bytes mapped and releases them when dropped.
pub trait Owner: Send + Sync {}

struct FromVec(Vec<u8>);
impl Owner for FromVec {}

/// The owner is outside of this library.
struct Elsewhere;
impl Owner for Elsewhere {}

/// Held only to keep the bytes; accessed through the memory.
struct FromWords(#[allow(dead_code)] Vec<u64>);
impl Owner for FromWords {}

impl Memory {
    /// Takes over a vector of the program. [`Memory::into_vec`] gives it back.
    pub fn from_vec(mut bytes: Vec<u8>) -> Memory {
        let start = NonNull::new(bytes.as_mut_ptr()).expect("a vector's pointer is never null");
        let length = bytes.len();
        // A vector does not move its heap bytes when it is moved itself, so `start` stays right.
        Memory { start, length, writable: true, brought: true, owner: Arc::new(FromVec(bytes)) }
    }

    /// `length` zeroed bytes of this process, aligned to words; `None` if the allocation fails.
    pub fn zeroed(length: usize) -> Option<Memory> {
        let count = length.div_ceil(8);
        // Tried first, because the next line would end the process if it failed.
        Vec::<u64>::new().try_reserve_exact(count).ok()?;
        let mut words = vec![0u64; count];
        let start = NonNull::new(words.as_mut_ptr().cast::<u8>())?;
        // As for a vector of bytes: the words stay in place when the vector moves.
        let owner = Arc::new(FromWords(words));
        Some(Memory { start, length, writable: true, brought: false, owner })
    }

    /// Memory of another owner, for instance a C program, which promises to keep it.
    ///
    /// # Safety
    /// `length` bytes at `start` stay mapped, readable and writable until the last clone is
    /// dropped.
    pub unsafe fn foreign(start: NonNull<u8>, length: usize) -> Memory {
        // SAFETY: the caller's promise; there is nothing to release.
        unsafe { Memory::from_owner(start, length, true, Arc::new(Elsewhere)) }
    }

    /// Memory that `owner` keeps mapped.
    ///
    /// # Safety
    /// `length` bytes at `start` stay mapped and readable, and if `writable` writable, until
    /// `owner` is dropped.
    pub unsafe fn from_owner(
        start: NonNull<u8>,
        length: usize,
        writable: bool,
        owner: Arc<dyn Owner>,
    ) -> Memory {
        Memory { start, length, writable, brought: false, owner }
    }

    /// The bytes as a vector: the program's own if this is the last clone, a copy otherwise.
    pub fn into_vec(self) -> Vec<u8> {
        if self.brought && Arc::strong_count(&self.owner) == 1 {
            let raw = Arc::into_raw(self.owner);
            // SAFETY: `brought` is only set by `from_vec`, so the owner behind the trait object is
            // a `FromVec`.
            let owner = unsafe { Arc::from_raw(raw.cast::<FromVec>()) };
            return match Arc::try_unwrap(owner) {
                Ok(alone) => alone.0,
                Err(shared) => View::of(&shared.0).to_vec(),
            };
        }
        self.view().to_vec()
    }

    /// Whether the program brought these bytes ([`Memory::from_vec`]). No peer can map such bytes.
    pub fn is_brought(&self) -> bool {
        self.brought
    }

    /// The first `length` bytes, with the same owner. Panics if there are fewer.
    pub fn prefix(mut self, length: usize) -> Memory {
        assert!(length <= self.length);
        self.length = length;
        self
    }

    /// A window on all bytes.
    #[inline]
    pub fn view(&self) -> View<'_> {
        // SAFETY: the owner keeps the bytes mapped while `self` lives; `writable` is its promise.
        let view = unsafe { View::new(self.start, self.length) };
        view.writable_if(self.writable)
    }

    /// Bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} B)", self.length)
    }
}
