//! Mutants against tests: all that the ledger lacks, or a sample.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use siphasher::sip::SipHasher13;

use crate::ledger::{Ledger, Verdict};
use crate::list::{self, Mutant};
use crate::scope::Scope;
use crate::tests::{Ended, Test};
use crate::tree::{Alone, Built, Program, Tree};
use crate::{CONFORMANCE, PACKAGES, ledger_path};

/// Mutants that are built, and what tests them.
pub struct Campaign {
    top: PathBuf,
    /// A mutant's number is its index and one.
    mutants: Vec<Mutant>,
    /// Those that do not compile.
    unviable: BTreeSet<u32>,
    programs: Vec<Program>,
    scope: Scope,
}

impl Campaign {
    /// Runs every mutant of `packages` in the shard, and in one of the files or folders `parts` if
    /// there are any, that the ledger does not know against the tests of its package.
    ///
    /// Conformance, which takes by far the longest, comes last: it runs only those that these miss,
    /// and none that needs a build of its own.
    ///
    /// # Errors
    /// Listing or building fails, a test program cannot be run, or the ledger not be written.
    pub fn run(
        top: &Path,
        packages: &[String],
        features: &str,
        (k, n): (usize, usize),
        parts: &[String],
    ) -> Result<()> {
        let scope = Scope::read(top)?;
        let mut mutants = list::list(top, packages, &scope)?;
        let keys: BTreeMap<String, String> =
            mutants.iter().map(|it| (it.key.clone(), it.package.clone())).collect();
        let mut ledgers = BTreeMap::new();
        for package in packages {
            let whole = ledger_path(top, package);
            // Until the first run is whole, nobody draws samples from it.
            let path = if whole.exists() { whole } else { part_of(&whole) };
            let mut ledger = Ledger::open(&path)?;
            ledger.tidy(|key| keys.contains_key(key))?;
            ledgers.insert(package.clone(), ledger);
        }
        let verdict = |it: &Mutant| ledgers[&it.package].verdicts.get(&it.key);
        let mut index = 0;
        mutants.retain(|it| {
            index += 1;
            let is_in = parts.is_empty() || parts.iter().any(|part| it.file.starts_with(part));
            is_in && (index - 1) % n == k - 1 && verdict(it).is_none_or(|it| *it == Verdict::Passed)
        });
        let (alone, mutants): (Vec<_>, Vec<_>) = mutants.into_iter().partition(Mutant::is_alone);
        let (mut passed, new): (Vec<_>, Vec<_>) =
            mutants.into_iter().partition(|it| verdict(it).is_some());
        let ledgers = Mutex::new(ledgers);
        if !new.is_empty() {
            let campaign = Self::build(top, new, packages, features)?;
            let survivors =
                campaign.judge_all(&ledgers, |package| !scope.has_conformance(package))?;
            passed.extend(campaign.mutants.into_iter().filter(|it| survivors.contains(&it.key)));
        }
        for package in packages {
            let mut ledgers = ledgers.lock().expect("no panic");
            let ledger = ledgers.get_mut(package).expect("opened");
            let theirs: Vec<&Mutant> =
                alone.iter().filter(|mutant| mutant.package == *package).collect();
            let selection = selection(std::slice::from_ref(package), features);
            judge_alone(top, &theirs, &selection, &scope.slow(package), ledger)?;
            let mut own = keys.iter().filter(|(_, it)| *it == package);
            if own.all(|(key, _)| ledger.verdicts.contains_key(key)) {
                ledger.move_to(&ledger_path(top, package))?;
            }
        }
        if !passed.is_empty() {
            let campaign = Self::build(top, passed, &[CONFORMANCE.to_owned()], features)?;
            campaign.judge_all(&ledgers, |_| true)?;
        }
        let mut ledgers = ledgers.into_inner().expect("no panic");
        ledgers.values_mut().try_for_each(|ledger| ledger.tidy(|_| true))?;
        Ok(())
    }

    fn build(
        top: &Path,
        mutants: Vec<Mutant>,
        packages: &[String],
        features: &str,
    ) -> Result<Self> {
        let folder = top.join("target/mutants");
        let selection = selection(packages, features);
        let mut tree = Tree::copy(top, &folder.join("tree"))?;
        let mut unviable = BTreeSet::new();
        loop {
            let viable: Vec<(u32, &Mutant)> =
                (1..).zip(&mutants).filter(|(id, _)| !unviable.contains(id)).collect();
            unviable.extend(tree.put(top, &viable)?);
            eprintln!("building {} mutants ({} do not compile)", viable.len(), unviable.len());
            match tree.build(&selection, &folder.join("target"))? {
                Built::Programs(programs) => {
                    let scope = Scope::read(top)?;
                    return Ok(Self { top: top.to_owned(), mutants, unviable, programs, scope });
                }
                Built::Without(faulty) => unviable.extend(faulty),
            }
        }
    }

