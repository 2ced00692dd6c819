//! Objects that programs have pointers to: how they are opened, passed as arguments, and closed.
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
use crate::errno::{Code, Result, call};
use crate::pointer::Out;
use std::alloc::{Layout, dealloc};
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::ops::Deref;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most closed objects that stay.
pub const SHELLS: usize = 1024;
/// Most bytes that they take.
pub const SHELL_BYTES: usize = 1 << 20;

/// What an object does before it ends.
pub trait Close {
    /// Leaves the objects that list it.
    fn close(&self) {}
}

/// An object that programs have pointers to.
///
/// # Safety
/// It is `repr(C)` and begins with its `Head`. The head begins with a [`Fid`] whose table is `FID`
/// while the object is open. Several threads may use it, as far as its domain's threading level
/// allows (fi_domain(3)). Only [`close`] ends it.
pub unsafe trait Object: Close + Sized + 'static {
    /// The structure of the interface.
    type Head: 'static;
    /// Its first table, which no other kind of object has.
    const FID: &'static Ops<6>;
    /// Its head once it is closed.
    const CLOSED: Self::Head;
    /// The number of objects that use it; `None`: of a kind that others do not use.
    fn users(&self) -> Option<&AtomicUsize> {
        None
    }
}

/// An object that others use.
///
/// # Safety
/// Its `users` are this number, which only `reference.rs` changes.
pub unsafe trait Shared: Object {
    /// The number of objects that use it.
    fn count(&self) -> &AtomicUsize;
}

/// Declares a kind of object: its type, its structure, its first table, and the structure once it
/// is closed; for kinds that others use also the field with their number.
macro_rules! object {
    ($object:ty, $head:ident, $fid:ident, $closed:expr, $users:ident) => {
        object!(@ $object, $head, $fid, $closed, fn users(&self) -> Option<&AtomicUsize> {
            Some(&self.$users)
        });
        // SAFETY: `users` is this field, which is private, and its module does not change it.
        #[allow(unsafe_code)]
        unsafe impl $crate::object::Shared for $object {
            fn count(&self) -> &AtomicUsize {
                &self.$users
            }
        }
    };
    ($object:ty, $head:ident, $fid:ident, $closed:expr) => {
        object!(@ $object, $head, $fid, $closed,);
    };
    (@ $object:ty, $head:ident, $fid:ident, $closed:expr, $($users:item)?) => {
        // SAFETY: the structure is `repr(C)`, begins with the head, and is made with this table.
        #[allow(unsafe_code)]
        unsafe impl $crate::object::Object for $object {
            type Head = $crate::abi::$head;
            const FID: &'static $crate::abi::Ops<6> = &$fid;
            const CLOSED: $crate::abi::$head = $closed;
            $($users)?
        }
    };
}
pub(crate) use object;

/// An object that a program passes as an argument, or that an event names.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Handle(*mut Fid);

// SAFETY: a handle is an address; `fid` says when it is followed.
unsafe impl Send for Handle {}

impl Handle {
    pub const NULL: Handle = Handle(null_mut());

    /// The handle of our object, for events and wait sets.
    pub fn of<T: Object>(object: &T) -> Handle {
        Handle((&raw const *object).cast_mut().cast())
    }

