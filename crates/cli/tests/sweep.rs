//! `bellwire model sweep`: results on disk, after kills, from parts, and beside foreign files.

mod support;

use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use support::{Folder, Output, Running, bellwire, run};

/// Forty points of some milliseconds each.
const SWEEP: &str = r#"
model = "hpcl"
load = "round-trip"
repetitions = 2
[set]
"load.rounds" = 100
[grid]
"load.over" = ["hpcl", "tcp"]
"load.bytes" = { from = "64 B", to = "1000 B", steps = 5 }
"nic.interrupt_gap" = ["0 us", "125 us"]
"#;

fn sweep(folder: &Folder, text: &str) -> PathBuf {
    let file = folder.path().join("small.toml");
    fs::write(&file, text).unwrap();
    file
}

fn of(file: &Path, more: &[&str]) -> Output {
    run(bellwire().args(["model", "sweep"]).arg(file).args(more))
}

/// All rows of a file of results, as text.
fn rows(file: &Path) -> Vec<String> {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect()
}

/// Results have one row a point; the same command again runs nothing, and parts that are joined
/// give the same rows.
#[test]
fn parts_join_to_the_whole() {
    let folder = Folder::new("sweep-parts");
    let file = sweep(&folder, SWEEP);
    let told = of(&file, &["--json"]).done().json();
    assert_eq!([&told["points"], &told["kept"], &told["failed"]], [40, 0, 0]);
    let whole = folder.path().join("small.parquet");
    let expected = rows(&whole);
    assert_eq!(expected.len(), 40);
    assert!(expected[39].contains("trace_hash: \"") && expected[39].contains("error: null"));
    assert!(!Path::new(&format!("{}.journal", whole.display())).exists());
    let again = of(&file, &["--json"]).done().json();
    assert_eq!([&again["points"], &again["kept"]], [40, 40]);

    for points in ["0..15", "15..30", "30..45"] {
        of(&file, &["--points", points]).done();
    }
    let part = |name: &str| folder.path().join(format!("small.{name}.parquet"));
    let parts = [part("0-15"), part("15-30"), part("30-40")];
    let joined = folder.path().join("joined.parquet");
    let join = |parts: &[PathBuf]| {
        let mut command = bellwire();
        command.args(["model", "sweep"]).arg(&file).arg("--out").arg(&joined).arg("--join");
        run(command.args(parts))
    };
    join(&parts[..2]).failed("have 30 of 40 points, and no result of point 30");
    fs::write(&joined, "a letter").unwrap();
    join(&parts).failed("joined.parquet is no Parquet file; give --out another name");
    fs::remove_file(&joined).unwrap();
    join(std::slice::from_ref(&file))
        .failed("small.toml is no Parquet file; leave it out of --join");
    join(&parts).done();
    assert_eq!(rows(&joined), expected);
    let beyond = of(&file, &["--points", "40..50"]);
    assert_eq!(beyond.code, 2);
    assert!(beyond.stderr.contains("there is no point 40: the sweep has 40"), "{}", beyond.stderr);
    of(&file, &["--points", "0..10", "--out", whole.to_str().unwrap()])
        .failed("has the points 0..40 of this sweep, not 0..10");
}

/// Canary: a part with one false figure is noticed where another part has the true one.
#[test]
fn a_false_part_is_noticed() {
    let folder = Folder::new("sweep-false");
    let file = sweep(&folder, SWEEP);
    of(&file, &["--points", "0..10"]).done();
    let honest = folder.path().join("small.0-10.parquet");
    let reader = SerializedFileReader::new(File::open(&honest).unwrap()).unwrap();
    let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let value = |key: &str| {
        metadata.iter().find(|of| of.key == key).and_then(|of| of.value.clone()).unwrap()
    };
    let (identity, version) = (value("bellwire.identity"), value("bellwire.version"));
    let journal = folder.path().join("small.5-40.parquet.journal");
    let head = serde_json::json!({ "bellwire_sweep": identity, "version": version });
    let row = serde_json::json!({ "point": 7, "figures": [1.5], "trace_hash": "0123456789abcdef" });
    fs::write(&journal, format!("{head}\n{row}\n")).unwrap();
    let kept = of(&file, &["--points", "5..40", "--json"]).done().json();
    assert_eq!(kept["kept"], 1);
    let parts = [honest, folder.path().join("small.5-40.parquet")];
    let mut join = bellwire();
    join.args(["model", "sweep"]).arg(&file).arg("--join").args(&parts);
    run(&mut join).failed("point 7 has other results");
}

