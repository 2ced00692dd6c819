//! A bench as a process: built by Verilator and c++, driven through pipes.
//!
//! A process and not a library: gates that a mutation broke may abort or hang, and the runner
//! must survive that.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};

use crate::tools::{Tools, run};

/// What to build.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The name of the top module.
    pub top: String,
    /// Sources, from the repository's root.
    pub sources: Vec<PathBuf>,
    /// Parameters of the top module.
    pub parameters: Vec<(String, u64)>,
    /// What is made of it.
    pub kind: Kind,
}

/// What is made of a bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A program for [`Simulation`].
    Program,
    /// The same; the bench has an input that selects a mutant.
    Mutants,
    /// A library for the device `rtl:chpp`, with the hash of its ports.
    Library(u64),
}

impl Recipe {
    /// Builds the program or library, unless it is there already, and returns its path.
    ///
    /// # Errors
    /// What Verilator or the compiler says.
    pub fn build(&self, tools: &Tools) -> Result<PathBuf> {
        let verilator = tools.verilator()?;
        let main = match self.kind {
            Kind::Library(_) => "hardware/runner/src/library.cpp",
            Kind::Program | Kind::Mutants => "hardware/runner/src/simulation.cpp",
        };
        let main = tools.root.join(main);
        let mut hasher = DefaultHasher::new();
        (&self.top, &self.parameters, self.kind, self.optimization()).hash(&mut hasher);
        for source in self.sources.iter().chain([&main]) {
            fs::read(tools.root.join(source))
                .with_context(|| format!("cannot read {}", source.display()))?
                .hash(&mut hasher);
        }
        let folder = tools.out.join(format!("sim/{}-{:016x}", self.top, hasher.finish()));
        let program = folder.join("run");
        if program.exists() {
            return Ok(program);
        }
        fs::create_dir_all(&folder)?;
        let mut translate = Command::new(verilator.join("bin/verilator_bin"));
        translate.env("VERILATOR_ROOT", &verilator).current_dir(&tools.root);
        translate.args([
            "--cc",
            "-Wno-fatal",
            "-O3",
            "--x-assign",
            "fast",
            "--x-initial",
            "unique",
        ]);
        translate.args(["--noassert", "--prefix", "Bench", "--top-module", &self.top, "--Mdir"]);
        translate.arg(&folder);
        let parameters = self.parameters.iter().map(|(name, value)| format!("-G{name}={value}"));
        run(translate.args(parameters).args(&self.sources))?;

        let mut compile = Command::new("c++");
        compile.args([
            "-std=c++20",
            self.optimization(),
            "-fno-plt",
            "-DBENCH=Bench",
            "-DBENCH_HEADER=\"Bench.h\"",
        ]);
        compile.args(["-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0", "-w"]);
        match self.kind {
            Kind::Program => {}
            Kind::Mutants => {
                compile.arg("-DMUTANTS");
            }
            Kind::Library(layout) => {
                compile.args(["-shared", "-fPIC", &format!("-DLAYOUT={layout}u")]);
            }
        }
        compile.arg("-I").arg(&folder).arg("-I").arg(verilator.join("include"));
        compile.arg("-I").arg(verilator.join("include/vltstd"));
        // As one unit, because reading Verilator's headers takes longer than all the rest.
        let mut unit = String::new();
        for entry in folder.read_dir()?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".cpp") && name != "unit.cpp" {
                unit += &format!("#include \"{name}\"\n");
            }
        }
        unit += &format!("#include \"{}\"\n", main.display());
        let file = folder.join("unit.cpp");
        fs::write(&file, unit)?;
        // Linked last under its own name, so that a build that was cut off is not taken for whole.
        let unfinished = folder.join("unfinished");
        compile.arg(&file).arg(runtime(tools, &verilator)?).args(["-pthread", "-o"]);
        run(compile.arg(&unfinished))?;
        fs::rename(&unfinished, &program)?;
        Ok(program)
    }

    /// How much the compiler does. A debug build of this program spends its time in the model, so
    /// gates beside it need not be fast, and are compiled in half the time.
    fn optimization(&self) -> &'static str {
        let is_beside_model = !matches!(self.kind, Kind::Library(_));
        if is_beside_model && cfg!(debug_assertions) { "-O1" } else { "-O2" }
    }
}

/// Verilator's run-time, compiled once for all benches, programs and libraries.
fn runtime(tools: &Tools, verilator: &Path) -> Result<PathBuf> {
    static ONCE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one_at_a_time = ONCE.lock();
    let object = tools.out.join("runtime.o");
    if !object.exists() {
        let unfinished = tools.out.join("runtime.unfinished.o");
        let mut compile = Command::new("c++");
        compile.args(["-std=c++20", "-O2", "-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0"]);
        compile.args(["-DVM_TRACE=0", "-fPIC", "-w", "-c", "-I"]).arg(verilator.join("include"));
        compile.arg("-I").arg(verilator.join("include/vltstd"));
        let all = tools.out.join("verilated_all.cpp");
        fs::write(&all, "#include \"verilated.cpp\"\n#include \"verilated_threads.cpp\"\n")?;
        run(compile.arg(&all).arg("-o").arg(&unfinished))?;
        fs::rename(&unfinished, &object)?;
    }
    Ok(object)
}

/// A bench that runs.
pub struct Simulation {
    process: Child,
    inputs: ChildStdin,
    outputs: ChildStdout,
}

impl Simulation {
    /// Starts a program that [`Recipe::build`] made. `mutant` 0 is none.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(program: &Path, mutant: usize) -> Result<Simulation> {
        let mut process = Command::new(program)
            .arg(mutant.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let inputs = process.stdin.take().expect("piped");
        let outputs = process.stdout.take().expect("piped");
        Ok(Simulation { process, inputs, outputs })
    }

    /// Runs `cycles` cycles; records of 64-bit words lie one behind the other.
    ///
    /// # Errors
    /// If the program ended.
    pub fn run(&mut self, cycles: usize, inputs: &[u64], outputs: &mut [u64]) -> Result<()> {
        let mut bytes = (cycles as u32).to_le_bytes().to_vec();
        bytes.extend(inputs.iter().flat_map(|word| word.to_le_bytes()));
        self.inputs.write_all(&bytes).context("the simulation ended")?;
        self.inputs.flush()?;
        bytes.resize(outputs.len() * 8, 0);
        self.outputs.read_exact(&mut bytes).context("the simulation ended")?;
        for (word, bytes) in outputs.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight"));
        }
        Ok(())
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // It may hang, if its gates were changed. Both calls only fail if it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
