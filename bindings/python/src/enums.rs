//! Enumerations of Python, whose members the binding returns and takes.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The members of an enumeration of `bellwire._enums`, in order.
pub fn members<'py>(
    py: Python<'py>,
    cache: &'static PyOnceLock<Vec<Py<PyAny>>>,
    name: &str,
) -> PyResult<&'py [Py<PyAny>]> {
    let members = cache.get_or_try_init(py, || -> PyResult<Vec<Py<PyAny>>> {
        let class = py.import("bellwire._enums")?.getattr(name)?;
        class.try_iter()?.map(|member| Ok(member?.unbind())).collect()
    })?;
    Ok(members)
}
