//! Pointers from a program: required ones, and pointers to our objects.
//!
//! | the program passes | answer |
//! |---|---|
//! | null for an attribute, a place, a buffer of some bytes | `-FI_EINVAL` |
//! | an object of another class or provider | `-FI_EINVAL` |
//! | an object that is closed | `-FI_EBADF` from its own calls, `-FI_EINVAL` as an argument |
//! | an object to close that others still use | `-FI_EBUSY` |
//!
//! The header's inline functions call through an object's tables before we see the call. So a
//! closed object stays as a *shell*: its content is gone, and all its tables lead to [`closed`].
//! The data path needs no check for that. The number of shells is bounded: the oldest is freed when
//! there are more than [`SHELLS`], or when they take more than [`SHELL_BYTES`]. Use of an object
//! that was closed before all of these is undefined, and so is closing null, because the header
//! reads it.

use crate::abi::{
    Fid, FidAv, FidCntr, FidCq, FidDomain, FidEp, FidEq, FidFabric, FidMr, FidPep, FidPoll, FidStx,
    FidWait, Ops, Slot, error,
};
use std::alloc::{Layout, dealloc};
use std::collections::VecDeque;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// Most closed objects that stay.
pub const SHELLS: usize = 1024;
/// Most bytes that they take.
pub const SHELL_BYTES: usize = 1 << 20;

/// Returns `-FI_EINVAL` unless all of these pointers are non-null.
macro_rules! given {
    ($($pointer:expr),+ $(,)?) => {
        if $($pointer.is_null())||+ {
            return -$crate::abi::error::EINVAL as _;
        }
    };
}
pub(crate) use given;

/// Whether a program can mean memory by this: its length is possible, and the pointer is not null
/// if there are bytes.
#[inline(always)]
pub fn is_memory(at: *const c_void, length: usize) -> bool {
    if at.is_null() { length == 0 } else { length as isize >= 0 }
}

/// An object that programs have pointers to.
///
/// # Safety
/// It is `repr(C)` and begins with its `Head`. The head begins with a [`Fid`] whose table is `FID`
/// while the object is open.
pub unsafe trait Object {
    /// The structure of the interface.
    type Head: 'static;
    /// Its first table, which no other kind of object has.
    const FID: &'static Ops<6>;
    /// Its head once it is closed.
    const CLOSED: Self::Head;
}

/// Declares a kind of object: its type, its structure, its first table, and the structure once it
/// is closed.
macro_rules! object {
    ($object:ty, $head:ident, $fid:ident, $closed:expr) => {
        // SAFETY: the structure is `repr(C)`, begins with the head, and is made with this table.
        unsafe impl $crate::object::Object for $object {
            type Head = $crate::abi::$head;
            const FID: &'static $crate::abi::Ops<6> = &$fid;
            const CLOSED: $crate::abi::$head = $closed;
        }
    };
}
pub(crate) use object;

/// The object of this kind that a program passes as an argument. `None`: it is null, of another
/// kind, not ours, or closed.
///
/// # Safety
/// Null, an open object of some provider, or one of ours that is open or a shell.
#[inline]
pub unsafe fn object_of<'a, T: Object>(fid: *mut Fid) -> Option<&'a T> {
    // SAFETY: the caller's promise; the table identifies the kind.
    unsafe { (!fid.is_null() && std::ptr::eq((*fid).ops, T::FID)).then(|| &*fid.cast::<T>()) }
}

/// Ends an object that was boxed. Its shell stays for a while.
///
/// # Safety
/// It was made by `Box::into_raw`, and our code no longer uses it.
pub unsafe fn retire<T: Object>(object: *mut T) {
    let layout = Layout::new::<T>();
    // SAFETY: the caller's promise. The head fits, because the object begins with it.
    unsafe {
        object.drop_in_place();
        object.cast::<T::Head>().write(T::CLOSED);
    }
    let mut shells = CLOSED_OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    shells.keep(Shell { at: object.cast(), layout });
}

/// The memory of an object that is closed.
struct Shell {
    at: *mut u8,
    layout: Layout,
}

// SAFETY: only the shell frees this memory.
unsafe impl Send for Shell {}

struct Shells {
    oldest_first: VecDeque<Shell>,
    bytes: usize,
}

static CLOSED_OBJECTS: Mutex<Shells> =
    Mutex::new(Shells { oldest_first: VecDeque::new(), bytes: 0 });

impl Shells {
    fn keep(&mut self, shell: Shell) {
        self.bytes += shell.layout.size();
        self.oldest_first.push_back(shell);
        while self.oldest_first.len() > SHELLS || self.bytes > SHELL_BYTES {
            let Some(Shell { at, layout }) = self.oldest_first.pop_front() else { return };
            self.bytes -= layout.size();
            // SAFETY: it was boxed with this layout. Only a program that was told of the close can
            // still have its address.
            unsafe { dealloc(at, layout) };
        }
    }
}

/// The answer of every call of a closed object. It reads no arguments.
unsafe extern "C" fn closed() -> isize {
    -(error::EBADF as isize)
}

/// The answer of calls that return a text.
unsafe extern "C" fn closed_text() -> *const c_char {
    c"the object is closed".as_ptr()
}

