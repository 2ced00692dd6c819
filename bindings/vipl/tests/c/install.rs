//! `make install` puts in place all that is needed to build and run a program.

use crate::system::{Folder, Running, compile, here};
use std::fs;
use std::process::Command;

/// The library is installed below a staging folder. A program that finds header and library only
/// there compiles and runs, and the pkg-config file names the place without that folder.
#[test]
fn what_is_installed_suffices() {
    let folder = Folder::new("install");
    let root = folder.join("root");
    let built = std::env::current_exe().expect("a path").parent().expect("a folder").to_owned();
    let status = Command::new(here("../../tools/install.sh"))
        .arg(&built)
        .arg("/opt/vipl")
        .arg(&root)
        .status()
        .expect("the script runs");
    assert!(status.success());

    let prefix = root.join("opt/vipl");
    let described = fs::read_to_string(prefix.join("lib/pkgconfig/vipl.pc")).expect("vipl.pc");
    assert!(described.starts_with("prefix=/opt/vipl\n") && !described.contains('@'));
    assert!(prefix.join("share/man/man3/vipl.3").is_file());
    // The links in the staging folder point into the installed files.
    for link in ["libvipl.so", "libvipl.so.1"] {
        fs::remove_file(folder.join(link)).expect("a link");
        let installed = prefix.join("lib").join(link);
        std::os::unix::fs::symlink(installed, folder.join(link)).expect("a link");
    }
    let sources = [here("examples/pingpong.c"), here("examples/sides.c")];
    let program = compile(&folder, "pingpong", &sources, &prefix.join("include"));
    let device = format!("shm:vipl-install-{}", std::process::id());
    Running::start(&program, &["both", &device], &[]).succeed();
}
