//! Garbage on the control socket, at every stage of a link's life.

use super::attacker::{ATTACKER, VICTIM, intrude};
use crate::conformance::bytes::Random;
use crate::conformance::patience::Patience;
use bellwire::FunctionAddress;
use bellwire_shm::testing::{Intruder, Reply, SEGMENT_BYTES};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Sends bytes with up to eight descriptors. Returns whether they were taken.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> bool {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)), "at most eight");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags).is_ok()
}

/// Runs one attack after the other until the time is over, each at least once.
pub fn attack(job: &str, random: &mut Random, until: Instant) {
    every_wrong_bit(job);
    let mut round = 0;
    let mut silent = Vec::new();
    while Instant::now() < until || round < 40 {
        match round % 8 {
            0 => drop(strange_bytes(job, random)),
            1 => drop(cut_hello(job, random)),
            2 => drop(wrong_number_of_descriptors(job, random)),
            3 => drop(wrong_descriptors(job, random)),
            4 => drop(wrong_identity(job, random)),
            5 => after_the_welcome(job, random),
            6 => shrinking(job),
            _ => {
                // Keeps the connection, and says nothing.
                silent.extend(Intruder::connect(job, VICTIM).ok().flatten());
                if silent.len() > 20 {
                    silent.clear();
                }
            }
        }
        round += 1;
    }
}

/// A connection with one message sent.
fn say(job: &str, bytes: &[u8], fds: impl Fn(&Intruder) -> Vec<OwnedFd>) -> Option<Intruder> {
    let intruder = Intruder::connect(job, VICTIM).ok()??;
    let fds = fds(&intruder);
    let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    send(intruder.socket(), bytes, &fds);
    Some(intruder)
}

fn none(_: &Intruder) -> Vec<OwnedFd> {
    Vec::new()
}

fn proper(intruder: &Intruder) -> Vec<OwnedFd> {
    let descriptors = intruder.descriptors();
    descriptors.iter().filter_map(|fd| fd.try_clone_to_owned().ok()).collect()
}

fn strange_bytes(job: &str, random: &mut Random) -> Option<Intruder> {
    let length = [1, 2, 5, 60, 96, 97, 98, 200, 4000][random.below(9)];
    let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
    say(job, &bytes, if random.below(2) == 0 { none } else { proper })
}

/// A Hello with one bit flipped, for each of its bits. Each connection stays until the victim has
/// answered or hung up.
fn every_wrong_bit(job: &str) {
    let hello = Intruder::hello(ATTACKER);
    for bit in 0..8 * hello.len() {
        let mut wrong = hello.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let mut patience = Patience::new();
        let mut wait = |what| patience.spend(|| format!("no {what} for bit {bit}"));
        let mut intruder = loop {
            match say(job, &wrong, proper) {
                Some(intruder) => break intruder,
                // Too many connections wait for the victim.
                None => wait("connection"),
            }
        };
        while intruder.read() == Reply::Nothing {
            wait("answer");
        }
    }
}

fn cut_hello(job: &str, random: &mut Random) -> Option<Intruder> {
    let mut hello = Intruder::hello(ATTACKER);
    match random.below(3) {
        0 => hello.truncate(1 + random.below(hello.len() - 1)),
        1 => hello.push(0),
        _ => {
            let at = random.below(hello.len());
            hello[at] ^= 1 << random.below(8);
        }
    }
    say(job, &hello, proper)
}

fn wrong_number_of_descriptors(job: &str, random: &mut Random) -> Option<Intruder> {
    let count = [0, 1, 2, 4, 8][random.below(5)];
    say(job, &Intruder::hello(ATTACKER), |intruder| proper(intruder).into_iter().cycle_to(count))
}

/// Repeats descriptors up to a number of them.
trait CycleTo {
    fn cycle_to(self, count: usize) -> Vec<OwnedFd>;
}

