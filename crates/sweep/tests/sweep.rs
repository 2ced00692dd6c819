//! Sweeps from their text to their rows, and the journal that keeps them.

use bellwire_sweep::{Cell, EXAMPLE, Journal, JournalError, Row, Sweep, run};
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// A folder of its own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("bellwire-sweep-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const SMALL: &str = r#"
model = "smp"
load = "packets"
repetitions = 2
[set]
"load.packets" = 20
[grid]
"load.length_dw" = [4, 16]
receive = ["cut-through", "store-and-forward"]
clock = ["125 MHz", "250 MHz"]
"#;

fn refused(text: &str) -> String {
    Sweep::read(text).err().expect("it is refused").to_string()
}

fn rows(sweep: &Sweep, points: &[u64], threads: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    run(sweep, points, threads, |row| {
        rows.push(row);
        ControlFlow::Continue(())
    });
    rows.sort_by_key(|row| row.point);
    rows
}

/// The example is read, and each of its points has a result.
#[test]
fn the_example_runs() {
    let sweep = Sweep::read(EXAMPLE).unwrap();
    assert_eq!(sweep.points(), 36);
    let row = sweep.run(35);
    assert_eq!(row.error, None);
    assert!(row.trace_hash.is_some());
}

/// Rows have the parameters with their units, the seed, the figures and the hash. They are the same
/// with one thread and with several, and in any order of the points.
#[test]
fn rows_do_not_depend_on_who_runs_them() {
    let sweep = Sweep::read(SMALL).unwrap();
    assert_eq!(sweep.points(), 16);
    let all: Vec<u64> = (0..16).collect();
    let backwards: Vec<u64> = all.iter().rev().copied().collect();
    let alone = rows(&sweep, &all, 1);
    assert_eq!(alone, rows(&sweep, &backwards, 4));
    let names: Vec<String> = sweep.columns().into_iter().map(|column| column.name).collect();
    assert_eq!(
        names,
        [
            "point",
            "clock_MHz",
            "load.length_dw",
            "receive",
            "seed",
            "delay_ns",
            "bandwidth_Gbps",
            "payload_ratio",
            "packets_before_stall",
            "trace_hash",
            "version",
            "error"
        ]
    );
    let cells = sweep.cells(&alone[9]);
    assert_eq!(cells.len(), names.len());
    let setting = [
        Cell::Integer(9),
        Cell::Real(250.0),
        Cell::Integer(4),
        Cell::Text("cut-through".to_owned()),
        Cell::Integer(2),
    ];
    assert_eq!(cells[..5], setting);
    assert!(matches!(cells[5], Cell::Real(ns) if ns > 10.0), "{cells:?}");
    assert_eq!(cells[11], Cell::Nothing);
    // Seeds differ in their traces, and a longer packet in its time.
    assert_ne!(alone[0].trace_hash, alone[1].trace_hash);
    assert!(alone[0].figures[0] < alone[4].figures[0]);
}

/// A value that the model refuses fails its point with the model's own sentence, and no other.
#[test]
fn a_refused_value_fails_its_point_alone() {
    let sweep = Sweep::read(
        "model = \"smp\"\nload = \"packets\"\n[set]\n\"load.packets\" = 5\n[grid]\nlanes = [1, 3, 8]\n",
    );
    let sweep = sweep.unwrap();
    let rows = rows(&sweep, &[0, 1, 2], 2);
    assert_eq!([&rows[0].error, &rows[2].error], [&None, &None]);
    assert_eq!(rows[1].error.as_deref(), Some("`lanes` is 3; it must be 1, 2, 4 or 8"));
    assert_eq!((rows[1].figures.len(), &rows[1].trace_hash), (0, &None));
}