    /// Judges all mutants, and enters the verdicts. Returns those that no test catches; they are
    /// entered as passed if other tests of their package come.
    fn judge_all(
        &self,
        ledgers: &Mutex<BTreeMap<String, Ledger>>,
        is_last: impl Fn(&str) -> bool + Sync,
    ) -> Result<BTreeSet<String>> {
        let enter = |mutant: &Mutant, verdict| {
            let mut ledgers = ledgers.lock().expect("no panic");
            ledgers.get_mut(&mutant.package).expect("opened").add(&mutant.key, verdict)
        };
        // The next run then need not find them out again, build after build.
        for &id in &self.unviable {
            enter(&self.mutants[id as usize - 1], Verdict::Unviable)?;
        }
        let tests = self.explore()?;
        let survivors = Mutex::new(BTreeSet::new());
        let labels: Vec<String> = tests.iter().map(Test::label).collect();
        let catches = Mutex::new(catches(&ledgers.lock().expect("no panic"), &labels));
        let ids: Vec<u32> = (1..=u32::try_from(self.mutants.len())?)
            .filter(|id| !self.unviable.contains(id))
            .collect();
        in_parallel(&ids, "mutants", |&id| {
            let mutant = &self.mutants[id as usize - 1];
            let none = || vec![0; tests.len()];
            let file = || mutant.file.clone();
            let so_far =
                catches.lock().expect("no panic").entry(file()).or_insert_with(none).clone();
            let (verdict, by) = self.judge(id, &tests, &so_far)?;
            if let Some(by) = by {
                catches.lock().expect("no panic").entry(file()).or_insert_with(none)[by] += 1;
                return enter(mutant, verdict);
            }
            if is_last(&mutant.package) {
                return enter(mutant, verdict);
            }
            survivors.lock().expect("no panic").insert(mutant.key.clone());
            enter(mutant, Verdict::Passed)
        })?;
        Ok(survivors.into_inner().expect("no panic"))
    }

    /// Runs each test once, without a mutant, but for slow ones. Those that fail in the copy are
    /// left out, by name.
    fn explore(&self) -> Result<Vec<Test>> {
        let mut names = Vec::new();
        for program in &self.programs {
            let slow = self.scope.slow(&program.package);
            let tests = program.tests()?.into_iter().filter(|name| !program.is_slow(name, &slow));
            names.extend(tests.map(|name| (program, name)));
        }
        let count = u32::try_from(self.mutants.len())?;
        let tests = Mutex::new(Vec::new());
        let next = AtomicUsize::new(0);
        in_parallel(&names, "tests without mutants", |(program, name)| {
            let record = format!("target/mutants/reach-{}", next.fetch_add(1, Relaxed));
            let record = self.top.join(record);
            let has_clock = self.scope.has_clock(&program.package);
            match program.explore(name, count, has_clock, &record)? {
                Some(test) => tests.lock().expect("no panic").push(test),
                None => eprintln!("left out: {} {name} does not pass here", program.label()),
            }
            std::fs::remove_file(record).context("a record")
        })?;
        let mut tests = tests.into_inner().expect("no panic");
        tests.sort_by_key(|test| test.takes);
        Ok(tests)
    }