impl<I: Iterator<Item = OwnedFd>> CycleTo for I {
    fn cycle_to(self, count: usize) -> Vec<OwnedFd> {
        let fds: Vec<_> = self.collect();
        fds.iter().cycle().take(count).filter_map(|fd| fd.try_clone().ok()).collect()
    }
}

fn wrong_descriptors(job: &str, random: &mut Random) -> Option<Intruder> {
    let which = random.below(3);
    let kind = random.below(7);
    say(job, &Intruder::hello(ATTACKER), |intruder| {
        let mut fds = proper(intruder);
        fds[which] = wrong_descriptor(kind, SEGMENT_BYTES[which]);
        fds
    })
}

/// A descriptor that is no trustworthy segment of `bytes` bytes.
fn wrong_descriptor(kind: usize, bytes: usize) -> OwnedFd {
    let open = |path: &str| OwnedFd::from(std::fs::File::open(path).expect("it exists"));
    match kind {
        0 => open("/dev/null"),
        1 => open("/proc/self/maps"),
        2 => open("/"),
        3 => std::io::pipe().expect("a pipe").0.into(),
        // Sealed, but of another size.
        4 => memfd(bytes / 2, SealFlags::SHRINK | SealFlags::GROW),
        // Of the right size, but not sealed.
        5 => memfd(bytes, SealFlags::empty()),
        // Sealed against writing too.
        _ => memfd(bytes, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE),
    }
}

fn memfd(bytes: usize, seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = rustix::fs::memfd_create("hostile", flags).expect("a memfd");
    rustix::fs::ftruncate(&fd, bytes as u64).expect("a size");
    if !seals.is_empty() {
        rustix::fs::fcntl_add_seals(&fd, seals).expect("seals");
    }
    fd
}

/// A Hello in another's name: of a node that does not exist, or of the victim itself.
fn wrong_identity(job: &str, random: &mut Random) -> Option<Intruder> {
    let from = [
        FunctionAddress { node: u32::MAX, function: 255 },
        FunctionAddress { node: 70_000, function: 3 },
        VICTIM,
    ][random.below(3)];
    say(job, &Intruder::hello(from), proper)
}

/// Makes a proper link, and then sends unrequested messages.
fn after_the_welcome(job: &str, random: &mut Random) {
    let deadline = Instant::now() + Duration::from_millis(300);
    let Some(mut intruder) = intrude(job, deadline) else { return };
    for _ in 0..random.below(400) {
        let fds: Vec<OwnedFd> = match random.below(6) {
            0 => vec![wrong_descriptor(random.below(7), 4096)],
            1 => proper(&intruder),
            _ => Vec::new(),
        };
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        // The first byte is the kind of record: all known kinds, and two unknown ones.
        let mut record = match random.below(10) {
            0 => Intruder::hello(ATTACKER),
            kind => {
                let mut record = vec![kind as u8 - 1];
                let length = [0, 2, 5, 10, 19, 20, 62][random.below(7)];
                record.extend((0..length).map(|_| [0, 1, 255, 7][random.below(4)]));
                record
            }
        };
        if random.below(2) == 0 {
            // Many requests for regions; each has an answer.
            record = vec![5, random.below(8) as u8, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        }
        if !send(intruder.socket(), &record, &fds) {
            break;
        }
        if random.below(20) == 0 && intruder.read() == Reply::Closed {
            break;
        }
    }
}

/// Unsealed segments, which shrink as soon as they were taken.
fn shrinking(job: &str) {
    let Some(intruder) = Intruder::connect(job, VICTIM).ok().flatten() else { return };
    let fds = SEGMENT_BYTES.map(|bytes| memfd(bytes, SealFlags::empty()));
    send(intruder.socket(), &Intruder::hello(ATTACKER), &fds.each_ref().map(AsFd::as_fd));
    std::thread::sleep(Duration::from_millis(5));
    for fd in &fds {
        rustix::fs::ftruncate(fd, 0).expect("nothing holds its size");
    }
    std::thread::sleep(Duration::from_millis(5));
}