/// What cannot be a sweep is refused in a sentence that names the cause.
#[test]
fn wrong_sweeps_are_refused() {
    let with = |rest: &str| refused(&format!("model = \"smp\"\nload = \"packets\"\n{rest}"));
    assert!(refused("model = \"vax\"\nload = \"x\"").contains("there are chpp, damq-pd"));
    assert_eq!(
        refused("model = \"chpp\""),
        "it has no `load`; chpp has operation, traffic, program"
    );
    assert!(refused("load = \"traffic\"").starts_with("it has no `model`; there are chpp, "));
    assert!(
        refused("model = \"smp\"\nload = \"x\"").contains("smp has no load \"x\"; it has packets")
    );
    assert!(with("").contains("one of [grid], [[list]] and [sobol]"));
    assert!(with("[grid]").contains("[grid] has no axis"));
    assert!(with("[grid]\nlanes = []").contains("`lanes` has no values"));
    assert!(with("[grid]\nlane = [1]").contains("`lane` is no parameter of smp"));
    assert!(with("[grid]\n\"load.length\" = [1]").contains("`load.length` is no parameter"));
    assert!(with("[set]\nlane = 1\n[grid]\nlanes = [1]").contains("`lane` is no parameter"));
    assert!(with("[set]\nlanes = 1\n[grid]\nlanes = [1]").contains("is in [set] and an axis"));
    let twice = "[grid]\n\"load.packets\" = [1]\nload.packets = [2]";
    assert!(with(twice).contains("`load.packets` stands there twice"));
    assert!(with("[grid]\nlanes = [1]\n[[list]]\nlanes = 1").contains("more than one of"));
    assert!(with("[sobol]\nlanes = [1]").contains("needs `points`"));
    assert!(with("points = 9\n[grid]\nlanes = [1]").contains("belongs to [sobol]"));
    assert!(with("points = 100000\n[sobol]\nlanes = [1]").contains("1 to 65536"));
    assert!(with("seeds = []\n[grid]\nlanes = [1]").contains("`seeds` is empty"));
    assert!(with("seeds = [1, 1]\n[grid]\nlanes = [1]").contains("1 twice"));
    assert!(with("seeds = [1]\nseed = 1\n[grid]\nlanes = [1]").contains("beside it"));
    assert!(with("repetitions = 0\n[grid]\nlanes = [1]").contains("1..=1000000"));
    assert!(
        with("minimise = [\"receive\"]\n[grid]\nreceive = [\"cut-through\"]").contains("judged")
    );
    assert!(with("colour = 1").contains("unknown field `colour`"));
    assert!(!with("[grid]\nlanes = [").contains('\n'));
    // A text that names no choice is the point's matter: the others may be good.
    let receive = "model = \"smp\"\nload = \"packets\"\n[grid]\nreceive = [\"magic\"]";
    let row = Sweep::read(receive).unwrap().run(0);
    assert!(row.error.unwrap().contains("unknown variant `magic`"));
}

/// More points than the limit are refused, with their number and what to write; also more than can
/// be counted.
#[test]
fn a_huge_grid_asks_for_a_limit() {
    let grid = |limit: &str, axes: usize| {
        let names = ["serdes", "link_packet", "retrain", "acknowledge_after", "replay_after"];
        let mut text = format!("model = \"smp\"\nload = \"packets\"\n{limit}\n[grid]\n");
        for name in &names[..axes] {
            text += &format!("{name} = {{ from = \"1 ns\", to = \"9 us\", steps = 8999 }}\n");
        }
        text
    };
    let sweep = Sweep::read(&grid("", 2)).unwrap();
    let all = 0..sweep.points();
    let why = sweep.within_limit(&all).unwrap_err().to_string();
    assert!(why.contains("80982001 points") && why.contains("`limit = 80982001`"), "{why}");
    assert_eq!(sweep.within_limit(&(0..1000)), Ok(()));
    let sweep = Sweep::read(&grid("limit = 80982001", 2)).unwrap();
    assert_eq!(sweep.within_limit(&all), Ok(()));
    assert!(refused(&grid("", 5)).contains("more points than can be numbered"));
}

/// A list sets what it names; what it leaves out keeps its value.
#[test]
fn a_list_may_leave_out_an_axis() {
    let text = "model = \"smp\"\nload = \"packets\"\n[set]\n\"load.packets\" = 5\n\
                [[list]]\nlanes = 1\n[[list]]\nlanes = 8\n\"load.length_dw\" = 4\n[[list]]\n";
    let sweep = Sweep::read(text).unwrap();
    assert_eq!(sweep.points(), 3);
    let rows = rows(&sweep, &[0, 1, 2], 1);
    assert!(rows.iter().all(|row| row.error.is_none()), "{rows:?}");
    assert_eq!(sweep.cells(&rows[0])[1..3], [Cell::Integer(1), Cell::Nothing]);
    assert_eq!(sweep.cells(&rows[2])[1..3], [Cell::Nothing, Cell::Nothing]);
}

/// A choice with values of its own is an axis as a whole; the sample takes it with a range.
#[test]
fn a_sample_takes_choices_and_ranges() {
    let text = "model = \"chpp\"\nload = \"traffic\"\npoints = 8\n[set]\nload.time = \"20 us\"\n\
                load.warm_up = \"5 us\"\n[sobol]\nnic.clock = { from = \"100 MHz\", to = \"400 MHz\" }\n\
                load.arrival = [\"saturated\", { closed = { window = 2 } }]\n";
    let sweep = Sweep::read(text).unwrap();
    let all: Vec<u64> = (0..8).collect();
    let rows = rows(&sweep, &all, 2);
    assert!(rows.iter().all(|row| row.error.is_none()), "{rows:?}");
    let names: Vec<String> = sweep.axes().map(|axis| axis.name.clone()).collect();
    assert_eq!(names, ["load.arrival", "nic.clock_MHz"]);
    let saturated = |row: &Row| matches!(&sweep.cells(row)[1], Cell::Text(of) if of == "saturated");
    assert_eq!(rows.iter().filter(|row| saturated(row)).count(), 4);
}

