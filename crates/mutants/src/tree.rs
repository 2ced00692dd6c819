//! The copy of the sources that the mutants are built in.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::insert::{self, Place};
use crate::list::Mutant;

/// A copy of a checkout, with mutants in it.
pub struct Tree {
    top: PathBuf,
    /// Where the mutants of each file stand.
    places: BTreeMap<String, Vec<Place>>,
    /// The matches in each file whose arms are mutants.
    matches: BTreeMap<String, Vec<Place>>,
}

/// A test program of the copy.
#[derive(Clone, Debug)]
pub struct Program {
    pub package: String,
    /// The name of its target: of the library, or of a file in `tests/`.
    pub target: String,
    pub executable: PathBuf,
    /// Where cargo would run it.
    pub folder: PathBuf,
}

impl Tree {
    /// Copies what git knows of the checkout at `from` to `to`. Files that did not change keep
    /// their times, so that they are not built again.
    ///
    /// # Errors
    /// git fails, or a file cannot be read or written.
    pub fn copy(from: &Path, to: &Path) -> Result<Self> {
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(from)
            .output()
            .context("git ls-files")?;
        ensure!(listed.status.success(), "git ls-files ended with {}", listed.status);
        let files: BTreeSet<&str> = std::str::from_utf8(&listed.stdout)?
            .split('\0')
            .filter(|file| !file.is_empty() && from.join(file).is_file())
            .collect();
        remove_others(to, to, &files)?;
        for file in files {
            // Sources are written once they have their switches.
            if !file.ends_with(".rs") || !to.join(file).exists() {
                write(
                    &to.join(file),
                    &fs::read(from.join(file)).with_context(|| file.to_owned())?,
                )?;
                let mode = fs::metadata(from.join(file))?.permissions();
                fs::set_permissions(to.join(file), mode)?;
            }
        }
        let switch = to.join("crates/mutant-switch");
        write(&switch.join("lib.rs"), include_bytes!("../switch/lib.rs"))?;
        write(&switch.join("Cargo.toml"), include_bytes!("../switch/Cargo.toml.in"))?;
        Ok(Self { top: to.to_owned(), places: BTreeMap::new(), matches: BTreeMap::new() })
    }

    /// Puts `mutants` into the copy, from the sources at `from`, and returns those that have no
    /// place.
    ///
    /// # Errors
    /// A source cannot be read or written, or is not Rust.
    pub fn put(&mut self, from: &Path, mutants: &[(u32, &Mutant)]) -> Result<Vec<u32>> {
        let mut by_file: BTreeMap<&str, Vec<(u32, &Mutant)>> = BTreeMap::new();
        for &(id, mutant) in mutants {
            by_file.entry(&mutant.file).or_default().push((id, mutant));
        }
        self.places.clear();
        self.matches.clear();
        let mut unplaced = Vec::new();
        for file in sources(from, from)? {
            let source = fs::read_to_string(from.join(&file)).with_context(|| file.clone())?;
            let text = match by_file.get(file.as_str()) {
                None => source,
                Some(mutants) => {
                    let switched =
                        insert::insert(&source, mutants).with_context(|| file.clone())?;
                    unplaced.extend(switched.unplaced);
                    self.places.insert(file.clone(), switched.places);
                    self.matches.insert(file.clone(), switched.matches);
                    switched.text
                }
            };
            write(&self.top.join(&file), text.as_bytes())?;
        }
        self.depend(mutants)?;
        Ok(unplaced)
    }

    /// Lets each package with mutants depend on the switch.
    fn depend(&self, mutants: &[(u32, &Mutant)]) -> Result<()> {
        let folders: HashSet<&str> = mutants
            .iter()
            .filter_map(|(_, it)| it.file.split_once("/src/"))
            .map(|it| it.0)
            .collect();
        for folder in folders {
            let path = self.top.join(folder).join("Cargo.toml");
            let manifest = fs::read_to_string(&path)?;
            let line = "mutant-switch = { path = \"../../crates/mutant-switch\" }\n";
            if !manifest.contains(line) {
                let heading = "\n[dependencies]\n";
                ensure!(manifest.contains(heading), "{} has no dependencies", path.display());
                write(&path, manifest.replace(heading, &format!("{heading}{line}")).as_bytes())?;
            }
        }
        Ok(())
    }

