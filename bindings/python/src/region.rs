//! Registered memory, and keys of peers' memory.

use crate::errors;
use crate::exporter::{self, Lent};
use crate::held::{Access, Held};
use crate::shared::Shared;
use bellwire::Rights;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice};
use std::sync::{Arc, Mutex, PoisonError};

/// Memory that is registered with a function. Made by `Function.allocate_region` or
/// `Function.register`.
///
/// As a context manager it is deregistered at the end. `region[a:b]` is a part of it, which
/// descriptors take as they take the whole. `view()` is its memory.
#[pyclass(frozen, module = "bellwire")]
pub struct MemoryRegion {
    shared: Arc<Shared>,
    region: bellwire::MemoryRegion,
    /// The same bytes, registered so that peers may map them.
    pages: Option<bellwire::MemoryRegion>,
    /// What the program brought, and what keeps it; `None` for memory of the library.
    brought: Option<Py<PyAny>>,
    is_writable: bool,
    state: Mutex<State>,
}

struct State {
    has_ended: bool,
    held: Option<Held>,
}

/// A part of a region, for a descriptor.
pub struct Part {
    pub slice: bellwire::RegionSlice,
    pub is_writable: bool,
}

impl MemoryRegion {
    pub fn new(
        shared: Arc<Shared>,
        region: bellwire::MemoryRegion,
        pages: Option<bellwire::MemoryRegion>,
        brought: Option<(Py<PyAny>, Held)>,
        is_writable: bool,
    ) -> MemoryRegion {
        let (brought, held) = brought.unzip();
        let state = Mutex::new(State { has_ended: false, held });
        MemoryRegion { shared, region, pages, brought, is_writable, state }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn whole(&self) -> PyResult<Part> {
        Ok(self.part(0, self.region.len()))
    }

    fn part(&self, offset: usize, length: usize) -> Part {
        Part { slice: self.region.slice(offset, length), is_writable: self.is_writable }
    }

    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some(brought) = &self.brought else {
            let lent = Lent::Region(self.region.clone());
            return Ok(exporter::memoryview(py, lent)?.into_bound(py));
        };
        // Also when the region has ended: the object is the program's as ever.
        exporter::bytes_of(brought.bind(py))
    }
}

#[pymethods]
impl MemoryRegion {
    fn __len__(&self) -> usize {
        self.region.len()
    }

    /// The rights of peers.
    #[getter]
    fn rights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("bellwire._enums")?.getattr("Rights")?.call1((self.region.rights().bits(),))
    }

    /// The key for peers. Send them `remote_key.to_bytes()`.
    #[getter]
    fn remote_key(&self) -> RemoteKey {
        RemoteKey(self.region.remote_key())
    }

    /// The memory, as a memoryview of bytes. Nothing is copied, and peers with the rights may
    /// change it at any time. It stays readable when the region has ended.
    fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.memory(py)
    }

    /// The memory as a NumPy array of bytes: `numpy.asarray(region)`. Nothing is copied.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        array(&self.memory(py)?, dtype, copy)
    }

    fn __getitem__(slf: &Bound<'_, Self>, part: &Bound<'_, PyAny>) -> PyResult<RegionSlice> {
        let (offset, length) = bounds(part, slf.get().region.len())?;
        Ok(RegionSlice { region: slf.clone().unbind(), offset, length })
    }

    /// The 8-byte word at `offset`. Bytes that were put before it are visible too.
    fn load_u64(&self, offset: usize) -> PyResult<u64> {
        let word = self.region.view().load(offset);
        word.ok_or_else(|| PyIndexError::new_err("not an aligned word inside the region"))
    }

    /// Writes the 8-byte word at `offset` after all earlier writes.
    fn store_u64(&self, offset: usize, value: u64) -> PyResult<()> {
        if !self.is_writable {
            return Err(PyTypeError::new_err("this region's memory is read-only"));
        }
        let stored = self.region.view().store(offset, value);
        stored.ok_or_else(|| PyIndexError::new_err("not an aligned word inside the region"))
    }

    /// Ends the region: its key is dead when this returns. Raises `InUse` while a posted descriptor
    /// uses a part of it. A second call does nothing.
    fn deregister(&self, py: Python<'_>) -> PyResult<()> {
        if self.state().has_ended {
            return Ok(());
        }
        let end = |function: &mut bellwire::Function| {
            function.deregister_foreign(&self.region)?;
            self.pages.iter().try_for_each(|pages| function.deregister_foreign(pages))
        };
        match self.shared.call(py, end) {
            Ok(()) => {}
            // The end of the function ended the region.
            Err(error) if errors::is(py, &error, &["NoSuchRegion", "Closed", "Forked"]) => {}
            Err(error) => return Err(error),
        }
        let held = {
            let mut state = self.state();
            state.has_ended = true;
            state.held.take()
        };
        drop(held);
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<()> {
        self.deregister(py)
    }

    fn __repr__(&self) -> String {
        let end = if self.state().has_ended { ", ended" } else { "" };
        format!("<MemoryRegion {} B, {:?}{end}>", self.region.len(), self.region.rights())
    }
}

