//! A sweep's points on Dask or Ray: the Python package hands them over, and prints their rows.

use anyhow::{Context, Result, bail};
use bellwire_sweep::{Row, Sweep, VERSION};
use serde::Serialize;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::ops::ControlFlow;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::JoinHandle;

/// Ends with a sentence if the package is missing.
const START: &str = "
import sys
try:
    from bellwire import _engine
except ImportError as why:
    sys.exit(f\"{sys.executable} has no package `bellwire` that knows engines ({why}); install it there: \"
             \"pip install 'bellwire[dask]' or 'bellwire[ray]', or a wheel of `make package`\")
_engine.main(sys.argv[1])
";

/// The last bytes of what Python says that are kept.
const TOLD_BYTES: usize = 16 << 10;

/// Where a cluster is: `dask://HOST:PORT`, `ray://HOST:PORT`, `ray:HOST:PORT` or `ray:auto`.
#[derive(Clone, Debug, PartialEq)]
pub struct Engine(String);

/// What Python is asked to run.
#[derive(Serialize)]
struct Order<'a> {
    version: &'a str,
    sweep: &'a str,
    points: &'a [u64],
}

impl std::str::FromStr for Engine {
    type Err = String;

    fn from_str(address: &str) -> Result<Engine, String> {
        let forms = ["dask://", "ray://", "ray:"];
        let place = forms.iter().find_map(|form| address.strip_prefix(form)).unwrap_or("");
        let has_port = place.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok()
        });
        match has_port || address == "ray:auto" {
            true => Ok(Engine(address.to_owned())),
            false => {
                Err("write dask://HOST:PORT, ray://HOST:PORT, ray:HOST:PORT or ray:auto".into())
            }
        }
    }
}

impl Engine {
    /// Runs points there, and tells each row, in the order in which they come. `tell` may stop it.
    pub fn run(
        &self,
        sweep: &Sweep,
        points: &[u64],
        mut tell: impl FnMut(Row) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut python = Command::new("python3");
        python.args(["-c", START, &self.0]).stdin(order(sweep, points)?);
        python.stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = python.spawn().context(
            "cannot start python3, whose package `bellwire` hands points to Dask and Ray; install both",
        )?;
        let mut python = Started(started);
        let told = python.0.stderr.take().map(keep_end);

        let mut left: HashSet<u64> = points.iter().copied().collect();
        for line in BufReader::new(python.0.stdout.take().context("no pipe from python3")?).lines()
        {
            let line = line.context("python3 prints no text")?;
            let row: Row = serde_json::from_str(&line)
                .with_context(|| format!("python3 printed `{line}`, which is no row"))?;
            if !left.remove(&row.point) {
                bail!("python3 gave point {} twice, or unasked", row.point);
            }
            if tell(row).is_break() {
                return Ok(());
            }
        }
        let status = python.0.wait()?;
        let told = told.and_then(|reader| reader.join().ok()).unwrap_or_default();
        if status.success() && left.is_empty() {
            return Ok(());
        }
        let why = told.lines().rev().find(|line| !line.trim().is_empty());
        bail!(
            "{}: {}; {} points are left, and the same command goes on with them",
            self.0,
            why.map_or_else(|| format!("python3 ended ({status})"), str::to_owned),
            left.len()
        )
    }
}

/// What Python is asked to run, as its standard input. That is no pipe, which would end this
/// process if Python ended first.
fn order(sweep: &Sweep, points: &[u64]) -> Result<Stdio> {
    let order = Order { version: VERSION, sweep: sweep.text(), points };
    let memory = rustix::fs::memfd_create("sweep", rustix::fs::MemfdFlags::CLOEXEC)
        .context("cannot make a file in memory")?;
    let mut file = File::from(memory);
    file.write_all(&serde_json::to_vec(&order)?)?;
    file.rewind()?;
    Ok(file.into())
}

/// Python, which ends with this.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads to the end, and returns the last part.
fn keep_end(mut from: ChildStderr) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut kept, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(length @ 1..) = from.read(&mut piece) {
            kept.extend_from_slice(&piece[..length]);
            if kept.len() > 2 * TOLD_BYTES {
                kept.drain(..kept.len() - TOLD_BYTES);
            }
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
}