    /// Puts one mutant into the copy, without a switch.
    ///
    /// # Errors
    /// A source cannot be read or written.
    pub fn put_alone(&mut self, from: &Path, mutant: &Mutant) -> Result<()> {
        self.put(from, &[])?;
        let mut source = fs::read_to_string(from.join(&mutant.file))?;
        let span = mutant.span.bytes(&source).context("a mutant outside of its file")?;
        source.replace_range(span, &mutant.replacement);
        write(&self.top.join(&mutant.file), source.as_bytes())
    }

    /// Builds the test programs that cargo selects with `selection`, or returns the mutants that
    /// do not compile.
    ///
    /// # Errors
    /// The build fails for another reason.
    pub fn build(&self, selection: &[String], target: &Path) -> Result<Built> {
        // A check is cheaper than a build, and finds the faults of all crates at once.
        for task in [&["check", "--keep-going"], &["test", "--no-run"]] {
            let cargo = self.cargo(task, selection, target)?;
            let faulty: BTreeSet<u32> =
                cargo.errors.iter().flat_map(|error| self.blamed(error)).collect();
            if !faulty.is_empty() {
                return Ok(Built::Without(faulty));
            }
            if let Some(failure) = cargo.failure {
                let errors = cargo.errors.iter().filter_map(|error| error["rendered"].as_str());
                bail!("{failure}\n{}", errors.collect::<String>());
            }
            if task[0] == "test" {
                return Ok(Built::Programs(cargo.programs));
            }
        }
        unreachable!("the last task is `test`")
    }

    /// Builds the test programs with the mutant that is put in alone.
    ///
    /// # Errors
    /// cargo cannot be run, or fails for another reason than the sources, such as a full disk.
    pub fn build_alone(&self, selection: &[String], target: &Path) -> Result<Alone> {
        let cargo = self.cargo(&["test", "--no-run"], selection, target)?;
        let Some(failure) = cargo.failure else { return Ok(Alone::Programs(cargo.programs)) };
        let points = |error: &Value| error["spans"].as_array().is_some_and(|it| !it.is_empty());
        ensure!(cargo.errors.iter().any(points), "{failure}");
        // An overflow in a constant is no assertion: the mutant does not compile.
        let asserts = |error: &Value| error.to_string().contains("evaluation panicked");
        Ok(if cargo.errors.iter().any(asserts) { Alone::Asserted } else { Alone::Unviable })
    }

    fn cargo(&self, task: &[&str], selection: &[String], target: &Path) -> Result<Cargo> {
        let built = Command::new("cargo")
            .args(task)
            .args(selection)
            .arg("--message-format=json")
            .current_dir(&self.top)
            .env("CARGO_TARGET_DIR", target)
            // For the switch, which must be asked in constant functions, too.
            .env("RUSTC_BOOTSTRAP", "mutant_switch")
            .stdin(Stdio::null())
            .output()
            .context("cargo")?;
        let mut cargo = Cargo::default();
        for line in std::str::from_utf8(&built.stdout)?.lines() {
            let mut message: Value = serde_json::from_str(line)?;
            match message["reason"].as_str() {
                Some("compiler-artifact") => cargo.programs.extend(self.program(&message)),
                Some("compiler-message") if message["message"]["level"] == "error" => {
                    cargo.errors.push(message["message"].take());
                }
                _ => {}
            }
        }
        if !built.status.success() {
            let said = String::from_utf8_lossy(&built.stderr);
            cargo.failure = Some(format!("cargo {} ended with {}:\n{said}", task[0], built.status));
        }
        Ok(cargo)
    }

