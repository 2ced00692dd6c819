//! Checks of the whole project: its statements about the rows must be true.

use std::fs;
use std::path::{Path, PathBuf};

use bellwire_papers::document::{DOCUMENT_PATH, feature_rows_markdown};
use bellwire_papers::{Query, RowId, checkout, scan, scoreboard};

fn checkout() -> PathBuf {
    checkout::find(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Each row cited anywhere in the project exists, and each shows line stands above a test.
#[test]
fn rows_cited_in_code_exist() {
    let problems = scan(&checkout()).unwrap().problems;
    let report: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(report.is_empty(), "\n{}", report.join("\n"));
}

/// Each row that no test shows has a reason, and no other row has one.
#[test]
fn rows_not_shown_say_why() {
    let board = scoreboard(&checkout(), &Query::default()).unwrap();
    let report: Vec<String> = board.problems.iter().map(ToString::to_string).collect();
    assert!(report.is_empty(), "\n{}", report.join("\n"));
}

/// Each property of gates that shows a row has a planted fault beside it, which its proof must
/// notice. Rows of all three papers that are in gates have such properties.
#[test]
fn properties_that_show_rows_have_planted_faults() {
    let properties = scan(&checkout()).unwrap().properties;
    for path in properties.values().flatten() {
        let (file, name) = path.split_once("::").unwrap();
        let faults = checkout().join(file).with_file_name("faults.toml");
        let faults = fs::read_to_string(&faults).unwrap();
        assert!(faults.contains(&format!("property = \"{name}\"")), "{path}");
    }
    for letter in ["C", "D", "S"] {
        assert!(properties.keys().any(|id| id.to_string().starts_with(letter)), "{letter}");
    }
}

/// The page of rows matches the rows.
#[test]
fn docs_are_current() {
    let page = fs::read_to_string(checkout().join(DOCUMENT_PATH)).unwrap();
    assert!(
        page == feature_rows_markdown(),
        "{DOCUMENT_PATH} is out of date; run `make docs` and commit it"
    );
}

/// Canary: an unknown row and a stray shows line, planted in a separate tree, are both reported
/// with file, line and remedy. Sound lines beside them pass, and foreign folders are not read.
#[test]
fn planted_faults_in_a_tree_are_caught() {
    let tree = Tree::new("planted-faults");
    let unknown = format!("D-{}", 77);
    tree.write("crates/shm/src/pool.rs", &format!("// C-28\n\n/* {unknown} */ // D-01\n"));
    tree.write(
        "crates/shm/tests/a.rs",
        "// shows: D-01\n#[test]\nfn shared() {}\n// shows: D-02\n",
    );
    tree.write("bindings/vipl/vipl.c", &format!("/* see {unknown} */\n"));
    tree.write("Makefile", &format!("# {unknown}\n"));
    tree.write("notes.txt", &unknown);
    tree.write("target/debug/x.rs", &unknown);
    tree.write("elsewhere/CACHEDIR.TAG", "");
    tree.write("elsewhere/x.rs", &unknown);
    tree.write(".hidden/x.rs", &unknown);
    tree.write(DOCUMENT_PATH, &unknown);

    let evidence = scan(&tree.top).unwrap();
    let report: Vec<String> = evidence.problems.iter().map(ToString::to_string).collect();
    let begins = [
        format!("Makefile:1: there is no row {unknown}; correct"),
        format!("bindings/vipl/vipl.c:1: there is no row {unknown}; correct"),
        format!("crates/shm/src/pool.rs:3: there is no row {unknown}; correct"),
        "crates/shm/tests/a.rs:4: this line stands above no test; put it".to_owned(),
    ];
    assert_eq!(report.len(), begins.len(), "{report:#?}");
    for (line, begin) in report.iter().zip(begins) {
        assert!(line.starts_with(&begin), "{line}\nshould begin with\n{begin}");
    }

    let id = |text| RowId::parse(text).unwrap();
    assert_eq!(evidence.citations[&id("C-28")], ["crates/shm/src/pool.rs:1"]);
    assert_eq!(evidence.citations[&id("D-01")], ["crates/shm/src/pool.rs:3"]);
    assert_eq!(evidence.tests[&id("D-01")], ["crates/shm/tests/a.rs::shared"]);
    assert_eq!(evidence.tests.len(), 1);
}

/// A folder of files that is removed when the test ends.
struct Tree {
    top: PathBuf,
}

impl Tree {
    fn new(name: &str) -> Tree {
        let top =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&top).unwrap();
        Tree { top }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.top.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.top);
    }
}
