//! Programs that know nothing of Bellwire find files below `/sys/class/infiniband`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder for as long as the test runs.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a program prints with the library, and whether it succeeded.
fn with_library(folder: Option<&Path>, program: &[&str]) -> (String, bool) {
    let tests = std::env::current_exe().expect("the place of this program");
    let library = tests.with_file_name("libbellwire_sysfs.so");
    assert!(library.exists(), "no {}", library.display());
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).env("LD_PRELOAD", library).env_remove("BELLWIRE_SYSFS");
    if let Some(folder) = folder {
        command.env("BELLWIRE_SYSFS", folder);
    }
    let done = command.output().expect("it runs");
    (String::from_utf8(done.stdout).expect("text"), done.status.success())
}

/// Files, folders and links are read and looked at in the other folder, and nothing else is.
#[test]
fn paths_lead_to_the_other_folder() {
    let folder =
        Folder(std::env::temp_dir().join(format!("bellwire-sysfs-{}", std::process::id())));
    let device = folder.0.join("class/bellwire0");
    std::fs::create_dir_all(device.join("device/net/lo")).expect("a folder");
    std::fs::write(device.join("node_type"), "1: CA\n").expect("a file");
    std::os::unix::fs::symlink("node_type", device.join("link")).expect("a link");
    // A folder whose name only begins like it.
    std::fs::create_dir(folder.0.join("class/_verbs")).expect("a folder");
    std::fs::create_dir(folder.0.join("dev")).expect("a folder");
    std::fs::write(folder.0.join("dev/uverbs0"), "").expect("a file");

    let sys = "/sys/class/infiniband";
    let answers = |program: &[&str]| with_library(Some(&folder.0), program);
    let ok = |text: &str| (text.to_owned(), true);
    assert_eq!(answers(&["cat", &format!("{sys}/bellwire0/node_type")]), ok("1: CA\n"));
    assert_eq!(answers(&["ls", sys]), ok("_verbs\nbellwire0\n"));
    assert_eq!(answers(&["ls", &format!("{sys}/bellwire0/device/net/")]), ok("lo\n"));
    assert_eq!(answers(&["readlink", &format!("{sys}/bellwire0/link")]), ok("node_type\n"));
    assert_eq!(answers(&["stat", "-c", "%F", &format!("{sys}/bellwire0")]), ok("directory\n"));
    // It follows links by itself.
    let real = format!("{sys}/bellwire0/node_type\n");
    assert_eq!(answers(&["realpath", &format!("{sys}/bellwire0/link")]), ok(&real));
    let looks = format!(
        "test -r {sys}/bellwire0/link && test ! -e {sys}/bellwire1 && cat < {sys}/bellwire0/link"
    );
    assert_eq!(answers(&["sh", "-c", &looks]), ok("1: CA\n"));
    assert_eq!(answers(&["ls", "/dev/infiniband"]), ok("uverbs0\n"));
    // Others are as they were.
    assert!(!answers(&["ls", &format!("{sys}_verbs/x")]).1);
    assert!(answers(&["ls", "/proc/self/status"]).1);
    assert!(!answers(&["cat", &format!("{sys}/{}", "x".repeat(5000))]).1);
}

/// Without the variable nothing changes.
#[test]
fn without_a_folder_nothing_changes() {
    assert!(!with_library(None, &["cat", "/sys/class/infiniband/bellwire0/node_type"]).1);
    assert_eq!(with_library(None, &["echo", "yes"]), ("yes\n".to_owned(), true));
}