/// A network of routers is swept as a machine is: its topology, its channels and what is offered
/// are axes. The same points have the same hashes twice, and each parameter shows in its figures.
#[test]
fn a_network_is_swept() {
    let text = r#"
        model = "network"
        load = "traffic"
        [set]
        load = { cycles = 600, warm_up_cycles = 100 }
        [grid]
        topology = [{ crossbar = { ports = 16 } }, { torus = { radix = 4, dimensions = 2 } }]
        "router.vcs" = [2, 4]
        "load.arrival.random.load" = [0.1, 0.8]
    "#;
    let sweep = Sweep::read(text).unwrap();
    let all: Vec<u64> = (0..8).collect();
    let found = rows(&sweep, &all, 2);
    assert_eq!(found, rows(&sweep, &all, 1));
    assert!(found.iter().all(|row| row.error.is_none()), "{found:?}");
    let mut hashes: Vec<&String> = found.iter().flat_map(|row| &row.trace_hash).collect();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 8);
    let names: Vec<String> = sweep.axes().map(|axis| axis.name.clone()).collect();
    assert_eq!(names, ["load.arrival.random.load", "router.vcs", "topology"]);
    let figure = |point: usize, name: &str| {
        let at = sweep.quantities().iter().position(|of| of.name == name).unwrap();
        found[point].figures[at].unwrap()
    };
    // In the order of the axes: little and much load, 2 and 4 channels, crossbar and torus.
    for [low, high] in [[0, 4], [1, 5], [2, 6], [3, 7]] {
        assert!(figure(low, "latency_ns") < figure(high, "latency_ns"));
        assert!(figure(low, "throughput_beats") < figure(high, "throughput_beats"));
    }
    assert_eq!((figure(0, "hops"), figure(1, "hops") > 2.0), (1.0, true));
    assert!(figure(5, "throughput_beats") < figure(7, "throughput_beats"), "{found:?}");
}

/// Of a network, too, a parameter that does not exist is refused before the first point, with those
/// that do; a topology that cannot be fails its point alone.
#[test]
fn a_wrong_network_is_refused() {
    let with = |rest: &str| format!("model = \"network\"\nload = \"traffic\"\n[grid]\n{rest}");
    let why = refused(&with("\"router.vc\" = [1]"));
    assert!(why.contains("`router.vc` is no parameter of network"), "{why}");
    assert!(why.contains("expected one of `clock`, `vcs`, `classes`"), "{why}");
    assert!(refused(&with("\"load.loads\" = [1]")).contains("expected one of `pattern`"));
    let wrong = refused(&with("\"load.arrival.random.rate\" = [1]"));
    assert!(wrong.contains("unknown field `rate`, expected `load`"), "{wrong}");
    let of = |rest: &str| Sweep::read(&with(rest)).unwrap().run(0).error.unwrap();
    let few = of("topology = [{ torus = { radix = 2, dimensions = 2 } }]");
    assert!(few.starts_with("`topology`: ") && few.contains("hypercube"), "{few}");
    assert!(of("\"router.vcs\" = [1]").contains("rings need 2"));
    assert!(of("\"load.cycles\" = [99]").starts_with("`load.cycles` is 99; it must lie in 100..="));
}

/// A program's schedule is a setting, or an axis. A machine has a node for each of its ranks, and a
/// fault in its text is told with its line.
#[test]
fn programs_are_swept() {
    let text = r#"
        model = "chpp"
        load = "program"
        [grid]
        "nic.clock" = ["100 MHz", "200 MHz"]
        "load.goal" = ["""
            num_ranks 1
            rank 0 { calc 1000 }
        """, """
            num_ranks 3
            rank 0 { send 64b to 1; send 4096b to 2 }
            rank 1 { recv 64b from 0 }
            rank 2 { recv 4096b from 0 }
        """]
    "#;
    let sweep = Sweep::read(text).unwrap();
    let found = rows(&sweep, &[0, 1, 2, 3], 2);
    let figures = |point: usize| found[point].figures.iter().flatten().copied().collect::<Vec<_>>();
    // The axes by name: the program, then the clock.
    assert_eq!([figures(0), figures(1)], [[1.0, 0.0, 0.0, 0.0]; 2]);
    assert_eq!(figures(2)[1..3], [1.0, 1.0]);
    assert!(figures(3)[0] < figures(2)[0] && figures(3)[0] > 1.0, "{found:?}");
    let with = |goal: &str| {
        format!("model = \"chpp\"\nload = \"program\"\n{goal}\n[grid]\n\"nic.tags\" = [8]")
    };
    let why = refused(&with("[set]\n\"load.goal\" = \"num_ranks 1\\nrank 1 { }\""));
    assert!(why.starts_with("`load.goal`, line 2: rank 1 is beyond num_ranks 1"), "{why}");
    assert!(Sweep::read(&with("")).unwrap().run(0).error.is_none());
}

