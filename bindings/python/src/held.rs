//! Memory of Python objects, held for as long as the library uses it.
//!
//! An object lends its memory by the buffer protocol, or as a DLPack tensor. While it is lent, a
//! `bytearray` refuses to be resized, and an array stays although the program forgot it.
//!
//! Memory that holds addresses is refused. An address means nothing to a peer, and the interpreter
//! would follow whatever a peer writes there.
//!
//! The buffer protocol is in the stable ABI from Python 3.11 on. Its functions and the layout of
//! `Py_buffer` are the same in 3.9 and 3.10, so they are declared here.

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};

/// `Py_buffer`, as every CPython from 3.0 on lays it out.
#[repr(C)]
pub struct RawBuffer {
    pub buf: *mut c_void,
    obj: *mut ffi::PyObject,
    pub len: isize,
    itemsize: isize,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut RawBuffer, flags: c_int) -> c_int;
    fn PyObject_CheckBuffer(object: *mut ffi::PyObject) -> c_int;
    fn PyBuffer_Release(view: *mut RawBuffer);
    pub fn PyBuffer_FillInfo(
        view: *mut RawBuffer,
        object: *mut ffi::PyObject,
        buf: *mut c_void,
        len: isize,
        readonly: c_int,
        flags: c_int,
    ) -> c_int;
}

const SIMPLE: c_int = 0;
const WRITABLE: c_int = 1;
/// The format and the dimensions, too. Without strides, so the memory is contiguous.
const FORMAT: c_int = 4 | 8;

/// What the library will do with the memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// Whether an object lends its memory by the buffer protocol.
pub fn has_buffer(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is alive.
    unsafe { PyObject_CheckBuffer(object.as_ptr()) != 0 }
}

/// Memory that an object lends. Dropping it gives the memory back.
pub struct Held {
    start: *mut u8,
    length: usize,
    is_writable: bool,
    from: From,
}

enum From {
    Buffer(Box<RawBuffer>),
    Tensor(Tensor),
}

// SAFETY: the fields are pointers that only `drop` uses, and it attaches to the interpreter.
unsafe impl Send for Held {}
// SAFETY: as above; a shared reference tells the address and the length.
unsafe impl Sync for Held {}

impl Held {
    /// The memory of `object`, which must be contiguous (in C's order), and writable if it will be
    /// written.
    pub fn of(object: &Bound<'_, PyAny>, access: Access) -> PyResult<Held> {
        if !has_buffer(object) {
            return Held::of_tensor(object, access);
        }
        let writable = if access == Access::Write { WRITABLE } else { SIMPLE };
        let view = match lend(object, writable | FORMAT) {
            // SAFETY: a format is a string that stays as long as the view; null is bytes.
            Ok(view) if view.format.is_null() => view,
            Ok(mut view) => {
                // SAFETY: as above.
                let format = unsafe { CStr::from_ptr(view.format) }.to_bytes();
                if holds_addresses(format) {
                    // SAFETY: it was filled, and is released once.
                    unsafe { PyBuffer_Release(&mut *view) };
                    return Err(addresses(object));
                }
                view
            }
            // NumPy has no format for dates and some types of others, and lends their bytes.
            Err(_) if is_formless(object)? => lend(object, writable)?,
            Err(error) => return Err(error),
        };
        let (start, length) = (view.buf.cast(), view.len.unsigned_abs());
        Ok(Held { start, length, is_writable: view.readonly == 0, from: From::Buffer(view) })
    }

    fn of_tensor(object: &Bound<'_, PyAny>, access: Access) -> PyResult<Held> {
        if !object.hasattr("__dlpack__")? {
            let kind = object.get_type().name()?;
            let what = "has no memory that can be sent or received: pass bytes, a bytearray, an \
                        array, a memoryview, mmap, a tensor in the processor's memory, or a region";
            return Err(PyTypeError::new_err(format!("{kind} {what}")));
        }
        let (tensor, is_writable) = Tensor::of(object, access)?;
        let (start, length) = tensor.bytes()?;
        Ok(Held { start, length, is_writable, from: From::Tensor(tensor) })
    }

    /// Whether it may be written, whatever it was asked for.
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Where they begin; `None` if there are none.
    pub fn start(&self) -> Option<NonNull<u8>> {
        if self.length == 0 { None } else { NonNull::new(self.start) }
    }