impl Drop for MemoryRegion {
    /// Ends the region when the function is free, at the latest in its next call.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !state.has_ended && self.shared.function.is_same_process() {
            let held = state.held.take();
            let mut books = self.shared.books();
            books.dead.extend(self.pages.take().map(|pages| (pages, None)));
            books.dead.push((self.region.clone(), held));
        }
    }
}

/// A part of a region, for descriptors.
#[pyclass(frozen, module = "bellwire")]
pub struct RegionSlice {
    region: Py<MemoryRegion>,
    offset: usize,
    length: usize,
}

impl RegionSlice {
    pub fn part(&self) -> Part {
        self.region.get().part(self.offset, self.length)
    }
}

#[pymethods]
impl RegionSlice {
    /// The region.
    #[getter]
    fn region(&self, py: Python<'_>) -> Py<MemoryRegion> {
        self.region.clone_ref(py)
    }

    /// Where it begins in the region, in bytes.
    #[getter]
    fn offset(&self) -> usize {
        self.offset
    }

    fn __len__(&self) -> usize {
        self.length
    }

    fn __getitem__(&self, py: Python<'_>, part: &Bound<'_, PyAny>) -> PyResult<RegionSlice> {
        let (offset, length) = bounds(part, self.length)?;
        let region = self.region.clone_ref(py);
        Ok(RegionSlice { region, offset: self.offset + offset, length })
    }

    /// The memory, as a memoryview of bytes. Nothing is copied.
    fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (begin, end) = (self.offset as isize, (self.offset + self.length) as isize);
        self.region.get().memory(py)?.get_item(PySlice::new(py, begin, end, 1))
    }

    /// The memory as a NumPy array of bytes: `numpy.asarray(part)`. Nothing is copied.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        array(&self.view(py)?, dtype, copy)
    }

    fn __repr__(&self) -> String {
        format!("<RegionSlice {}+{} B>", self.offset, self.length)
    }
}

/// A memoryview of the bytes of what a program posts: a region, a part of one, or other memory.
pub fn bytes_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match (object.cast::<MemoryRegion>(), object.cast::<RegionSlice>()) {
        (Ok(region), _) => region.get().memory(object.py()),
        (_, Ok(slice)) => slice.get().view(object.py()),
        _ => exporter::bytes_of(object),
    }
}

/// Offset and length of a slice without steps.
fn bounds(part: &Bound<'_, PyAny>, length: usize) -> PyResult<(usize, usize)> {
    let part =
        part.cast::<PySlice>().map_err(|_| PyTypeError::new_err("a part is written [a:b]"))?;
    let indices = part.indices(length as isize)?;
    if indices.step != 1 {
        return Err(PyValueError::new_err("a part of a region has no steps"));
    }
    Ok((indices.start.unsigned_abs(), indices.slicelength))
}

fn array<'py>(
    memory: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = memory.py().import("numpy")?.call_method1("frombuffer", (memory, "u1"))?;
    match (dtype, copy) {
        (Some(dtype), _) => array.call_method1("astype", (dtype,)),
        (None, Some(true)) => array.call_method0("copy"),
        (None, _) => Ok(array),
    }
}

/// A peer's access to a region. It travels in a message, as `to_bytes()`.
#[pyclass(frozen, eq, hash, module = "bellwire")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemoteKey(pub bellwire::RemoteKey);

#[pymethods]
impl RemoteKey {
    /// The number of bytes of `to_bytes()`.
    #[classattr]
    const BYTES: usize = bellwire::RemoteKey::BYTES;