/// A sweep that is killed again and again repeats no point, and ends with the rows of one that is
/// left alone.
#[test]
fn kills_lose_and_repeat_nothing() {
    let folder = Folder::new("sweep-kills");
    let long = SWEEP.replace("= 100", "= 3000");
    let file = sweep(&folder, &long);
    let killed = folder.path().join("killed.parquet");
    let journal = folder.path().join("killed.parquet.journal");
    let lines = || fs::read_to_string(&journal).map_or(0, |text| text.lines().count());
    let mut kills = 0;
    while kills < 5 {
        let before = lines();
        let mut command = bellwire();
        command.args(["model", "sweep"]).arg(&file).arg("--out").arg(&killed);
        let running = Running::start(&mut command);
        let started = std::time::Instant::now();
        while lines() < before.max(1) + 3 && !killed.exists() {
            assert!(started.elapsed() < support::DEADLINE, "no point ends");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        if killed.exists() {
            break;
        }
        running.kill();
        kills += 1;
    }
    assert!(kills > 0, "it ended before the first kill");
    let kept = fs::read_to_string(&journal).unwrap();
    let mut points: Vec<u64> = kept
        .lines()
        .skip(1)
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|row| row["point"].as_u64().unwrap())
        .collect();
    let count = points.len();
    points.sort_unstable();
    points.dedup();
    assert_eq!(points.len(), count, "a point ran twice");
    let told = of(&file, &["--out", killed.to_str().unwrap(), "--json"]).done().json();
    assert_eq!(told["kept"], count as u64);
    of(&file, &[]).done();
    assert_eq!(rows(&killed), rows(&folder.path().join("small.parquet")));
}

/// A point that the model refuses has a row that says why; the others have results, and the exit
/// code tells.
#[test]
fn a_refused_point_is_a_row() {
    let folder = Folder::new("sweep-refused");
    let text = "model = \"hpcl\"\nload = \"round-trip\"\n[grid]\nnodes = [1, 2]\n";
    let output = of(&sweep(&folder, text), &[]);
    output.failed("1 of 2 points failed");
    assert!(output.stderr.contains("`nodes` is 1; it must lie in 2..="), "{}", output.stderr);
    let rows = rows(&folder.path().join("small.parquet"));
    assert!(
        rows[0].contains("round_trip_us: null") && rows[0].contains("`nodes` is 1"),
        "{rows:?}"
    );
    assert!(rows[1].contains("error: null"), "{rows:?}");
}

/// Files of others are left alone, and each mistake gets its sentence.
#[test]
fn mistakes_are_told() {
    let folder = Folder::new("sweep-mistakes");
    let file = sweep(&folder, &SWEEP.replace("load.bytes", "load.size"));
    of(&file, &[]).failed("`load.size` is no parameter of hpcl under the load round-trip");
    let many = "{ from = \"0 us\", to = \"125 us\", steps = 100000 }";
    let file = sweep(&folder, &SWEEP.replace("[\"0 us\", \"125 us\"]", many));
    of(&file, &[]).failed("that would be 2000000 points (1000000 settings, 2 seeds each)");
    let file = sweep(&folder, SWEEP);
    let out = folder.path().join("small.parquet");
    fs::write(&out, "a letter").unwrap();
    of(&file, &[]).failed("is no Parquet file; give --out another name");
    assert_eq!(fs::read_to_string(&out).unwrap(), "a letter");
    fs::remove_file(&out).unwrap();
    of(&file, &[]).done();
    let other = sweep(&folder, &SWEEP.replace("125 us", "126 us"));
    of(&other, &[]).failed("has the results of another sweep");
    of(&other, &["--out", "/nowhere/a.parquet"]).failed(
        "cannot write /nowhere/a.parquet.journal: No such file or directory (os error 2)\n",
    );
    let elsewhere = folder.path().join("other.parquet");
    of(&other, &["--out", elsewhere.to_str().unwrap(), "--html", "/nowhere/a.html"])
        .failed("the results are in");
    let half = sweep(&folder, "model = \"hpcl\"\nload = \"round-trip\n");
    of(&half, &[]).failed("small.toml: line 2: invalid basic string, expected `\"`\n");
    let none = of(&other, &["--html", "-"]);
    assert!(none.code == 2 && none.stderr.contains("a page is a file"), "{}", none.stderr);
    assert_eq!(of(&other, &["--points", "5..5"]).code, 2);
    assert_eq!(run(bellwire().args(["model", "sweep"])).code, 2);
}