/// The identity is that of the points: comments and the limit do not change it, a value does.
#[test]
fn an_identity_is_that_of_the_points() {
    let of = |text: &str| Sweep::read(text).unwrap().identity().to_owned();
    let same = format!("# a comment\nlimit = 99{SMALL}");
    assert_eq!(of(SMALL), of(&same));
    assert_ne!(of(SMALL), of(&SMALL.replace("[4, 16]", "[4, 17]")));
}

/// A journal that was cut at any byte is read up to its last whole line. What is missing then runs
/// once, and the rows are those of an undisturbed run, to the last bit.
#[test]
fn a_cut_journal_goes_on() {
    let folder = Folder::new("cut");
    let path = folder.0.join("a.journal");
    let sweep = Sweep::read(SMALL).unwrap();
    let all: Vec<u64> = (0..sweep.points()).collect();
    let expected = rows(&sweep, &all, 2);
    let mut journal = Journal::open(&path, &sweep, 0..16).unwrap();
    assert_eq!(journal.missing(), all);
    for row in &expected {
        journal.append(row.clone()).unwrap();
    }
    drop(journal);
    let whole = fs::read(&path).unwrap();
    for cut in (0..=whole.len()).step_by(97).chain([whole.len()]) {
        fs::write(&path, &whole[..cut]).unwrap();
        let mut journal = Journal::open(&path, &sweep, 0..16).unwrap();
        let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        let missing = journal.missing();
        assert_eq!(missing.len(), 16 - lines.saturating_sub(1), "cut at {cut}");
        for row in expected.iter().filter(|row| missing.contains(&row.point)) {
            journal.append(row.clone()).unwrap();
        }
        let found: Vec<Row> = journal.rows().cloned().collect();
        assert_eq!(found, expected, "cut at {cut}");
        drop(journal);
        let again = Journal::open(&path, &sweep, 0..16).unwrap();
        assert!(again.missing().is_empty() && again.rows().eq(&expected), "cut at {cut}");
    }
}

/// A journal of another sweep, of another version, of something else or of a running process is
/// left alone.
#[test]
fn a_foreign_journal_is_left_alone() {
    let folder = Folder::new("foreign");
    let path = folder.0.join("a.journal");
    let sweep = Sweep::read(SMALL).unwrap();
    let other = Sweep::read(&SMALL.replace("[4, 16]", "[4, 17]")).unwrap();
    let open = |sweep: &Sweep| Journal::open(&path, sweep, 0..1);
    let running = open(&sweep).unwrap();
    assert!(matches!(open(&sweep), Err(JournalError::InUse(_))));
    drop(running);
    assert!(matches!(open(&other), Err(JournalError::OtherSweep(_))));
    let text = fs::read_to_string(&path).unwrap();
    let old = text.replace(bellwire_sweep::VERSION, "0.0.1");
    fs::write(&path, &old).unwrap();
    assert!(matches!(open(&sweep), Err(JournalError::OtherVersion { .. })));
    for foreign in ["a letter\n", "a letter", "{}\n"] {
        fs::write(&path, foreign).unwrap();
        assert!(matches!(open(&sweep), Err(JournalError::NotAJournal(_))), "{foreign}");
        assert_eq!(fs::read_to_string(&path).unwrap(), foreign);
    }
    fs::write(&path, text + "{\"point\": 1}\nnonsense\n").unwrap();
    assert!(matches!(open(&sweep), Err(JournalError::NotAJournal(_))));
    let nowhere = Journal::open(&folder.0.join("no/a.journal"), &sweep, 0..1).err().unwrap();
    assert!(nowhere.to_string().contains("No such file"), "{nowhere}");
}

/// A file without an end of line is not read for ever: `/dev/full` has zeros without end.
#[test]
fn an_endless_line_is_no_journal() {
    let folder = Folder::new("endless");
    let path = folder.0.join("a.journal");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let opened = Journal::open(&path, &Sweep::read(SMALL).unwrap(), 0..1);
    assert!(matches!(opened, Err(JournalError::NotAJournal(_))));
}

/// The run ends early if whoever listens says so.
#[test]
fn a_run_can_be_stopped() {
    let sweep = Sweep::read(SMALL).unwrap();
    let all: Vec<u64> = (0..16).cycle().take(10_000).collect();
    let mut told = 0;
    run(&sweep, &all, 2, |_| {
        told += 1;
        if told == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(told, 3);
}
