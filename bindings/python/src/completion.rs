//! Completions.

use crate::address::Address;
use crate::enums;
use crate::errors;
use crate::region;
use bellwire::Status;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PySlice, PyString};

/// The result of a finished descriptor, or the event of a peer's put.
#[pyclass(frozen, module = "bellwire")]
pub struct Completion {
    operation: bellwire::Operation,
    status: Status,
    length: usize,
    immediate: Option<u64>,
    value: u64,
    peer: bellwire::Address,
    queue_pair: u32,
    context: Py<PyAny>,
    buffers: Vec<Py<PyAny>>,
}

impl Completion {
    pub fn new(
        done: &bellwire::Completion,
        context: Py<PyAny>,
        buffers: Vec<Py<PyAny>>,
    ) -> Completion {
        Completion {
            operation: done.operation,
            status: done.status,
            length: done.length,
            immediate: done.immediate(),
            value: done.value(),
            peer: done.peer,
            queue_pair: done.queue_pair.number,
            context,
            buffers,
        }
    }

    /// This completion as one of `target`, with the bytes copied there unless they are there.
    pub fn copied_to(self, target: &Bound<'_, PyAny>) -> PyResult<Completion> {
        let py = target.py();
        if self.buffers.first().is_some_and(|buffer| buffer.is(target)) {
            return Ok(self);
        }
        let (from, to) = (self.view(py)?, region::bytes_of(target)?);
        let length = self.length.min(to.len()?);
        let part = PySlice::new(py, 0, length as isize, 1);
        to.set_item(&part, from.get_item(&part)?)?;
        let is_cut = self.status.is_success() && length < self.length;
        let status = if is_cut { Status::Truncated } else { self.status };
        Ok(Completion { status, length, buffers: vec![target.clone().unbind()], ..self })
    }

    /// This completion as a Python object, or an exception with it if it is a failure.
    pub fn checked(self, py: Python<'_>) -> PyResult<Py<Completion>> {
        let is_success = self.status.is_success();
        let done = Py::new(py, self)?;
        if is_success { Ok(done) } else { Err(failure(py, &done)) }
    }
}

/// The exception of a failed descriptor.
fn failure(py: Python<'_>, done: &Py<Completion>) -> PyErr {
    let Completion { status, peer, .. } = done.get();
    let class = errors::class_of_status(*status);
    let raised = errors::new(py, class, format!("{peer}: {status}"));
    // Without it the exception still has the sentence.
    let _ = raised.value(py).setattr("completion", done);
    raised
}

#[pymethods]
impl Completion {
    /// The finished operation.
    #[getter]
    fn operation(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        static MEMBERS: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
        Ok(enums::members(py, &MEMBERS, "Operation")?[self.operation as usize].clone_ref(py))
    }

    /// The result.
    #[getter]
    fn status(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        static MEMBERS: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
        Ok(enums::members(py, &MEMBERS, "Status")?[self.status as usize].clone_ref(py))
    }

    /// Whether it succeeded.
    #[getter]
    fn ok(&self) -> bool {
        self.status.is_success()
    }

    /// The object that the program gave the descriptor; `None` for events.
    #[getter]
    fn context(&self, py: Python<'_>) -> Py<PyAny> {
        self.context.clone_ref(py)
    }

    /// The other side: of a receive or event the sender, otherwise the destination.
    #[getter]
    fn peer(&self) -> Address {
        Address(self.peer)
    }

    /// The number of the queue pair. For a shared receive: the one that the message was sent to.
    #[getter]
    fn queue_pair(&self) -> u32 {
        self.queue_pair
    }

    /// Bytes moved. After a failure: bytes that have certainly been moved.
    #[getter]
    fn length(&self) -> usize {
        self.length
    }

    /// The sender's immediate value.
    #[getter]
    fn immediate(&self) -> Option<u64> {
        self.immediate
    }

    /// The previous value of an atomic; 0 otherwise.
    #[getter]
    fn value(&self) -> u64 {
        self.value
    }

    /// The object that was posted; `None` for events and atomics.
    #[getter]
    fn buffer(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.buffers.first().map(|buffer| buffer.clone_ref(py))
    }

    /// All objects that were posted, in order.
    #[getter]
    fn buffers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.buffers.iter().map(|buffer| buffer.clone_ref(py)))
    }

    /// The bytes that were moved, as a memoryview of the first posted object. Nothing is copied.
    pub fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = match self.buffers.first() {
            Some(buffer) => region::bytes_of(buffer.bind(py))?,
            None => PyMemoryView::from(&PyBytes::new(py, b""))?.into_any(),
        };
        bytes.get_item(PySlice::new(py, 0, self.length as isize, 1))
    }

    /// The bytes that were moved, as a NumPy array of one dimension on the memory that was posted.
    /// Without `dtype` it has that of the posted array, and of other memory bytes.
    #[pyo3(signature = (dtype = None))]
    fn array<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = py.import("numpy")?;
        let dtype = match (dtype, self.buffers.first()) {
            (Some(dtype), _) => dtype,
            (None, Some(buffer)) if buffer.bind(py).is_instance(&numpy.getattr("ndarray")?)? => {
                buffer.bind(py).getattr("dtype")?
            }
            (None, _) => PyString::new(py, "u1").into_any(),
        };
        numpy.call_method1("frombuffer", (self.view(py)?, dtype))
    }

    /// This completion, if it succeeded.
    ///
    /// Raises: `PeerGone`, `Unreachable`, `NoSuchQueuePair`, `NotPermitted`, `Truncated`, `Flushed`
    /// or `ProtocolViolation`, with this as `completion`.
    fn check(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        if slf.get().status.is_success() { Ok(slf) } else { Err(failure(py, &slf)) }
    }

    fn __repr__(&self) -> String {
        let Completion { operation, status, length, peer, .. } = self;
        format!("<Completion {operation:?} {status:?}, {length} B, peer {peer}>")
    }
}
