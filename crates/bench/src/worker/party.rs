//! Forked processes that act together: their start, pinning, orders and end.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::ValueEnum;
use rustix::process::{
    Pid, Signal, WaitOptions, getppid, kill_process, set_parent_process_death_signal, waitpid,
};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::memory::SharedMemory;
use crate::network::enter_far_side;
use crate::op::Op;

/// One of the processes of a contender.
pub struct Party {
    /// 0 for the leader, then 1, 2, ... for the followers.
    pub index: usize,
    pub shared: SharedMemory,
    pub leader_pid: libc::pid_t,
    /// At the leader one socket to each follower; at a follower one socket to the leader.
    control: Vec<UnixStream>,
    /// The leader's children.
    followers: Vec<Pid>,
}

impl Party {
    /// Forks `followers` processes and returns in all of them. The leader runs on the first CPU,
    /// the followers on the second. The program must have only one thread.
    pub fn assemble(followers: usize, shared_bytes: usize, cpus: [usize; 2]) -> Result<Party> {
        let shared = SharedMemory::map(shared_bytes)?;
        let leader_pid = std::process::id() as libc::pid_t;
        let (mut control, mut children) = (Vec::new(), Vec::new());
        for index in 1..=followers {
            let (ours, theirs) = UnixStream::pair().context("making a control socket")?;
            // SAFETY: the program has one thread, so the child may run normally.
            match unsafe { libc::fork() } {
                -1 => bail!("cannot fork a follower: {}", std::io::Error::last_os_error()),
                0 => {
                    end_with_parent(leader_pid)?;
                    pin(cpus[1])?;
                    enter_far_side()?;
                    // Drop the copies of the leader's ends, so that the other followers see the
                    // leader's end.
                    drop(ours);
                    let control = vec![theirs];
                    return Ok(Party { index, shared, leader_pid, control, followers: vec![] });
                }
                child => {
                    control.push(ours);
                    children.extend(Pid::from_raw(child));
                }
            }
        }
        pin(cpus[0])?;
        Ok(Party { index: 0, shared, leader_pid, control, followers: children })
    }

    /// Whether this process talks to the driver.
    pub fn is_leader(&self) -> bool {
        self.index == 0
    }

    /// Leader: sends an order to the followers that take part. All take part in a fan-in, otherwise
    /// only the first.
    pub fn order(&mut self, op: Op, bytes: usize, count: u64) -> Result<()> {
        for (place, socket) in self.control.iter_mut().enumerate() {
            let kind = if place == 0 || op == Op::FanIn { op as u64 } else { SIT_OUT };
            let mut frame = [0; FRAME_BYTES];
            for (field, value) in frame.chunks_exact_mut(8).zip([kind, bytes as u64, count]) {
                field.copy_from_slice(&value.to_le_bytes());
            }
            socket.write_all(&frame).context("a follower is gone")?;
        }
        Ok(())
    }

    /// Follower: sleeps until the leader's next order for it; `None` when the leader has ended.
    pub fn next_order(&mut self) -> Result<Option<(Op, usize, u64)>> {
        loop {
            let mut frame = [0; FRAME_BYTES];
            match self.control[0].read_exact(&mut frame) {
                Ok(()) => {}
                Err(why) if why.kind() == ErrorKind::UnexpectedEof => return Ok(None),
                Err(why) => return Err(why).context("the leader is gone"),
            }
            let field = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| frame[at * 8 + i]));
            if field(0) == SIT_OUT {
                self.agree()?;
                continue;
            }
            let op = Op::value_variants().get(field(0) as usize);
            let op = *op.context("an order without an operation")?;
            return Ok(Some((op, field(1) as usize, field(2))));
        }
    }

    /// Follower: reports that the side is open, or that an order is done.
    pub fn agree(&mut self) -> Result<()> {
        self.control[0].write_all(&[0; 2]).context("the leader is gone")
    }

    /// Follower: reports why the side cannot be opened.
    pub fn disagree(&mut self, why: &str) -> Result<()> {
        let why = &why.as_bytes()[..why.len().min(u16::MAX as usize)];
        self.control[0].write_all(&(why.len() as u16).to_le_bytes())?;
        self.control[0].write_all(why).context("the leader is gone")
    }

    /// Leader: waits until every follower agrees; an error carries the words of the first that does
    /// not.
    pub fn all_agree(&mut self) -> Result<()> {
        for socket in &mut self.control {
            let mut len = [0; 2];
            socket.read_exact(&mut len).context("a follower ended early")?;
            let mut why = vec![0; usize::from(u16::from_le_bytes(len))];
            socket.read_exact(&mut why).context("a follower ended early")?;
            ensure!(why.is_empty(), "{}", String::from_utf8_lossy(&why));
        }
        Ok(())
    }

    /// Leader: lets the followers end, and reaps them.
    pub fn dismiss(mut self) {
        self.control.clear();
        let end = Instant::now() + FAREWELL;
        for child in self.followers {
            while let Ok(None) = waitpid(Some(child), WaitOptions::NOHANG) {
                if Instant::now() > end {
                    // It waits for a message of an abandoned run. It has not been reaped, so the
                    // number is still its own.
                    let _ = kill_process(child, Signal::KILL);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// How long followers may take to end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Operation, bytes and count, each 64 bits.
const FRAME_BYTES: usize = 24;

/// In place of an operation: this follower does not take part.
const SIT_OUT: u64 = u64::MAX;

/// Makes the kernel end this process when its parent ends, so that nothing is left running.
fn end_with_parent(parent: libc::pid_t) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot ask for the parent's death signal")?;
    ensure!(Pid::as_raw(getppid()) == parent, "the parent ended at once");
    Ok(())
}

fn pin(cpu: usize) -> Result<()> {
    ensure!(cpu < CpuSet::MAX_CPU, "no CPU has the number {cpu}");
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
        .map_err(|error| anyhow!("cannot stay on CPU {cpu}: {error}; allow this process two CPUs"))
}
