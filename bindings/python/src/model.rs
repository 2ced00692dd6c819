//! The models: runs, explanations and the papers' experiments, as JSON for `bellwire.model`.

use crate::awaited::awaited;
use crate::errors;
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{other, single_on};
use bellwire_model::chpp::{self, Config, picture};
use bellwire_model::load::Load;
use bellwire_model::system::{Paper, SYSTEMS, System};
use bellwire_model::{goal, network};
use bellwire_papers::page::chart::charts;
use pyo3::prelude::*;

/// The functions of the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_model_systems, module)?)?;
    module.add_function(wrap_pyfunction!(_model_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(_model_example, module)?)?;
    module.add_function(wrap_pyfunction!(_model_run, module)?)?;
    module.add_function(wrap_pyfunction!(_model_explain, module)?)?;
    module.add_function(wrap_pyfunction!(_model_experiment, module)?)
}

fn wrong(py: Python<'_>, why: impl ToString) -> PyErr {
    errors::new(py, "ModelError", why.to_string())
}

fn json(py: Python<'_>, object: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(object).map_err(|error| wrong(py, error))
}

fn system(py: Python<'_>, name: &str) -> PyResult<&'static System> {
    System::named(name).map_err(|why| wrong(py, format!("there is no model \"{name}\"; {why}")))
}

type Experiments = Vec<(&'static str, &'static str)>;

/// Of each system: name, paper if it has one, title, and its experiments with their titles.
#[pyfunction]
fn _model_systems() -> Vec<(&'static str, Option<&'static str>, &'static str, Experiments)> {
    let experiments = |paper: Paper| {
        paper.experiments.iter().map(|experiment| (experiment.id, experiment.title)).collect()
    };
    let row = |s: &System| {
        let experiments = s.paper.map(experiments).unwrap_or_default();
        (s.name, s.paper.map(|paper| paper.name), s.title, experiments)
    };
    SYSTEMS.iter().map(row).collect()
}

#[pyfunction]
fn _model_parameters(py: Python<'_>, name: &str) -> PyResult<&'static str> {
    Ok(system(py, name)?.parameters)
}

#[pyfunction]
fn _model_example(py: Python<'_>, name: &str) -> PyResult<&'static str> {
    match name {
        "chpp" => Ok(chpp::workload::EXAMPLE),
        "network" => Ok(network::EXAMPLE),
        "schedule" => Ok(chpp::workload::SCHEDULE_EXAMPLE),
        "goal" => Ok(goal::EXAMPLE),
        _ => Err(wrong(
            py,
            format!("there is no example \"{name}\"; there are chpp, network, schedule, goal"),
        )),
    }
}

/// Runs a plan or a program, and returns its report. `schedule` gives the text of the program that
/// a plan names. `progress` is told the share done; if it raises, or a signal handler does, the run
/// ends.
#[pyfunction]
#[pyo3(signature = (text, schedule, progress = None))]
fn _model_run(
    py: Python<'_>,
    text: &str,
    schedule: &Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let mut raised = None;
    let read = Load::read(text, |path| {
        let text = schedule.call1((path,)).and_then(|text| text.extract::<String>());
        text.map_err(|error| {
            let why = error.to_string();
            raised = Some(error);
            why
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let mut load = read.map_err(|error| wrong(py, error))?;
    let outcome = awaited(py, progress.as_ref(), move |told| load.run(told))?;
    json(py, &outcome.map_err(|error| wrong(py, error))?)
}

/// Title, drawing, and of each interval: stage, cause of a wait, start and length in picoseconds.
type Explained = (String, String, Vec<(String, Option<String>, u64, u64)>);

#[pyfunction]
#[pyo3(signature = (op, length, config = None))]
fn _model_explain(
    py: Python<'_>,
    op: &str,
    length: u64,
    config: Option<&str>,
) -> PyResult<Explained> {
    let kind = match op {
        "nap-immediate" => Kind::NapImmediate,
        "nap-indirect" => Kind::NapIndirect,
        "put" => Kind::Put,
        "get" => Kind::Get,
        _ => {
            return Err(wrong(
                py,
                format!(
                    "there is no operation \"{op}\"; there are nap-immediate, nap-indirect, put, get"
                ),
            ));
        }
    };
    let config = match config {
        None => Config::prototype(),
        Some(text) => Config::parse(text).map_err(|error| wrong(py, error))?,
    };
    let title = format!("{}, {length} B, from node 0 to node {}", kind.name(), other(&config));
    let explanation = awaited(py, None, move |_| {
        single_on(&config, kind, length, |_| {}).map(|(run, _)| run.explanation)
    })?;
    let explanation = explanation.map_err(|error| wrong(py, error))?;
    let svg = picture::svg(&title, &explanation);
    let rows = explanation.intervals.iter().map(|interval| {
        let cause = interval.cause.map(|cause| cause.to_string());
        (interval.stage.to_string(), cause, interval.start.ps(), interval.length.ps())
    });
    Ok((title, svg, rows.collect()))
}

/// Runs an experiment of a paper, and returns its report and the drawings of it.
#[pyfunction]
fn _model_experiment(py: Python<'_>, name: &str, id: &str) -> PyResult<(String, Vec<String>)> {
    let paper = system(py, name)?.paper;
    let paper = paper.ok_or_else(|| wrong(py, format!("the model {name} is of no paper")))?;
    let experiments = paper.experiments;
    let experiment = experiments.iter().find(|experiment| experiment.id == id);
    let experiment = experiment.ok_or_else(|| {
        let names: Vec<&str> = experiments.iter().map(|experiment| experiment.id).collect();
        wrong(py, format!("there is no experiment \"{id}\"; there are {}", names.join(", ")))
    })?;
    let report = awaited(py, None, |_| experiment.run())?;
    let report = report.map_err(|error| wrong(py, format!("{id}: {error}")))?;
    let drawings = charts(&report).into_iter().map(|mut chart| {
        chart.title = format!("{id}: {}", chart.title);
        chart.file()
    });
    Ok((json(py, &report)?, drawings.collect()))
}
