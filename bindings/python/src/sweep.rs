//! Sweeps: points, rows and the journal, for `bellwire._sweep`. Rows travel as lines of JSON.

use crate::errors;
use bellwire_papers::page::chart::Chart;
use bellwire_sweep::{Cell, EXAMPLE, Journal, Kind, Row, Sweep, page, run};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The classes and functions of the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySweep>()?;
    module.add_class::<PyJournal>()?;
    module.add_function(wrap_pyfunction!(_sweep_example, module)?)
}

#[pyfunction]
fn _sweep_example() -> &'static str {
    EXAMPLE
}

fn wrong(py: Python<'_>, why: impl ToString) -> PyErr {
    errors::new(py, "ModelError", why.to_string())
}

/// A sweep.
#[pyclass(name = "_Sweep", module = "bellwire._bellwire", frozen)]
pub struct PySweep(Sweep);

#[pymethods]
impl PySweep {
    #[new]
    fn new(py: Python<'_>, text: &str) -> PyResult<PySweep> {
        let sweep = Sweep::read(text).map_err(|error| wrong(py, error))?;
        sweep.within_limit(&(0..sweep.points())).map_err(|error| wrong(py, error))?;
        Ok(PySweep(sweep))
    }

    #[getter]
    fn points(&self) -> u64 {
        self.0.points()
    }

    #[getter]
    fn identity(&self) -> &str {
        self.0.identity()
    }

    /// Name and kind of each column.
    #[getter]
    fn columns(&self) -> Vec<(String, &'static str)> {
        let kind = |kind| match kind {
            Kind::Integer => "integer",
            Kind::Real => "real",
            Kind::Flag => "flag",
            Kind::Text => "text",
        };
        self.0.columns().into_iter().map(|column| (column.name, kind(column.kind))).collect()
    }

    /// Drawings of rows: each figure against each axis.
    fn drawings(&self, py: Python<'_>, rows: Vec<String>) -> PyResult<Vec<String>> {
        let rows = rows.iter().map(|row| serde_json::from_str(row));
        let rows: Vec<Row> = rows.collect::<Result<_, _>>().map_err(|error| wrong(py, error))?;
        Ok(page::charts(&self.0, &rows).iter().map(Chart::file).collect())
    }

    /// Runs points in this thread, and returns their rows.
    fn run(&self, py: Python<'_>, points: Vec<u64>) -> PyResult<Vec<String>> {
        let mut rows = Vec::with_capacity(points.len());
        for point in points {
            py.check_signals()?;
            if point >= self.0.points() {
                return Err(wrong(py, format!("there is no point {point}")));
            }
            let row = py.detach(|| self.0.run(point));
            rows.push(serde_json::to_string(&row).map_err(|error| wrong(py, error))?);
        }
        Ok(rows)
    }
}

/// The journal of a sweep.
#[pyclass(name = "_Journal", module = "bellwire._bellwire", frozen)]
pub struct PyJournal {
    sweep: Py<PySweep>,
    journal: Mutex<Option<Journal>>,
}

impl PyJournal {
    fn with<T>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Journal) -> Result<T, String>,
    ) -> PyResult<T> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let journal = journal.as_mut().ok_or_else(|| wrong(py, "the journal is closed"))?;
        call(journal).map_err(|why| wrong(py, why))
    }
}

#[pymethods]
impl PyJournal {
    /// Opens the journal beside a file of results.
    #[new]
    fn new(py: Python<'_>, results: PathBuf, sweep: Py<PySweep>) -> PyResult<PyJournal> {
        let of = &sweep.get().0;
        let opened = Journal::open(&Journal::beside(&results), of, 0..of.points());
        let journal = Mutex::new(Some(opened.map_err(|error| wrong(py, error))?));
        Ok(PyJournal { sweep, journal })
    }

    /// The points without a row.
    fn missing(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.with(py, |journal| Ok(journal.missing()))
    }

    /// Keeps rows.
    fn append(&self, py: Python<'_>, rows: Vec<String>) -> PyResult<()> {
        self.with(py, |journal| {
            for row in rows {
                let row: Row = serde_json::from_str(&row).map_err(|error| error.to_string())?;
                journal.append(row).map_err(|error| error.to_string())?;
            }
            Ok(())
        })
    }

    /// Runs what is missing on all cores of this machine. `told` is called with the number of rows
    /// that are new; what it raises, or a signal handler does, ends the run.
    fn run(&self, py: Python<'_>, told: &Bound<'_, PyAny>) -> PyResult<()> {
        let missing = self.missing(py)?;
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let told = told.clone().unbind();
        let mut result = Ok(());
        py.detach(|| {
            run(&self.sweep.get().0, &missing, threads, |row| {
                let kept = Python::try_attach(|py| {
                    self.with(py, |journal| journal.append(row).map_err(|why| why.to_string()))?;
                    py.check_signals()?;
                    told.call1(py, (1,)).map(drop)
                });
                match kept {
                    Some(Err(error)) => {
                        result = Err(error);
                        ControlFlow::Break(())
                    }
                    // The interpreter ends.
                    None => ControlFlow::Break(()),
                    Some(Ok(())) => ControlFlow::Continue(()),
                }
            });
        });
        result
    }

    /// The values of each column, by the number of the point.
    fn values(&self, py: Python<'_>) -> PyResult<Vec<Vec<Py<PyAny>>>> {
        let sweep = &self.sweep.get().0;
        let rows: Vec<Row> = self.with(py, |journal| Ok(journal.rows().cloned().collect()))?;
        let mut columns: Vec<Vec<Py<PyAny>>> =
            sweep.columns().iter().map(|_| Vec::with_capacity(rows.len())).collect();
        for row in &rows {
            for (column, cell) in columns.iter_mut().zip(sweep.cells(row)) {
                column.push(match cell {
                    Cell::Nothing => py.None(),
                    Cell::Integer(number) => number.into_py_any(py)?,
                    Cell::Real(number) => number.into_py_any(py)?,
                    Cell::Flag(yes) => yes.into_py_any(py)?,
                    Cell::Text(text) => text.into_py_any(py)?,
                });
            }
        }
        Ok(columns)
    }

    /// Closes it, and removes its file if the results are elsewhere.
    fn close(&self, py: Python<'_>, remove: bool) -> PyResult<()> {
        let journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner).take();
        match journal {
            Some(journal) if remove => journal.remove().map_err(|error| wrong(py, error)),
            _ => Ok(()),
        }
    }
}