/// A full disk keeps what has ended; with room the same command goes on.
#[test]
fn a_full_disk_keeps_what_ended() {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    let folder = Folder::new("sweep-full");
    let place = folder.path().join("disk");
    fs::create_dir(&place).unwrap();
    mount("tmpfs", &place, "tmpfs", MountFlags::empty(), c"size=64k")
        .expect("NOT RUN: a small file system needs root");
    let file = sweep(&folder, SWEEP);
    let filler = place.join("filler");
    // The first line of the journal has room, and few others.
    fs::write(&filler, vec![1; 15 << 12]).unwrap();
    fs::write(place.join("a.parquet.journal"), "").unwrap();
    let out = place.join("a.parquet");
    let output = of(&file, &["--out", out.to_str().unwrap()]);
    let left = fs::remove_file(&filler);
    let again = of(&file, &["--out", out.to_str().unwrap(), "--json"]);
    let found = again.json();
    unmount(&place, UnmountFlags::DETACH).unwrap();
    left.unwrap();
    output.failed("No space left on device");
    assert!(output.stderr.contains("are kept"), "{}", output.stderr);
    assert!(found["kept"].as_u64().unwrap() > 0 && found["points"] == 40, "{found}");
}

/// The page has every figure against every axis, the front and the sensitivity, and loads nothing.
/// It is the same for the same results, also when these were there before.
#[test]
fn a_page_shows_the_results() {
    let folder = Folder::new("sweep-page");
    let file = sweep(&folder, &format!("minimise = [\"load.bytes\", \"round_trip_us\"]{SWEEP}"));
    let page = |name: &str| {
        let page = folder.path().join(name);
        of(&file, &["--html", page.to_str().unwrap()]).done();
        fs::read_to_string(page).unwrap()
    };
    let first = page("first.html");
    assert_eq!(first, page("second.html"));
    for part in
        ["round_trip_us against load.bytes_B", "Pareto front", "Sensitivity", "default-src 'none'"]
    {
        assert!(first.contains(part), "{part}");
    }
    let page = first.replace("<!DOCTYPE html>", "");
    roxmltree::Document::parse(&page).expect("the page is XML");
    let places = page.matches("://").count() - page.matches("http://www.w3.org/1999/xhtml").count();
    assert_eq!(places, 0, "the page names a place elsewhere");
    // Three axes, one figure, and one pair of objectives.
    assert_eq!(first.matches("<figure ").count(), 4);
}

/// An axis of texts has the texts as its ticks, one with a logarithmic scale has equal ratios, and
/// no point lies on the frame.
#[test]
fn a_page_draws_texts_ratios_and_margins() {
    let folder = Folder::new("sweep-axes");
    let file = sweep(&folder, SWEEP);
    let text = fs::read_to_string(&file).unwrap();
    let by_ratio = "{ from = \"64 B\", to = \"1 KiB\", steps = 5, scale = \"log\" }";
    fs::write(&file, text.replace("{ from = \"64 B\", to = \"1000 B\", steps = 5 }", by_ratio))
        .unwrap();
    let page = folder.path().join("page.html");
    of(&file, &["--html", page.to_str().unwrap()]).done();
    let page = fs::read_to_string(page).unwrap();
    let chart = |axis: &str| {
        let (_, chart) = page.split_once(&format!("round_trip_us against {axis}")).unwrap();
        chart.split_once("</svg>").unwrap().0.to_owned()
    };
    let ticks = |axis: &str| {
        let chart = chart(axis);
        let ticks = chart.split("class=\"tick middle\"").skip(1);
        let label = |tick: &str| tick.split(['>', '<']).nth(1).unwrap().to_owned();
        ticks.map(label).collect::<Vec<_>>()
    };
    assert_eq!(ticks("load.over"), ["hpcl", "tcp"]);
    assert_eq!(ticks("load.bytes_B"), ["64", "128", "256", "512", "1024"]);
    assert_eq!(ticks("nic.interrupt_gap_us"), ["0", "50", "100", "150"]);
    assert!(chart("load.over").contains("load.over tcp, round_trip_us"), "a point tells its text");
    for axis in ["load.over", "load.bytes_B", "nic.interrupt_gap_us"] {
        let chart = chart(axis);
        let numbers = |mark: &str| {
            let found = chart.split(mark).skip(1).map(|rest| rest.split('"').next().unwrap());
            found.map(|number| number.parse::<f64>().unwrap()).collect::<Vec<_>>()
        };
        // The drawing is 420 wide; the plot ends 16 before, and begins behind the ticks.
        let frame = chart.split("class=\"axis\" d=\"M").nth(1).unwrap();
        let left: f64 = frame.split(' ').next().unwrap().parse().unwrap();
        let (x, y) = (numbers(" cx=\""), numbers(" cy=\""));
        assert_eq!([x.len(), y.len()], [80, 80], "{axis}");
        assert!(x.iter().all(|x| (left + 4.0..400.0).contains(x)), "{axis} {x:?}");
        assert!(y.iter().all(|y| (30.0..232.0).contains(y)), "{axis} {y:?}");
    }
    let bytes = chart("load.bytes_B");
    let mut x: Vec<f64> = bytes
        .split("class=\"full\" cx=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
        .collect();
    x.sort_by(f64::total_cmp);
    x.dedup();
    let gaps: Vec<f64> = x.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() == 4 && gaps.iter().all(|gap| (gap - gaps[0]).abs() < 0.3), "{gaps:?}");
}