    /// The bytes, for a post that copies them. `apart`: the post gives up the interpreter's lock,
    /// so it gets a copy that nobody can write.
    pub fn copied_if(&self, apart: bool) -> Cow<'_, [u8]> {
        // SAFETY: without `apart` the post holds the interpreter's lock until the bytes are copied,
        // and runs no Python code.
        let bytes = unsafe { self.bytes() };
        if apart { bytes.to_vec().into() } else { bytes.into() }
    }

    /// The bytes, for a short look.
    ///
    /// # Safety
    /// Nothing may write them while the slice lives: the caller holds the interpreter's lock, and
    /// runs no Python code.
    pub unsafe fn bytes(&self) -> &[u8] {
        match self.start() {
            // SAFETY: the memory is lent until `self` is dropped; the caller's promise.
            Some(start) => unsafe { std::slice::from_raw_parts(start.as_ptr(), self.length) },
            None => &[],
        }
    }
}

fn lend(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Box<RawBuffer>> {
    let mut view = Box::new(RawBuffer {
        buf: null_mut(),
        obj: null_mut(),
        len: 0,
        itemsize: 0,
        readonly: 0,
        ndim: 0,
        format: null_mut(),
        shape: null_mut(),
        strides: null_mut(),
        suboffsets: null_mut(),
        internal: null_mut(),
    });
    // SAFETY: the object is alive, and the view stays where it is until it is released.
    match unsafe { PyObject_GetBuffer(object.as_ptr(), &mut *view, flags) } {
        0 => Ok(view),
        _ => Err(PyErr::fetch(object.py())),
    }
}

/// Whether a format (PEP 3118) has objects (`O`) or pointers that somebody follows: `&`, `X`, and
/// of ctypes `z` and `Z`. `Zf`, `Zd` and `Zg` are complex numbers. Names stand between colons.
fn holds_addresses(format: &[u8]) -> bool {
    let outside_of_names = format.split(|&byte| byte == b':').step_by(2);
    outside_of_names.into_iter().any(|types| {
        let next = types.iter().skip(1).map(Some).chain([None]);
        types.iter().zip(next).any(|(kind, next)| match kind {
            b'O' | b'&' | b'X' | b'z' => true,
            b'Z' => !matches!(next, Some(b'f' | b'd' | b'g')),
            _ => false,
        })
    })
}

fn addresses(object: &Bound<'_, PyAny>) -> PyErr {
    let kind = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!(
        "this {kind} holds addresses of objects, which mean nothing to a peer, and what a peer \
         writes there would crash the interpreter: pass numbers or bytes, for instance of pickle"
    ))
}

/// Whether an array has a type without a format and without addresses: dates (`m`, `M`), records of
/// them, and numbers of other packages (`V`).
fn is_formless(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(kind) = object.getattr_opt("dtype")? else { return Ok(false) };
    let (Some(has), Some(kind)) = (kind.getattr_opt("hasobject")?, kind.getattr_opt("kind")?)
    else {
        return Ok(false);
    };
    if has.is_truthy()? {
        return Err(addresses(object));
    }
    Ok(["m", "M", "V"].contains(&kind.extract::<String>()?.as_str()))
}

impl Drop for Held {
    fn drop(&mut self) {
        // After the interpreter's end nothing can be given back.
        let _ = Python::try_attach(|_| match &mut self.from {
            // SAFETY: it was filled by `PyObject_GetBuffer`, and is released once.
            From::Buffer(view) => unsafe { PyBuffer_Release(&mut **view) },
            From::Tensor(tensor) => tensor.release(),
        });
    }
}

// DLPack (dlpack.h): a tensor in a capsule, whose deleter the consumer calls.