/// The count of a closed counter: zero.
unsafe extern "C" fn closed_count() -> u64 {
    0
}

const CLOSED_CALL: Slot = Slot(closed as *const c_void);
const CLOSED_TEXT: Slot = Slot(closed_text as *const c_void);
const CLOSED_COUNT: Slot = Slot(closed_count as *const c_void);

const fn calls<const N: usize>() -> Ops<N> {
    Ops::new([CLOSED_CALL; N])
}

/// A table of `closed`, with other functions in some slots.
const fn calls_but<const N: usize, const M: usize>(others: [(usize, Slot); M]) -> Ops<N> {
    let mut slots = [CLOSED_CALL; N];
    let mut at = 0;
    while at < M {
        slots[others[at].0] = others[at].1;
        at += 1;
    }
    Ops::new(slots)
}

static ONE: Ops<1> = calls();
static THREE: Ops<3> = calls();
static SIX: Ops<6> = calls();
static SEVEN: Ops<7> = calls();
static NINE: Ops<9> = calls();
static ELEVEN: Ops<11> = calls();
static THIRTEEN: Ops<13> = calls();
static AV: Ops<7> = calls_but([(5, CLOSED_TEXT)]);
static CQ: Ops<7> = calls_but([(6, CLOSED_TEXT)]);
static EQ: Ops<5> = calls_but([(4, CLOSED_TEXT)]);
static CNTR: Ops<7> = calls_but([(0, CLOSED_COUNT), (1, CLOSED_COUNT)]);

/// Of no class, so that no call takes it for an object.
const FID: Fid = Fid { class: 0, context: null_mut(), ops: &SIX };

/// The structures of the interface, once the object is closed.
pub const CLOSED_FABRIC: FidFabric = FidFabric { fid: FID, ops: &SIX, api_version: 0 };
pub const CLOSED_DOMAIN: FidDomain = FidDomain { fid: FID, ops: &ELEVEN, mr: &THREE };
pub const CLOSED_AV: FidAv = FidAv { fid: FID, ops: &AV };
pub const CLOSED_CQ: FidCq = FidCq { fid: FID, ops: &CQ };
pub const CLOSED_EQ: FidEq = FidEq { fid: FID, ops: &EQ };
pub const CLOSED_CNTR: FidCntr = FidCntr { fid: FID, ops: &CNTR };
pub const CLOSED_WAIT: FidWait = FidWait { fid: FID, ops: &ONE };
pub const CLOSED_POLL: FidPoll = FidPoll { fid: FID, ops: &THREE };
pub const CLOSED_PEP: FidPep = FidPep { fid: FID, ops: &SEVEN, cm: &NINE };
pub const CLOSED_STX: FidStx = FidStx { fid: FID, ops: &SEVEN };
pub const CLOSED_MR: FidMr = FidMr { fid: FID, descriptor: null_mut(), key: 0 };
pub const CLOSED_EP: FidEp = FidEp {
    fid: FID,
    ops: &SEVEN,
    cm: &NINE,
    msg: &NINE,
    rma: &NINE,
    tagged: &NINE,
    atomic: &THIRTEEN,
    collective: &ELEVEN,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::class;
    use std::alloc::alloc;

    #[repr(C)]
    struct Thing {
        fid: FidPoll,
        content: Box<u64>,
    }
    static THING: Ops<6> = calls();
    object!(Thing, FidPoll, THING, CLOSED_POLL);

    /// An object is recognized by its table while it is open, and not once it is closed; null is no
    /// object.
    #[test]
    fn closed_objects_are_no_objects() {
        let fid = Fid { class: class::POLL, context: null_mut(), ops: &THING };
        let thing = Thing { fid: FidPoll { fid, ops: &THREE }, content: Box::new(7) };
        let thing = Box::into_raw(Box::new(thing));
        // SAFETY: an object, then its shell, then null.
        unsafe {
            assert_eq!(object_of::<Thing>(thing.cast()).map(|thing| *thing.content), Some(7));
            retire(thing);
            assert!(object_of::<Thing>(thing.cast()).is_none());
            assert_eq!((*thing.cast::<Fid>()).class, 0);
            assert!(object_of::<Thing>(null_mut()).is_none());
        }
    }

    /// Shells stay within both limits, and the newest is kept.
    #[test]
    fn shells_are_bounded() {
        for bytes in [16, 8_000] {
            let mut shells = Shells { oldest_first: VecDeque::new(), bytes: 0 };
            let layout = Layout::from_size_align(bytes, 8).expect("a layout");
            let mut newest = null_mut();
            for _ in 0..3 * SHELLS {
                // SAFETY: the layout has bytes; the shell owns them.
                newest = unsafe { alloc(layout) };
                shells.keep(Shell { at: newest, layout });
                assert!(shells.oldest_first.len() <= SHELLS && shells.bytes <= SHELL_BYTES);
            }
            assert_eq!(shells.bytes, shells.oldest_first.len() * bytes);
            assert!(shells.bytes + bytes > SHELL_BYTES || shells.oldest_first.len() == SHELLS);
            assert_eq!(shells.oldest_first.back().map(|shell| shell.at), Some(newest));
        }
    }
}
