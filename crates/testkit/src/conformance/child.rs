//! Second processes: they begin in a program of this package, and play a role.

use super::patience::limit;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The program in which they begin (`src/bin`).
const PROGRAM: &str = "bellwire-testkit-child";

/// Names the role of a child.
pub const ROLE: &str = "BELLWIRE_TEST_ROLE";
/// Names the device that it opens.
pub const DEVICE: &str = "BELLWIRE_TEST_DEVICE";
/// Names the peer of the child.
pub const PEER: &str = "BELLWIRE_TEST_PEER";

/// A child process. It is killed when this is dropped, or when the test that started it dies.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts a child for one kind of tests, as [`crate::play`] knows them, with the given
    /// environment.
    pub fn start(kind: &str, environment: &[(&str, &str)]) -> Process {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(program());
        command.arg(kind).envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // SAFETY: between fork and exec, one system call that allocates nothing.
        unsafe {
            command.pre_exec(|| {
                // The signal comes at the latest when the thread that started the child ends.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            })
        };
        Process(command.spawn().expect("the program starts"))
    }

    /// The process number.
    pub fn id(&self) -> i32 {
        self.0.id() as i32
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: a signal to our own child, which has not been waited for, so its number is still
        // its own.
        unsafe { libc::kill(self.id(), signal) };
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("our own child")
    }

    /// Waits for its end, within [`limit`], and returns the status.
    #[track_caller]
    pub fn end(&mut self) -> ExitStatus {
        self.end_within(limit())
    }

    /// Waits for its end, at most for `limit`, and returns the status.
    #[track_caller]
    pub fn end_within(&mut self, limit: Duration) -> ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(since.elapsed() < limit, "child {} does not end", self.id());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for its end, which must be a success.
    #[track_caller]
    pub fn succeed(mut self) {
        let status = self.end();
        assert!(status.success(), "the child failed: {status}; its words are above");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Path of the program: beside the folder of the running test, or the running program itself.
fn program() -> PathBuf {
    let running = std::env::current_exe().expect("a running test");
    let places = running.ancestors().skip(1).take(2);
    places.map(|place| place.join(PROGRAM)).find(|program| program.exists()).unwrap_or_else(|| {
        let running = running.display();
        panic!("no {PROGRAM} near {running}: cargo test -p bellwire-testkit builds it")
    })
}

/// Whether process `id` is stopped by a signal now.
pub fn is_stopped(id: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    state.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// The value of a child's environment variable.
#[track_caller]
pub fn told(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("a child needs {name}"))
}
