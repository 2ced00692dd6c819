//! A second process of the same program, which never outlives the first.

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a child may take to end by itself once it is no longer needed.
const FAREWELL: Duration = Duration::from_secs(3);

/// A running child. Dropping this closes the child's standard input; a child that does not end then
/// is killed.
pub struct Child {
    process: std::process::Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// Starts this program again. The child must begin with [`follow_parent`].
    pub fn start(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Child> {
        // The running file's path is valid even if the file has been replaced or deleted.
        let mut process = Command::new("/proc/self/exe")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a second process of this program")?;
        let input = process.stdin.take();
        let output = process.stdout.take().context("the second process has no output")?;
        Ok(Child { process, input, output: BufReader::new(output) })
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            match self.process.wait() {
                Ok(status) => bail!("the second process ended early ({status})"),
                Err(error) => bail!("the second process ended early ({error})"),
            }
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.input.take());
        let deadline = Instant::now() + FAREWELL;
        while Instant::now() < deadline {
            if matches!(self.process.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // Both fail only if it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Ties this process to its parent and returns the parent's process number. The process ends when
/// the parent ends in any way, or closes our standard input.
pub fn follow_parent() -> Result<i32> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // Otherwise process lists would show the name of the link `/proc/self/exe`.
    rustix::thread::set_name(c"bellwire")?;
    let parent = rustix::process::getppid().context("the parent is gone")?;
    // If the parent died before the signal was requested, its end of the pipe is closed, and this
    // thread notices.
    std::thread::Builder::new().name("parent".into()).spawn(|| {
        let mut nothing = [0; 64];
        while std::io::stdin().read(&mut nothing).is_ok_and(|count| count > 0) {}
        std::process::exit(1);
    })?;
    Ok(parent.as_raw_nonzero().get())
}
