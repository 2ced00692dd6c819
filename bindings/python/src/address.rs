//! Addresses of queue pairs.

use bellwire::Address as Native;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::hash::{DefaultHasher, Hash, Hasher};

/// One queue pair of one function of one node. Its text is NODE.FUNCTION.QUEUEPAIR (`"2.0.5"`), or
/// NODE.FUNCTION.cCHANNEL (`"2.0.c7"`) for the member of a channel.
#[pyclass(frozen, eq, ord, module = "bellwire")]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(pub Native);

#[pymethods]
impl Address {
    /// The address of a text, or of three numbers.
    #[new]
    #[pyo3(signature = (node, function = 0, queue_pair = 1))]
    fn new(node: &Bound<'_, PyAny>, function: u8, queue_pair: u32) -> PyResult<Address> {
        if let Ok(text) = node.cast::<PyString>() {
            return parse(&text.to_string_lossy());
        }
        Ok(Address(Native::new(node.extract()?, function, queue_pair)))
    }

    /// The member of channel `number` in `function` of `node`.
    #[staticmethod]
    fn channel(node: u32, function: u8, number: u16) -> Address {
        Address(Native::channel(node, function, number))
    }

    /// Node number, unique inside one device name.
    #[getter]
    fn node(&self) -> u32 {
        self.0.node
    }

    /// Function number.
    #[getter]
    fn function(&self) -> u8 {
        self.0.function
    }

    /// Queue pair number inside the function.
    #[getter]
    fn queue_pair(&self) -> u32 {
        self.0.queue_pair
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Address('{}')", self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().0.to_string(),))
    }
}

fn parse(text: &str) -> PyResult<Address> {
    text.parse().map(Address).map_err(|error| PyValueError::new_err(format!("{error}")))
}

/// The address that a program gave: an `Address` or its text.
pub fn of(given: &Bound<'_, PyAny>) -> PyResult<Native> {
    if let Ok(address) = given.cast::<Address>() {
        return Ok(address.get().0);
    }
    match given.cast::<PyString>() {
        Ok(text) => Ok(parse(&text.to_string_lossy())?.0),
        Err(_) => {
            Err(PyTypeError::new_err("an address is an Address or its text, such as \"1.0.1\""))
        }
    }
}