    /// Runs the tests that reach a mutant until one fails, and says which did. Those of its own
    /// module come first, then the cheapest: each takes its time divided by `catches`, what it
    /// caught in this file so far, in earlier runs, too.
    fn judge(&self, id: u32, tests: &[Test], catches: &[u32]) -> Result<(Verdict, Option<usize>)> {
        let package = &self.mutants[id as usize - 1].package;
        let counts = |index: &usize| {
            let test = &tests[*index];
            let is_its = test.program.package == *package || test.program.package == CONFORMANCE;
            is_its && test.reaches.binary_search(&id).is_ok()
        };
        let mut order: Vec<usize> = (0..tests.len()).filter(counts).collect();
        let file = &self.mutants[id as usize - 1].file;
        let is_far = |test: &Test| Reverse(kinship(file, &test.name));
        order.sort_by_cached_key(|&index| {
            Reverse((is_far(&tests[index]), tests[index].takes / (1 + catches[index])))
        });
        let mut hung = Vec::new();
        let mut verdict = Verdict::Unreached;
        let (mut tries, mut cases) = (self.scope.tries(package), self.scope.cases(package));
        while let Some(index) = order.pop() {
            let is_its_own = tests[index].program.package == *package;
            let left = if is_its_own { &mut tries } else { &mut cases };
            if *left == 0 {
                continue;
            }
            *left -= 1;
            match tests[index].judge(id)? {
                Ended::Failed => return Ok((Verdict::Caught(tests[index].label()), Some(index))),
                Ended::Passed | Ended::Unsteady => verdict = Verdict::Missed,
                Ended::Hung => {
                    hung.push(index);
                    // What hangs one test hangs others, and each costs the whole limit.
                    if hung.len() == 2 {
                        break;
                    }
                    // A test that reaches little is the least likely to hang, too.
                    order.sort_by_key(|&index| Reverse(tests[index].reaches.len()));
                }
            }
        }
        Ok((hung.first().map_or(verdict, |&index| Verdict::Hangs(tests[index].label())), None))
    }
}

/// How many mutants of each file each test has caught so far, by the ledgers. `tests` are the names
/// that these have for them. A test that no ledger names counts like the best of each file: it may
/// be there for what the others miss.
fn catches(ledgers: &BTreeMap<String, Ledger>, tests: &[String]) -> HashMap<String, Vec<u32>> {
    let numbers: HashMap<&String, usize> = tests.iter().zip(0..).collect();
    let mut catches: HashMap<String, Vec<u32>> = HashMap::new();
    for (key, verdict) in ledgers.values().flat_map(|ledger| &ledger.verdicts) {
        let Verdict::Caught(by) = verdict else { continue };
        let Some((file, _)) = key.split_once(": ") else { continue };
        let Some(&number) = numbers.get(by) else { continue };
        catches.entry(file.to_owned()).or_insert_with(|| vec![0; tests.len()])[number] += 1;
    }
    let is_new = |number: &usize| catches.values().all(|counts| counts[*number] == 0);
    let new: Vec<usize> = (0..tests.len()).filter(is_new).collect();
    for counts in catches.values_mut() {
        let best = counts.iter().copied().max().unwrap_or(0);
        new.iter().for_each(|&number| counts[number] = best);
    }
    catches
}

