//! The C compiler, and programs with a deadline.

use bellwire_testkit::network::Host;
use std::io::{BufRead, BufReader, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that runs longer hangs.
const DEADLINE: Duration = Duration::from_secs(120);

pub fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A folder of this test in this process, with the library under the name that programs look for.
/// Another run of the tests at the same time has others. It goes with its contents when dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let name = format!("vipl-{name}-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // Of a run that was killed.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder for what is compiled");
        let library = std::env::current_exe().expect("a path").with_file_name("libvipl.so");
        assert!(library.exists(), "{} is missing", library.display());
        for link in ["libvipl.so", "libvipl.so.1"] {
            std::os::unix::fs::symlink(&library, folder.join(link)).expect("a link to the library");
        }
        Folder(folder)
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiles C and links it with the library; warnings are errors.
pub fn compile(folder: &Path, name: &str, sources: &[PathBuf], header: &Path) -> PathBuf {
    compile_as(&["-std=gnu99"], folder, name, sources, header)
}

/// Like [`compile`], for another C standard.
pub fn compile_as(
    standard: &[&str],
    folder: &Path,
    name: &str,
    sources: &[PathBuf],
    header: &Path,
) -> PathBuf {
    let program = folder.join(name);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(&compiler)
        .args(standard)
        .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror"])
        .arg("-I")
        .arg(header)
        .arg("-I")
        .arg(here("examples"))
        .args(sources)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(folder)
        .args(["-lvipl", "-lpthread"])
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .output()
        .unwrap_or_else(|error| panic!("NOT RUN: {compiler}, the C compiler: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} does not compile:\n{said}");
    program
}

/// Two hosts with a pair of Ethernet interfaces, `vi0` and `vi1`, that are up.
pub fn wired_hosts() -> (Host, Host) {
    let (near, far) = (Host::new(), Host::new());
    near.wire("vi0", &far, "vi1");
    for (host, name) in [(&near, "vi0"), (&far, "vi1")] {
        host.run(|| {
            let up = Command::new("ip").args(["link", "set", name, "up"]).status();
            assert!(up.expect("ip").success());
        });
    }
    (near, far)
}

/// A program that was started; killed if the test ends before it.
pub struct Running {
    child: Child,
    what: String,
    output: Option<BufReader<std::process::ChildStdout>>,
}

impl Running {
    pub fn start(program: &Path, arguments: &[&str], settings: &[(&str, &str)]) -> Running {
        let what = format!("{} {}", program.display(), arguments.join(" "));
        let mut child = Command::new(program)
            .args(arguments)
            .envs(settings.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let output = child.stdout.take().map(BufReader::new);
        Running { child, what, output }
    }

    /// The program's next line.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let output = self.output.as_mut().expect("its output is read to the end at the end");
        output.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Waits until it succeeds; returns the rest of its output.
    pub fn succeed(mut self) -> String {
        let deadline = Instant::now() + DEADLINE;
        let status = loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => break status,
                None if Instant::now() > deadline => panic!("{} hangs", self.what),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let mut said = String::new();
        if let Some(mut output) = self.output.take() {
            let _ = output.read_to_string(&mut said);
        }
        assert!(status.success(), "{}: {status}\n{said}", self.what);
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