/// The loads and the example are printed, and the example is a sweep.
#[test]
fn an_example_is_printed() {
    let list = run(bellwire().args(["model", "sweep", "--list"])).done();
    for model in ["chpp", "damq-pd", "myvia", "smp", "hpcl", "network"] {
        assert!(list.stdout.contains(&format!("{model}, load \"")), "{}", list.stdout);
    }
    let folder = Folder::new("sweep-example");
    let example = run(bellwire().args(["model", "sweep", "--example"])).done();
    of(&sweep(&folder, &example.stdout), &["--points", "0..2"]).done();
}

/// The examples of docs/sweeps.md run, and its table of columns names those that the first gives.
#[test]
fn the_documented_example_runs() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sweeps.md");
    let page = fs::read_to_string(page).unwrap();
    let examples = page.split("```toml\n").skip(1);
    let examples: Vec<&str> = examples.map(|rest| rest.split("```").next().unwrap()).collect();
    let folder = Folder::new("sweep-documented");
    for example in &examples[1..] {
        of(&sweep(&folder, example), &["--points", "0..1"]).done();
        fs::remove_file(folder.path().join("small.0-1.parquet")).unwrap();
    }
    of(&sweep(&folder, examples[0]), &[]).done();
    let first = &rows(&folder.path().join("small.parquet"))[0];
    for column in
        ["point", "seed", "round_trip_us", "trace_hash", "version", "error", "load.bytes_B"]
    {
        assert!(page.contains(column), "{column}");
        assert!(first.contains(&format!("{column}: ")), "{column} in {first}");
    }
}

/// The rows that an engine's `python3` prints are kept, and what goes wrong there is told. Points
/// that came stay, and the same command goes on with the others.
#[test]
fn an_engine_runs_points() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("sweep-engine");
    let file = sweep(&folder, SWEEP);
    of(&file, &[]).done();
    let expected = rows(&folder.path().join("small.parquet"));
    let out = folder.path().join("on-engine.parquet");
    let python = folder.path().join("python3");
    let on_engine = |script: &str| {
        fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let mut command = bellwire();
        command.env("PATH", path).args(["model", "sweep"]).arg(&file).arg("--out").arg(&out);
        run(command.args(["--engine", "dask://nowhere:8786", "--json"]))
    };
    let row = |point: u64| {
        let hash = expected[point as usize].split("trace_hash: \"").nth(1).unwrap();
        let figure = expected[point as usize].split("round_trip_us: ").nth(1).unwrap();
        let figure = figure.split(',').next().unwrap();
        format!(
            "echo '{{\"point\":{point},\"figures\":[{figure}],\"trace_hash\":\"{}\"}}'",
            &hash[..16]
        )
    };
    on_engine("echo of the cluster; exit 0").failed("printed `of the cluster`, which is no row");
    let missing = "echo warning >&2; echo no package bellwire >&2; exit 1";
    on_engine(missing).failed("dask://nowhere:8786: no package bellwire; 40 points are left");
    on_engine("kill -9 $$").failed("python3 ended (signal: 9 (SIGKILL)); 40 points are left");
    on_engine(&format!("{}\n{}", row(3), row(3))).failed("gave point 3 twice, or unasked");
    on_engine(&row(5)).failed("38 points are left");
    let rest: Vec<String> = (0..40).filter(|point| ![3, 5].contains(point)).map(row).collect();
    let told = on_engine(&rest.join("\n")).done().json();
    assert_eq!([&told["points"], &told["kept"], &told["threads"]], [40, 2, 0]);
    assert_eq!(rows(&out), expected);
    // Nothing is left to run, so no engine is asked.
    assert_eq!(on_engine("exit 1").done().json()["kept"], 40);

    let mut alone = bellwire();
    alone.env("PATH", "/nowhere").args(["model", "sweep"]).arg(&file);
    alone.arg("--out").arg(folder.path().join("none.parquet"));
    let alone = run(alone.args(["--engine", "ray:auto"]));
    alone.failed("cannot start python3, whose package `bellwire` hands points to Dask and Ray");
    for wrong in ["dask://", "dask://host", "spark://host:1", "ray:here", "host:1", "dask://a/b:1"]
    {
        let refused = of(&file, &["--engine", wrong]);
        assert_eq!(refused.code, 2, "{wrong}");
        assert!(refused.stderr.contains("write dask://HOST:PORT"), "{}", refused.stderr);
    }
}