/// How many modules a source file and a test have in common, from the top of their crate on. A
/// test outside of the sources, such as `chpp_times`, is of the module that begins its name.
fn kinship(file: &str, test: &str) -> usize {
    let within = file.split_once("/src/").map_or(file, |it| it.1);
    let modules = within.trim_end_matches(".rs").split('/').filter(|&it| it != "mod");
    let is_of = |&(module, part): &(&str, &str)| {
        part.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    modules.zip(test.split("::")).take_while(is_of).count()
}

/// The ledger of a first run that is not whole yet.
pub fn part_of(whole: &Path) -> PathBuf {
    whole.with_extension("part.tsv")
}

/// What cargo builds of `packages`, with those of `features` that are theirs.
fn selection(packages: &[String], features: &str) -> Vec<String> {
    let is_theirs = |feature: &&str| {
        feature.split_once('/').is_some_and(|(it, _)| packages.iter().any(|package| package == it))
    };
    let theirs: Vec<&str> = features.split(',').filter(is_theirs).collect();
    let mut selection = Vec::new();
    for package in packages {
        selection.extend(["--package".to_owned(), package.clone()]);
    }
    selection.extend(["--features".to_owned(), theirs.join(",")]);
    // Not documentation: each of its examples would be a build.
    selection.extend(["--lib".to_owned(), "--tests".to_owned()]);
    selection
}

/// Builds each mutant alone, runs all tests that `selection` has but for slow ones, and enters the
/// verdicts.
fn judge_alone(
    top: &Path,
    mutants: &[&Mutant],
    selection: &[String],
    slow: &[&str],
    ledger: &mut Ledger,
) -> Result<()> {
    if mutants.is_empty() {
        return Ok(());
    }
    let folder = top.join("target/mutants");
    let (record, target) = (folder.join("output"), folder.join("target"));
    let mut tree = Tree::copy(top, &folder.join("tree"))?;
    tree.put(top, &[])?;
    let Alone::Programs(programs) = tree.build_alone(selection, &target)? else {
        bail!("the tests do not build without a mutant");
    };
    let sound = kept(programs, &folder.join("sound"))?;
    let bar = progress(mutants.len(), "built alone")?;
    for mutant in mutants {
        tree.put_alone(top, mutant)?;
        let verdict = match tree.build_alone(selection, &target)? {
            Alone::Asserted => Verdict::Caught("an assertion of the compiler".to_owned()),
            Alone::Unviable => Verdict::Unviable,
            Alone::Programs(programs) => judge_programs(&programs, &sound, slow, &record)?,
        };
        ledger.add(&mutant.key, verdict)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Copies programs to `folder`, where no later build replaces them. They are found by their labels.
fn kept(programs: Vec<Program>, folder: &Path) -> Result<HashMap<String, Program>> {
    std::fs::create_dir_all(folder)?;
    let keep = |program: Program| {
        let copy = folder.join(program.executable.file_name().context("a program")?);
        std::fs::copy(&program.executable, &copy).context("a copy of a program")?;
        Ok((program.label(), Program { executable: copy, ..program }))
    };
    programs.into_iter().map(keep).collect()
}

/// Runs all tests with the mutant that is compiled in, until a program has one that fails, and
/// passes right afterwards in the program without a mutant.
fn judge_programs(
    programs: &[Program],
    sound: &HashMap<String, Program>,
    slow: &[&str],
    record: &Path,
) -> Result<Verdict> {
    let mut verdict = Verdict::Missed;
    for program in programs {
        let label = program.label();
        let sound = sound.get(&label).with_context(|| format!("{label} without a mutant"))?;
        let (ended, failed) = program.run_all(slow, record)?;
        for name in failed {
            if sound.passes(&name)? {
                return Ok(Verdict::Caught(format!("{label} {name}")));
            }
        }
        if ended == Ended::Hung {
            verdict = Verdict::Hangs(label);
        }
    }
    Ok(verdict)
}

/// Runs `count` mutants that the ledger calls caught, of the package whose turn it is on that day.
/// Returns whether each is caught.
///
/// # Errors
/// Listing or building fails, or the ledger has too few mutants that are caught.
pub fn sample(top: &Path, count: usize, day: u64, features: &str) -> Result<bool> {
    let entered: Vec<&str> =
        PACKAGES.into_iter().filter(|package| ledger_path(top, package).exists()).collect();
    ensure!(!entered.is_empty(), "there is no ledger yet; run `make mutants`");
    let package = entered[(day % entered.len() as u64) as usize].to_owned();
    let ledger = Ledger::open(&ledger_path(top, &package))?;
    let own = format!("{}/", package.trim_start_matches("bellwire-"));
    let mut listed = list::list(top, std::slice::from_ref(&package), &Scope::read(top)?)?;
    let by_own = |verdict: &Verdict| matches!(verdict, Verdict::Caught(by) if by.starts_with(&own));
    listed.retain(|it| !it.is_alone() && ledger.verdicts.get(&it.key).is_some_and(by_own));
    listed.sort_by_cached_key(|it| {
        let mut hasher = SipHasher13::new_with_keys(day, 0);
        hasher.write(it.key.as_bytes());
        hasher.finish()
    });
    listed.truncate(count);
    ensure!(listed.len() == count, "{package} has only {} caught mutants", listed.len());

    let campaign = Campaign::build(top, listed, std::slice::from_ref(&package), features)?;
    let tests: HashMap<String, (&Program, String)> = campaign
        .programs
        .iter()
        .map(|program| Ok((program, program.tests()?)))
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .flat_map(|(program, names)| {
            names
                .into_iter()
                .map(move |name| (format!("{} {name}", program.label()), (program, name)))
        })
        .collect();
    let survivors = Mutex::new(Vec::new());
    let ids: Vec<u32> = (1..=u32::try_from(count)?).collect();
    in_parallel(&ids, "mutants", |&id| {
        let key = &campaign.mutants[id as usize - 1].key;
        let Some(Verdict::Caught(by)) = ledger.verdicts.get(key) else {
            bail!("{key} was drawn, and is not caught");
        };
        let record = top.join(format!("target/mutants/reach-{id}"));
        let test = match tests.get(by) {
            None => Err("is gone"),
            Some((program, name)) => {
                let test = program.explore(name, u32::try_from(count)?, true, &record)?;
                std::fs::remove_file(record).context("a record")?;
                test.ok_or("fails without it, too")
            }
        };
        let verdict = test.map(|test| test.judge(id));
        let why = match verdict {
            Err(why) => why,
            Ok(ended) => match ended? {
                Ended::Failed => return Ok(()),
                Ended::Passed => "passes with it",
                Ended::Unsteady => "fails without it, too",
                Ended::Hung => "does not end with it",
            },
        };
        survivors.lock().expect("no panic").push(format!("{key}: {by} {why}"));
        Ok(())
    })?;
    let survivors = survivors.into_inner().expect("no panic");
    for survivor in &survivors {
        eprintln!("error: not caught: {survivor}");
    }
    println!("{package}: {} of {count} mutants caught", count - survivors.len());
    Ok(survivors.is_empty())
}

fn progress(length: usize, what: &'static str) -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{pos}/{len} {msg} [{bar:40}] {eta}")?;
    Ok(ProgressBar::new(length as u64).with_style(style).with_message(what))
}

/// Does `work` with each of `items`, on as many threads as there are processors.
fn in_parallel<T: Sync>(
    items: &[T],
    what: &'static str,
    work: impl Fn(&T) -> Result<()> + Sync,
) -> Result<()> {
    let bar = progress(items.len(), what)?;
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism()?.get();
    let result = thread::scope(|scope| {
        let worker = || -> Result<()> {
            while let Some(item) = items.get(next.fetch_add(1, Relaxed)) {
                work(item)?;
                bar.inc(1);
            }
            Ok(())
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|it| it.join().expect("no panic"))
    });
    bar.finish_and_clear();
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::Genre;
    use crate::list::made::{constant, mutant, opaque};
    use std::fs;
    use std::process::Command;

    /// A test of the same module is closer than one of its parent, and any other is far.
    #[test]
    fn tests_of_the_own_module_are_close() {
        let file = "crates/model/src/engine/calendar.rs";
        assert_eq!(kinship(file, "engine::calendar::tests::agrees"), 2);
        assert_eq!(kinship(file, "engine::times::turns"), 1);
        assert_eq!(kinship(file, "chpp_blocks::engine"), 0);
        assert_eq!(kinship("crates/model/src/chpp/node.rs", "chpp_blocks::few_tags"), 1);
        assert_eq!(kinship("crates/model/src/damq_pd/bus.rs", "damq_pd::pio"), 1);
        assert_eq!(kinship("crates/ring/src/lane/mod.rs", "lane::sender::sends"), 1);
    }

    /// What earlier runs say of tests counts, but for tests that are gone. A new test counts like
    /// the best.
    #[test]
    fn the_ledger_says_what_tests_catch() {
        let path = std::env::temp_dir().join(format!("catches-{}.tsv", std::process::id()));
        let lines = "caught\ta.rs: x\tp/p other\ncaught\ta.rs: y\tp/p other\n\
                     caught\ta.rs: z\tp/p gone\nmissed\tb.rs: x\t\ncaught\tc.rs: x\tp/p old\n";
        fs::write(&path, lines).expect("a file");
        let ledgers = BTreeMap::from([("p".to_owned(), Ledger::open(&path).expect("a ledger"))]);
        let tests = ["p/p old", "p/p other", "p/p new"].map(str::to_owned);
        let expected = [("a.rs".to_owned(), vec![0, 2, 2]), ("c.rs".to_owned(), vec![1, 0, 1])];
        assert_eq!(catches(&ledgers, &tests), HashMap::from(expected));
        fs::remove_file(path).expect("the file was made here");
    }

    const SOURCE: &str = "\
pub struct Bare;
pub fn add(a: u32, b: u32) -> u32 { a + b }
pub fn large(a: u32) -> bool { a > 3 }
pub fn alone() -> u32 { 4 }
pub fn loose(a: u32) -> u32 { a & 7 }
pub const fn one() -> u32 { 1 }
pub fn bare() -> Bare { Bare }
pub const PRODUCT: u32 = 2 * 3;
pub const QUOTIENT: u32 = 6 / 1;
const _: () = assert!(5 % 3 == 2);
pub const NONE: u32 = 8 >> 1;
pub fn few() -> impl Iterator<Item = u32> { 0..3 }
#[test] fn adds() { assert_eq!(add(2, one()), 3); large(7); bare(); }
#[test] fn forgets() { assert!(add(2, 1) > 0); }
#[test] fn multiplies() { assert_eq!(PRODUCT, 6); }
#[test] fn counts() { assert_eq!(few().count(), 3); }
#[test] fn fails_always() { panic!(); }
#[test] fn is_unsteady() {
    assert_eq!(loose(3), 3);
    let marks = std::path::Path::new(env!(\"CARGO_MANIFEST_DIR\")).join(\"marks\");
    std::fs::create_dir(marks).unwrap();
}
";

    /// Canary: what a test sees is caught, and what it does not is told apart. A test that fails
    /// without a mutant, too, catches none: neither one that always fails, nor one that passes at
    /// first and fails from then on, as under load.
    #[test]
    fn each_verdict_is_given_where_it_is_due() {
        let top = std::env::temp_dir().join(format!("mutants-{}", std::process::id()));
        let package = top.join("crates/fixture");
        fs::create_dir_all(package.join("src")).expect("a folder");
        fs::create_dir_all(top.join(crate::LEDGERS)).expect("a folder");
        let workspace = "[workspace]\nresolver = \"3\"\nmembers = [\"crates/fixture\", \
                         \"crates/mutant-switch\"]\n";
        let manifest = "[package]\nname = \"fixture\"\nversion = \"0.1.0\"\n\
                        edition = \"2024\"\n\n[dependencies]\n";
        fs::write(top.join("Cargo.toml"), workspace).expect("a file");
        fs::write(top.join(".gitignore"), "target\n").expect("a file");
        fs::write(package.join("Cargo.toml"), manifest).expect("a file");
        fs::write(package.join("src/lib.rs"), SOURCE).expect("a file");
        let made = Command::new("git").args(["init", "-q"]).current_dir(&top).status();
        assert!(made.expect("git").success());

        let file = "crates/fixture/src/lib.rs";
        let of =
            |what, nth, replacement, genre| mutant(file, SOURCE, (what, nth), replacement, genre);
        let mutants = vec![
            of("+", 0, "-", Genre::BinaryOperator),
            of(">", 2, "==", Genre::BinaryOperator),
            of("4", 0, "0", Genre::FnValue),
            of("1", 0, "0", Genre::FnValue),
            of("Bare", 2, "Default::default()", Genre::FnValue),
            of("&", 0, "|", Genre::BinaryOperator),
        ];
        let keys: Vec<String> = mutants.iter().map(|it| it.key.clone()).collect();
        let campaign = Campaign::build(&top, mutants, &["fixture".to_owned()], "");
        let ledger = Ledger::open(&ledger_path(&top, "fixture")).expect("a ledger");
        let ledgers = Mutex::new(BTreeMap::from([("fixture".to_owned(), ledger)]));
        campaign.expect("a build").judge_all(&ledgers, |_| true).expect("a run");
        let alone = [
            constant(file, SOURCE, ("*", 0), "/"),
            constant(file, SOURCE, ("/", 0), "*"),
            constant(file, SOURCE, ("%", 0), "/"),
            constant(file, SOURCE, (">>", 0), "- 9 -"),
            opaque(file, SOURCE, ("0..3", 0), "::std::iter::empty()"),
        ];
        let alone: Vec<&Mutant> = alone.iter().collect();
        let selection = selection(&["fixture".to_owned()], "");
        let mut ledger = Ledger::open(&ledger_path(&top, "fixture")).expect("a ledger");
        judge_alone(&top, &alone, &selection, &[], &mut ledger).expect("a run");
        let verdicts: Vec<Verdict> =
            alone.iter().map(|it| ledger.verdicts[&it.key].clone()).collect();
        assert_eq!(
            verdicts,
            [
                Verdict::Caught("fixture/fixture multiplies".to_owned()),
                Verdict::Missed,
                Verdict::Caught("an assertion of the compiler".to_owned()),
                Verdict::Unviable,
                Verdict::Caught("fixture/fixture counts".to_owned()),
            ]
        );
        let verdicts: Vec<Verdict> = keys.iter().map(|key| ledger.verdicts[key].clone()).collect();
        let caught = Verdict::Caught("fixture/fixture adds".to_owned());
        assert_eq!(
            verdicts,
            [
                caught.clone(),
                Verdict::Missed,
                Verdict::Unreached,
                caught,
                Verdict::Unviable,
                Verdict::Missed,
            ]
        );
        fs::remove_dir_all(top).expect("the folder was made here");
    }
}
