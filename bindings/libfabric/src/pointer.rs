//! Pointers that C passes, as types.
//!
//! The parameters of every entry point, and the fields of every structure, say what the manual page
//! says of the pointer:
//!
//! | type | the program passes |
//! |---|---|
//! | `&T` | a valid pointer: the header's inline function has read through it |
//! | `Option<&T>`, `Option<&mut T>` | null, or a structure for as long as the call lasts |
//! | [`Out`] | null, or a place for the new object |
//! | [`Buffer`], [`Array`] | null, or as many bytes or elements as another argument says |
//! | [`Text`] | null, or a string that ends in a zero byte |
//! | [`Handle`](crate::object::Handle) | null, or an object of any provider, open or closed |
//!
//! Only C makes values of these types, apart from null and from memory that we give to C. So the
//! code behind an entry point is safe, and what it trusts is the manual page of its call.

use crate::abi::error;
use crate::errno::Result;
use bellwire_tagged::{Span, Spans};
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};

/// A place for the pointer to a new object.
pub type Out<'a, T> = Option<&'a mut MaybeUninit<NonNull<T>>>;

/// Most buffers of one message.
pub const IOV_LIMIT: usize = 4;

/// Elements of the program; their number is another argument or field.
#[repr(transparent)]
pub struct Array<T>(*mut T);

/// Bytes of the program.
pub type Buffer = Array<u8>;

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Array<T> {}

impl<T> Array<T> {
    pub const NULL: Array<T> = Array(null_mut());

    /// Elements of ours, in place of the program's.
    pub fn of(elements: &[T]) -> Array<T> {
        Array(elements.as_ptr().cast_mut())
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The address, for checks and for reports to the program, or if it has another meaning too.
    pub fn pointer(self) -> *mut c_void {
        self.0.cast()
    }

    /// Whether a program can mean memory by this: its length is possible, and the pointer is not
    /// null if there are elements.
    #[inline(always)]
    fn is_memory(self, count: usize) -> bool {
        let bytes = count.checked_mul(size_of::<T>());
        if self.0.is_null() { count == 0 } else { bytes.is_some_and(|bytes| bytes as isize >= 0) }
    }

    /// The elements that a call reads. `EINVAL`: not memory.
    pub fn elements<'a>(self, count: usize) -> Result<&'a [T]> {
        match self.is_memory(count) {
            true if count == 0 => Ok(&[]),
            // SAFETY: `self` has `count` elements during the call, as its manual page requires.
            true => Ok(unsafe { std::slice::from_raw_parts(self.0, count) }),
            false => Err(error::EINVAL),
        }
    }

    /// The places that a call writes. `EINVAL`: not memory.
    pub fn room<'a>(self, count: usize) -> Result<&'a mut [MaybeUninit<T>]> {
        match self.is_memory(count) {
            true if count == 0 => Ok(&mut []),
            // SAFETY: the call may write `count` elements at `self`, as its manual page says.
            true => Ok(unsafe { std::slice::from_raw_parts_mut(self.0.cast(), count) }),
            false => Err(error::EINVAL),
        }
    }

    /// The places that a call writes; `None`: the program does not want the elements.
    pub fn places<'a>(self, count: usize) -> Option<&'a mut [MaybeUninit<T>]> {
        self.room(count).ok().filter(|_| !self.is_null())
    }

    /// Writes one element, unless the program does not want any.
    ///
    /// # Safety
    /// The program has given more than `index` places.
    #[inline(always)]
    pub unsafe fn write(self, index: usize, element: T) {
        if !self.0.is_null() {
            // SAFETY: the caller's promise for the places at `self`.
            unsafe { self.0.add(index).write(element) };
        }
    }
}

impl Buffer {
    /// Memory of ours that the program reads.
    pub fn of_bytes(bytes: &mut [u8]) -> Buffer {
        Array(bytes.as_mut_ptr())
    }

    /// The memory of an operation. `EINVAL`: not memory.
    #[inline(always)]
    pub fn span(self, length: usize) -> Result<Span> {
        if !self.is_memory(length) {
            return Err(error::EINVAL);
        }
        // SAFETY: `self` has `length` bytes, and the program leaves them alone until the operation
        // has completed: fi_msg(3), fi_tagged(3), fi_rma(3), fi_atomic(3); fi_mr(3) for a region.
        Ok(unsafe { Span::new(self.0, length) })
    }

    /// Writes a text and a zero byte, truncated to `length` bytes. Null is ignored.
    pub fn write_text(self, length: usize, text: &[u8]) {
        if let (Ok(room), Some(last)) = (self.room(length), length.checked_sub(1)) {
            let kept = write_bytes(&mut room[..last], text);
            room[kept].write(0);
        }
    }

    /// A copy of some bytes that the library will free, or `ENOMEM`.
    pub fn allocate(bytes: &[u8]) -> Result<Buffer> {
        // SAFETY: malloc(3) takes any size.
        let copy: Buffer = Array(unsafe { libc::malloc(bytes.len()) }.cast());
        if copy.0.is_null() {
            return Err(error::ENOMEM);
        }
        write_bytes(copy.room(bytes.len())?, bytes);
        Ok(copy)
    }
}

/// Copies as many bytes as there is room for; returns their number.
pub fn write_bytes(room: &mut [MaybeUninit<u8>], bytes: &[u8]) -> usize {
    for (place, &byte) in room.iter_mut().zip(bytes) {
        place.write(byte);
    }
    room.len().min(bytes.len())
}

/// The buffers of one operation. `EINVAL`: too many buffers, or one that cannot be memory.
pub fn gather<T>(
    parts: Array<T>,
    count: usize,
    span: impl Fn(&T) -> Result<Span>,
) -> Result<Spans> {
    if count > IOV_LIMIT {
        return Err(error::EINVAL);
    }
    Ok(match parts.elements(count)? {
        [] => Buffer::NULL.span(0)?.into(),
        [one] => span(one)?.into(),
        several => Spans::of(&several.iter().map(span).collect::<Result<Vec<_>>>()?),
    })
}

/// A string of the program, or of a structure of the library.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    pub const NULL: Text = Text(std::ptr::null());

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The string; `None`: null.
    pub fn get<'a>(self) -> Option<&'a CStr> {
        // SAFETY: null, or a string for as long as the call lasts: fi_getinfo(3), fi_av(3).
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }

    /// A copy that the library will free, or `ENOMEM`.
    pub fn allocate(text: &str) -> Result<Text> {
        let text = CString::new(text).map_err(|_| error::ENOMEM)?;
        Buffer::allocate(text.as_bytes_with_nul()).map(|copy| Text(copy.0.cast()))
    }
}
