//! An object that lends memory to Python by the buffer protocol, as bytes: a region's, or another
//! object's.
//!
//! It is made by hand, because PyO3 offers the protocol in the stable ABI from Python 3.11 on only.
//! The interpreter takes the slot from 3.9 on.

use crate::held::{Access, Held, PyBuffer_FillInfo, RawBuffer};
use bellwire::MemoryRegion;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null_mut};

/// The object: what every Python object begins with, and what it lends.
#[repr(C)]
struct Exporter {
    head: ffi::PyObject,
    lent: *mut Lent,
}

/// Memory that stays while a view of it does.
pub enum Lent {
    /// Bytes of a region. They stay mapped, also after the region has ended.
    Region(MemoryRegion),
    /// Bytes of an object of the program.
    Object(Held),
}

/// A memoryview of the bytes of any object that lends its memory, whatever its type and shape. It
/// may be written if the object may.
pub fn bytes_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let lent = Lent::Object(Held::of(object, Access::Read)?);
    Ok(memoryview(object.py(), lent)?.into_bound(object.py()))
}

/// A memoryview of the bytes.
pub fn memoryview(py: Python<'_>, lent: Lent) -> PyResult<Py<PyAny>> {
    let kind = kind(py)?.as_ptr().cast::<ffi::PyTypeObject>();
    // SAFETY: the type was made below. A new object is ours alone, and gets its memory before
    // anybody else sees it.
    unsafe {
        let object = ffi::PyType_GenericAlloc(kind, 0);
        let object: Bound<'_, PyAny> = Bound::from_owned_ptr_or_err(py, object)?;
        let exporter = object.as_ptr().cast::<Exporter>();
        (*exporter).lent = Box::into_raw(Box::new(lent));
        let view = ffi::PyMemoryView_FromObject(object.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(py, view)?.unbind())
    }
}

fn kind(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static KIND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let kind = KIND.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
        // `Py_bf_getbuffer`, which old headers show outside of the stable ABI only.
        const GET_BUFFER: c_int = 1;
        let slot = |slot, function: *mut c_void| ffi::PyType_Slot { slot, pfunc: function };
        let mut slots = [
            slot(GET_BUFFER, get_buffer as *mut c_void),
            slot(ffi::Py_tp_dealloc, deallocate as *mut c_void),
            slot(0, null_mut()),
        ];
        let mut spec = ffi::PyType_Spec {
            name: c"bellwire._bellwire._Exporter".as_ptr(),
            basicsize: size_of::<Exporter>() as c_int,
            itemsize: 0,
            flags: ffi::Py_TPFLAGS_DEFAULT as _,
            slots: slots.as_mut_ptr(),
        };
        // SAFETY: the description is complete, and the interpreter copies it.
        let kind = unsafe { ffi::PyType_FromSpec(&mut spec) };
        // SAFETY: a new reference, or null with an exception.
        Ok(unsafe { Bound::from_owned_ptr_or_err(py, kind) }?.unbind())
    })?;
    Ok(kind.bind(py))
}

/// `getbufferproc`.
unsafe extern "C" fn get_buffer(
    object: *mut ffi::PyObject,
    view: *mut RawBuffer,
    flags: c_int,
) -> c_int {
    // SAFETY: the interpreter calls this on objects of this type, which hold their memory.
    unsafe {
        let lent = (*object.cast::<Exporter>()).lent;
        let Some(lent) = lent.as_ref() else {
            // A program called the type itself.
            ffi::PyErr_SetString(ffi::PyExc_BufferError, c"this object has no memory".as_ptr());
            return -1;
        };
        let (start, length, is_writable) = match lent {
            Lent::Region(region) => (region.view().as_ptr(), region.len(), true),
            // Some readers of views take null for a failure, also where there are no bytes.
            Lent::Object(held) => (
                held.start().unwrap_or(NonNull::dangling()).as_ptr(),
                held.len(),
                held.is_writable(),
            ),
        };
        let read_only = c_int::from(!is_writable);
        PyBuffer_FillInfo(view, object, start.cast(), length as isize, read_only, flags)
    }
}

/// `destructor`: views hold references, so none is left.
unsafe extern "C" fn deallocate(object: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this once, on an object of this type. An object whose creation
    // failed has no memory. Objects of a type from `PyType_FromSpec` hold a reference to it.
    unsafe {
        let lent = (*object.cast::<Exporter>()).lent;
        if !lent.is_null() {
            drop(Box::from_raw(lent));
        }
        let kind = ffi::Py_TYPE(object);
        ffi::PyObject_Free(object.cast());
        ffi::Py_DECREF(kind.cast());
    }
}