    /// The inverse of `to_bytes`.
    #[staticmethod]
    fn from_bytes(data: &Bound<'_, PyAny>) -> PyResult<RemoteKey> {
        let held = Held::of(data, Access::Read)?;
        // SAFETY: the interpreter's lock is held, and the bytes are copied at once.
        let key = bellwire::RemoteKey::from_bytes(unsafe { held.bytes() });
        key.map(RemoteKey).ok_or_else(|| PyValueError::new_err("these bytes are no key"))
    }

    /// The key for a message: 24 bytes.
    #[allow(clippy::wrong_self_convention)] // Python calls methods by reference.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// Node that owns the region.
    #[getter]
    fn node(&self) -> u32 {
        self.0.node
    }

    /// Function that owns the region.
    #[getter]
    fn function(&self) -> u8 {
        self.0.function
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.0.length).unwrap_or(usize::MAX)
    }

    fn __getitem__(&self, part: &Bound<'_, PyAny>) -> PyResult<RemoteSlice> {
        let (offset, length) = bounds(part, self.__len__())?;
        Ok(RemoteSlice(self.0.slice(offset as u64, length as u64)))
    }

    /// The part from `offset`, `length` bytes long. The post checks the bounds.
    fn slice(&self, offset: u64, length: u64) -> RemoteSlice {
        RemoteSlice(self.0.slice(offset, length))
    }

    /// The 8-byte word at `offset`, for atomics. The post checks bounds and alignment.
    fn at(&self, offset: u64) -> RemoteAt {
        RemoteAt(self.0.at(offset))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_bytes = py.get_type::<RemoteKey>().getattr("from_bytes")?;
        Ok((from_bytes, (self.to_bytes(py),)))
    }

    fn __repr__(&self) -> String {
        let bellwire::RemoteKey { node, function, length, .. } = self.0;
        format!("<RemoteKey of {node}.{function}, {length} B>")
    }
}

/// A part of a peer's region: the target of a put, or the source of a get.
#[pyclass(frozen, eq, hash, module = "bellwire")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemoteSlice(pub bellwire::RemoteSlice);

#[pymethods]
impl RemoteSlice {
    /// The region's key.
    #[getter]
    fn key(&self) -> RemoteKey {
        RemoteKey(self.0.key)
    }

    /// Where it begins in the region, in bytes.
    #[getter]
    fn offset(&self) -> u64 {
        self.0.offset
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.0.length).unwrap_or(usize::MAX)
    }

    fn __repr__(&self) -> String {
        format!("<RemoteSlice {}+{} B>", self.0.offset, self.0.length)
    }
}

/// An 8-byte word of a peer's region, for atomics.
#[pyclass(frozen, eq, hash, module = "bellwire")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemoteAt(pub bellwire::RemoteAt);

#[pymethods]
impl RemoteAt {
    /// The region's key.
    #[getter]
    fn key(&self) -> RemoteKey {
        RemoteKey(self.0.key)
    }

    /// The word's place in the region, in bytes.
    #[getter]
    fn offset(&self) -> u64 {
        self.0.offset
    }

    fn __repr__(&self) -> String {
        format!("<RemoteAt {}>", self.0.offset)
    }
}

/// The parts of a peer's memory that a program names: one, or a list.
pub fn remote_parts(given: &Bound<'_, PyAny>) -> PyResult<Vec<bellwire::RemoteSlice>> {
    if let Some(part) = remote_part(given) {
        return Ok(vec![part]);
    }
    let wrong = || {
        PyTypeError::new_err(
            "a place in a peer's memory is a RemoteKey, a part of one, or a list of parts",
        )
    };
    let items = given.try_iter().map_err(|_| wrong())?;
    items.map(|item| remote_part(&item?).ok_or_else(wrong)).collect()
}

fn remote_part(given: &Bound<'_, PyAny>) -> Option<bellwire::RemoteSlice> {
    if let Ok(slice) = given.cast::<RemoteSlice>() {
        return Some(slice.get().0);
    }
    given.cast::<RemoteKey>().ok().map(|key| key.get().0.into())
}

/// Rights from the program's `Rights`, or a number.
pub fn rights(given: Option<u8>) -> PyResult<Rights> {
    let bits = given.unwrap_or(0);
    Rights::from_bits(bits).ok_or_else(|| PyValueError::new_err(format!("{bits} are no rights")))
}