    /// A handle that programs only pass back.
    pub fn of_fid(fid: &Fid) -> Handle {
        Handle((&raw const *fid).cast_mut())
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The word that a program sees.
    pub fn address(self) -> usize {
        self.0 as usize
    }

    /// The object's structure, unless the handle is null.
    fn fid<'a>(self) -> Option<&'a Fid> {
        // SAFETY: a program passes null, an open object of some provider, or a closed one of ours,
        // which is still a `Fid`: fi_ep_bind(3), fi_poll_add(3), fi_trywait(3).
        unsafe { self.0.as_ref() }
    }

    /// The context of an object; null for null.
    pub fn context(self) -> *mut c_void {
        self.fid().map_or(null_mut(), |fid| fid.context)
    }

    /// The object of this kind. `None`: the handle is null, or the object is of another kind, not
    /// ours, or closed.
    #[inline]
    pub fn object<'a, T: Object>(self) -> Option<&'a T> {
        let fid = self.fid()?;
        // SAFETY: only objects of type `T` have this table.
        std::ptr::eq(fid.ops, T::FID).then(|| unsafe { &*self.0.cast::<T>() })
    }
}

/// A new object that the program does not have yet.
pub struct Opened<T: Object>(NonNull<T>);

impl<T: Object> Opened<T> {
    pub fn new(object: T) -> Opened<T> {
        Opened(NonNull::from(Box::leak(Box::new(object))))
    }
}

impl<T: Object> Deref for Opened<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: `new` boxed the object, and nobody can close it before the program has it.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Object> Drop for Opened<T> {
    fn drop(&mut self) {
        // SAFETY: `new` boxed the object, and the program never gets it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Opens an object: makes it, and gives it to the program.
pub fn open<T: Object>(into: Out<T>, make: impl FnOnce() -> Result<Opened<T>>) -> c_int {
    call(|| {
        let place = into.ok_or(error::EINVAL)?;
        place.write(std::mem::ManuallyDrop::new(make()?).0);
        Ok(())
    })
}

/// `fi_close`.
pub extern "C" fn close<T: Object>(object: NonNull<T>) -> c_int {
    {
        // SAFETY: the header calls this through the table of `object`, so it is open and a `T`.
        let object = unsafe { object.as_ref() };
        if object.users().is_some_and(|users| users.load(Ordering::Relaxed) > 0) {
            return Code::of_error(error::EBUSY);
        }
        object.close();
    }
    // SAFETY: `open` gave `object` to the program, which does not use it during fi_close(3). No
    // object uses it, and it has left those that listed it.
    unsafe { retire(object) };
    0
}

/// Ends an object. Its shell stays for a while.
///
/// # Safety
/// It was boxed, and our code no longer uses it.
unsafe fn retire<T: Object>(object: NonNull<T>) {
    // SAFETY: the caller's promise for `object`. The head fits, because the object begins with it.
    unsafe {
        object.drop_in_place();
        object.cast::<T::Head>().write(T::CLOSED);
    }
    let mut shells = CLOSED_OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    shells.keep(Shell { at: object.cast().as_ptr(), layout: Layout::new::<T>() });
}

/// The memory of an object that is closed.
struct Shell {
    at: *mut u8,
    layout: Layout,
}

// SAFETY: only the shell frees the memory `at`.
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
            // SAFETY: `at` was boxed with this layout. A program that still uses it has ignored
            // fi_close(3) for as long as `SHELLS` says.
            unsafe { dealloc(at, layout) };
        }
    }
}

/// The answer of every call of a closed object. It reads no arguments.
extern "C" fn closed() -> isize {
    Code::of_error(error::EBADF)
}

/// The answer of calls that return a text.
extern "C" fn closed_text() -> *const c_char {
    c"the object is closed".as_ptr()
}

/// The count of a closed counter: zero.
extern "C" fn closed_count() -> u64 {
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
    use std::mem::MaybeUninit;

    #[repr(C)]
    struct Thing {
        fid: FidPoll,
        content: Box<u64>,
    }
    static THING: Ops<6> = calls();
    object!(Thing, FidPoll, THING, CLOSED_POLL);
    impl Close for Thing {}

    /// An object is recognized by its table while it is open, and not once it is closed; null is no
    /// object.
    #[test]
    fn closed_objects_are_no_objects() {
        let fid = Fid { class: class::POLL, context: null_mut(), ops: &THING };
        let thing = Thing { fid: FidPoll { fid, ops: &THREE }, content: Box::new(7) };
        let mut place = MaybeUninit::uninit();
        assert_eq!(open(Some(&mut place), || Ok(Opened::new(thing))), 0);
        // SAFETY: `open` has written it.
        let thing = unsafe { place.assume_init() };
        let handle = Handle(thing.cast().as_ptr());
        assert_eq!(handle.object::<Thing>().map(|thing| *thing.content), Some(7));
        assert_eq!(close(thing), 0);
        assert!(handle.object::<Thing>().is_none());
        // SAFETY: a shell is a `Fid`.
        assert_eq!(unsafe { (*handle.0).class }, 0);
        assert!(Handle::NULL.object::<Thing>().is_none());
    }

    /// Shells stay within both limits, and the newest is kept.
    #[test]
    fn shells_are_bounded() {
        for bytes in [16, 8_000] {
            let mut shells = Shells { oldest_first: VecDeque::new(), bytes: 0 };
            let layout = Layout::from_size_align(bytes, 8).expect("a layout");
            let mut newest = null_mut();
            for _ in 0..3 * SHELLS {
                // SAFETY: `layout` has bytes; the shell owns them.
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
