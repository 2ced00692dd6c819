//! Listening, and requests for connections.

use crate::address::Address;
use crate::queue_pair::QueuePair;
use crate::shared::{self, Shared};
use bellwire::Wait;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::sync::{Arc, Mutex, PoisonError};

/// A number on which connection requests arrive. As a context manager it stops at the end.
#[pyclass(frozen, module = "bellwire")]
pub struct Listener {
    pub shared: Arc<Shared>,
    pub listener: bellwire::Listener,
}

#[pymethods]
impl Listener {
    /// The number that peers connect to.
    #[getter]
    fn number(&self) -> u32 {
        self.listener.number
    }

    /// The oldest request, or `None`.
    fn poll_request(&self, py: Python<'_>) -> PyResult<Option<ConnectionRequest>> {
        let request = self.shared.call(py, |function| function.poll_request(self.listener))?;
        Ok(request.map(|request| ConnectionRequest::new(self.shared.clone(), request)))
    }

    /// The next request. Waits for it, at most `timeout` seconds; then raises `TimedOut`.
    #[pyo3(signature = (timeout = None))]
    fn wait_request(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<ConnectionRequest> {
        let timeout = shared::timeout(timeout)?;
        let request =
            self.shared.wait_for(
                py,
                Wait::Adaptive,
                timeout,
                |function, progress| match progress {
                    true => function.poll_request(self.listener),
                    false => function.next_request(self.listener),
                },
            )?;
        Ok(ConnectionRequest::new(self.shared.clone(), request))
    }

    /// Stops listening. Requests that wait are refused.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.call(py, |function| function.stop_listening(self.listener))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        // It was stopped before, if this fails.
        let _ = self.stop(py);
    }
}

/// A peer's request for a connection. If it is not answered, the peer waits until its deadline.
#[pyclass(frozen, module = "bellwire")]
pub struct ConnectionRequest {
    shared: Arc<Shared>,
    peer: bellwire::Address,
    private_data: Vec<u8>,
    /// `None` once it is answered.
    request: Mutex<Option<bellwire::ConnectionRequest>>,
}

impl ConnectionRequest {
    fn new(shared: Arc<Shared>, request: bellwire::ConnectionRequest) -> ConnectionRequest {
        let (peer, private_data) = (request.peer, request.private_data.clone());
        ConnectionRequest { shared, peer, private_data, request: Mutex::new(Some(request)) }
    }

    fn take(&self) -> PyResult<bellwire::ConnectionRequest> {
        let request = self.request.lock().unwrap_or_else(PoisonError::into_inner).take();
        request.ok_or_else(|| PyValueError::new_err("this request has been answered already"))
    }
}

#[pymethods]
impl ConnectionRequest {
    /// The queue pair that asks.
    #[getter]
    fn peer(&self) -> Address {
        Address(self.peer)
    }

    /// What the peer says with it.
    #[getter]
    fn private_data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.private_data)
    }

    /// Accepts: the queue pair is then connected to the peer.
    #[pyo3(signature = (queue_pair, private_data = None))]
    fn accept(
        &self,
        py: Python<'_>,
        queue_pair: &QueuePair,
        private_data: Option<&[u8]>,
    ) -> PyResult<()> {
        let (request, data) = (self.take()?, private_data.unwrap_or_default());
        self.shared.call(py, |function| function.accept(request, queue_pair.native(), data))
    }

    /// Refuses: the peer's `connect` raises `Rejected` with the private data as its reason.
    #[pyo3(signature = (private_data = None))]
    fn reject(&self, py: Python<'_>, private_data: Option<&[u8]>) -> PyResult<()> {
        let (request, data) = (self.take()?, private_data.unwrap_or_default());
        self.shared.call(py, |function| function.reject(request, data))
    }
}