#[repr(C)]
struct DlTensor {
    data: *mut u8,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    type_code: u8,
    type_bits: u8,
    type_lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Unversioned {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Unversioned)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

enum Tensor {
    Unversioned(NonNull<Unversioned>),
    Versioned(NonNull<Versioned>),
}

const CPU: i32 = 1;
const OPAQUE_HANDLE: u8 = 3;
const READ_ONLY: u64 = 1;

impl Tensor {
    /// The tensor, and whether it may be written.
    fn of(object: &Bound<'_, PyAny>, access: Access) -> PyResult<(Tensor, bool)> {
        let capsule = object.call_method0("__dlpack__")?;
        let capsule = capsule.cast_into::<PyCapsule>()?;
        if let Some(tensor) = take(&capsule, c"dltensor", c"used_dltensor")? {
            return Ok((Tensor::Unversioned(tensor).checked(object)?, true));
        }
        let Some(tensor) =
            take::<Versioned>(&capsule, c"dltensor_versioned", c"used_dltensor_versioned")?
        else {
            return Err(PyTypeError::new_err("__dlpack__ returned a capsule of another name"));
        };
        // SAFETY: the capsule's content is ours now.
        let is_writable = unsafe { tensor.as_ref() }.flags & READ_ONLY == 0;
        let mut tensor = Tensor::Versioned(tensor).checked(object)?;
        if access == Access::Write && !is_writable {
            tensor.release();
            return Err(PyBufferError::new_err("this tensor is read-only"));
        }
        Ok((tensor, is_writable))
    }

    /// Refuses memory that the processor cannot reach as plain bytes. Gives the tensor back then.
    fn checked(mut self, object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let tensor = self.tensor();
        let why = match () {
            _ if tensor.type_code == OPAQUE_HANDLE => addresses(object),
            _ if tensor.device_type != CPU => {
                PyBufferError::new_err("this tensor is not in the processor's memory")
            }
            _ if !tensor.is_contiguous() => {
                PyBufferError::new_err("this tensor is not contiguous: send a copy of it")
            }
            _ => return Ok(self),
        };
        self.release();
        Err(why)
    }

    fn tensor(&self) -> &DlTensor {
        // SAFETY: the tensor is ours until its deleter is called.
        unsafe {
            match self {
                Tensor::Unversioned(managed) => &managed.as_ref().tensor,
                Tensor::Versioned(managed) => &managed.as_ref().tensor,
            }
        }
    }

    fn bytes(&self) -> PyResult<(*mut u8, usize)> {
        let tensor = self.tensor();
        let bits = usize::from(tensor.type_bits) * usize::from(tensor.type_lanes);
        let items = tensor
            .dimensions(tensor.shape)
            .iter()
            .try_fold(1usize, |product, &items| product.checked_mul(usize::try_from(items).ok()?));
        let bytes = items.and_then(|items| items.checked_mul(bits.div_ceil(8)));
        let bytes = bytes.ok_or_else(|| PyBufferError::new_err("this tensor is too large"))?;
        Ok((tensor.data.wrapping_add(tensor.byte_offset as usize), bytes))
    }

    fn release(&mut self) {
        // SAFETY: the deleter is called once, as DLPack asks of the consumer.
        unsafe {
            match *self {
                Tensor::Unversioned(managed) => {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
                Tensor::Versioned(managed) => {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
            }
        }
    }
}

impl DlTensor {
    fn dimensions(&self, words: *mut i64) -> &[i64] {
        if words.is_null() || self.ndim <= 0 {
            return &[];
        }
        // SAFETY: DLPack gives `ndim` words there.
        unsafe { std::slice::from_raw_parts(words, self.ndim as usize) }
    }

    fn is_contiguous(&self) -> bool {
        let shape = self.dimensions(self.shape);
        let strides = self.dimensions(self.strides);
        // No strides: it is contiguous. An empty tensor is, whatever its strides.
        if strides.is_empty() || shape.contains(&0) {
            return true;
        }
        let mut expected = 1i64;
        shape.iter().zip(strides).rev().all(|(&items, &stride)| {
            let fits = items == 1 || stride == expected;
            expected = expected.saturating_mul(items);
            fits
        })
    }
}

/// Takes the content out of a capsule of this name, which gets the name of a used one.
fn take<T>(
    capsule: &Bound<'_, PyCapsule>,
    name: &'static CStr,
    used: &'static CStr,
) -> PyResult<Option<NonNull<T>>> {
    // SAFETY: the capsule is alive. A valid capsule of this name has content, and renaming it stops
    // its own destructor from deleting the content.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
            return Ok(None);
        }
        let content = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
        if content.is_null() || ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        Ok(NonNull::new(content.cast()))
    }
}