    fn program(&self, artifact: &Value) -> Option<Program> {
        let is_test = artifact["profile"]["test"] == true;
        let executable = artifact["executable"].as_str().filter(|_| is_test)?;
        let manifest = Path::new(artifact["manifest_path"].as_str()?);
        let folder = manifest.parent()?.to_owned();
        // path+file:///.../crates/ring#bellwire-ring@0.1.0, or .../crates/fixture#0.1.0 if the
        // folder has the name of the package.
        let (path, name) = artifact["package_id"].as_str()?.rsplit_once('#')?;
        let package = match name.split_once('@') {
            Some((package, _)) => package.to_owned(),
            None => path.rsplit('/').next()?.to_owned(),
        };
        let target = artifact["target"]["name"].as_str()?.to_owned();
        Some(Program { package, target, executable: executable.into(), folder })
    }

    /// The mutants that an error of the compiler speaks of: the one whose text it points into, or
    /// else those of the innermost expression around it.
    fn blamed(&self, message: &Value) -> BTreeSet<u32> {
        let mut blamed = BTreeSet::new();
        let empty = Vec::new();
        let spans = message["spans"].as_array().unwrap_or(&empty);
        // A match that does not cover all that there is: of its arms some must stay.
        let all_places =
            if message["code"]["code"] == "E0004" { &self.matches } else { &self.places };
        for primary in [true, false] {
            for span in spans.iter().filter(|span| span["is_primary"] == primary) {
                let span = outside_of_macros(span);
                let file = span["file_name"].as_str().unwrap_or_default();
                let (Some(begin), Some(end)) =
                    (span["byte_start"].as_u64(), span["byte_end"].as_u64())
                else {
                    continue;
                };
                let (begin, end) = (begin as usize, end as usize);
                let places = all_places.get(file).map_or(&[][..], Vec::as_slice);
                let inside = |place: &&Place| place.range.start <= begin && end <= place.range.end;
                let touches = |place: &&Place| place.range.start < end && begin < place.range.end;
                if let Some(place) = places.iter().find(inside).or(places.iter().find(touches)) {
                    blamed.extend(&place.mutants);
                }
            }
            if !blamed.is_empty() {
                break;
            }
        }
        blamed
    }
}

/// Where the source has what an error of the compiler speaks of.
fn outside_of_macros(span: &Value) -> &Value {
    let mut span = span;
    while span["expansion"].is_object() {
        span = &span["expansion"]["span"];
    }
    span
}

/// What came of the build of a single mutant.
pub enum Alone {
    Programs(Vec<Program>),
    /// An assertion that the compiler evaluates fails.
    Asserted,
    /// It does not compile.
    Unviable,
}

/// What cargo says of a task.
#[derive(Default)]
struct Cargo {
    programs: Vec<Program>,
    /// What the compiler refuses.
    errors: Vec<Value>,
    /// How it ended, if it failed.
    failure: Option<String>,
}

/// What came of a build.
pub enum Built {
    Programs(Vec<Program>),
    /// These mutants do not compile.
    Without(BTreeSet<u32>),
}

/// The Rust files below `folder`, from `top`.
fn sources(top: &Path, folder: &Path) -> Result<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.rs"])
        .current_dir(folder)
        .output()?;
    Ok(std::str::from_utf8(&listed.stdout)?
        .split('\0')
        .filter(|file| !file.is_empty() && top.join(file).is_file())
        .map(str::to_owned)
        .collect())
}

/// Writes a file if it does not hold that already.
fn write(path: &Path, contents: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == contents) {
        return Ok(());
    }
    let parent = path.parent().context("a path without a folder")?;
    fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    fs::write(path, contents).with_context(|| path.display().to_string())
}

/// Removes files of an earlier copy that are not among `files`.
fn remove_others(top: &Path, folder: &Path, files: &BTreeSet<&str>) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(top, &path, files)?;
        } else if !files.contains(path.strip_prefix(top)?.to_str().unwrap_or_default()) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
