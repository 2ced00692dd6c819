//! The process that survives, and its checks.

use super::residue::Residue;
use super::steps::Passage;
use super::subject::{self, LISTENER, SUBJECT_NODE, SURVIVOR_NODE};
use super::workout::{Ended, Workout};
use super::{CRASH, PASSAGE, SCENARIO, SUBJECT, SURVIVOR, Scenario};
use crate::conformance::child::{DEVICE, Process, ROLE, is_stopped, told};
use crate::conformance::{Fixture, Named, Patience};
use bellwire::{Address, Error, Wait};
use std::cell::RefCell;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Whether the subject reached the passage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It did, and all checks passed.
    Survived,
    /// It finished the workout with fewer passages of the step.
    NotReached,
}

/// Exit code of a survivor whose subject never reached the passage.
const NOT_REACHED: i32 = 70;

/// Runs one survivor with one subject. Panics if a check fails; the survivor's message is on
/// stderr.
pub fn survive(scenario: Scenario, passage: &Passage) -> Outcome {
    let network = Named::new("shm");
    let (scenario, passage) = (format!("{scenario:?}"), passage.to_string());
    let environment = [
        (ROLE, SURVIVOR),
        (DEVICE, network.name().expect("a name")),
        (SCENARIO, &scenario),
        (PASSAGE, &passage),
    ];
    let status = Process::start(CRASH, &environment).end();
    match status.code() {
        Some(0) => Outcome::Survived,
        Some(NOT_REACHED) => Outcome::NotReached,
        _ => panic!("{scenario} with {passage}: the survivor ended with {status}"),
    }
}

/// The survivor's main function.
pub fn play() {
    let device = told(DEVICE);
    let job = device.split_once(':').expect("a device name").1;
    let scenario = Scenario::parse(&told(SCENARIO));
    let passage = Passage::parse(&told(PASSAGE)).expect("a passage");
    let before = Residue::count(job);
    assert!(before.names.is_empty(), "the job is new: {before:?}");
    let reached = meet(scenario, Some(&passage));
    let after = Residue::count(job);
    assert_eq!(after, before, "what a crash left behind");
    if reached {
        assert!(!meet(scenario, None), "nobody is killed in the next run, which is clean");
        assert_eq!(Residue::count(job), before, "what a clean run left behind");
    } else {
        std::process::exit(NOT_REACHED);
    }
}

/// One run with a new subject. Returns whether it reached the passage.
fn meet(scenario: Scenario, passage: Option<&Passage>) -> bool {
    let mut environment = vec![
        (ROLE.to_owned(), SUBJECT.to_owned()),
        (DEVICE.to_owned(), told(DEVICE)),
        (SCENARIO.to_owned(), format!("{scenario:?}")),
    ];
    if let Some(passage) = passage {
        environment.push(("BELLWIRE_STEP".to_owned(), passage.to_string()));
    }
    let environment: Vec<_> = environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let mut node = subject::open(SURVIVOR_NODE);
    let pair = node.queue_pair;
    let listener = node.function.listen(LISTENER).expect("free");
    let child = Watched::new(Process::start(CRASH, &environment));
    let to = match scenario {
        Scenario::Initiator => {
            let request = until(&child, || {
                let nap = Duration::from_millis(10);
                match node.function.wait_request(listener, Wait::Block, nap) {
                    Err(Error::TimedOut { .. }) => None,
                    other => Some(other.expect("a request")),
                }
            });
            // Its link may be down already.
            match request.map(|request| node.function.accept(request, pair, b"survivor")) {
                Some(Ok(())) => None,
                Some(Err(Error::Unreachable { .. })) | None => return child.conclude(passage),
                Some(Err(error)) => panic!("{error}"),
            }
        }
        Scenario::Target => {
            let there = subject::at(SUBJECT_NODE, LISTENER);
            node.function.start_connect(pair, there, b"", Duration::from_secs(4)).expect("asked");
            let connected = until(&child, || {
                // A poll, and a short sleep.
                let _ = node.function.wait(node.completions, Wait::Block, Duration::from_millis(2));
                match node.function.poll_connection(pair) {
                    Ok(bellwire::ConnectionProgress::Waiting) => None,
                    Ok(_) => Some(true),
                    Err(Error::Unreachable { .. }) => Some(false),
                    Err(error) => panic!("{error}"),
                }
            });
            if connected != Some(true) {
                return child.conclude(passage);
            }
            None
        }
        Scenario::Crossing => {
            // The subject's function listens, and asks us for a link before it checks its own
            // listener.
            let there = subject::at(SUBJECT_NODE, pair.number);
            let present = until(&child, || is_listening(there).then_some(()));
            if present.is_none() {
                return child.conclude(passage);
            }
            Some(there)
        }
    };
    let mut has_asked = None;
    let mut workout = Workout::new(node, to, || child.ended());
    if scenario == Scenario::Crossing {
        // We ask for a link, and then read nothing until the subject has read our request.
        workout.after_first_post(|_| {
            has_asked = UnixListener::bind_addr(&subject::asked()).ok();
            let mut patience = Patience::new();
            while UnixStream::connect_addr(&subject::crossed()).is_err() && !child.has_crashed() {
                patience.spend(|| "the subject does not read our request".to_owned());
            }
        });
    }
    let result = workout.run(false);
    match result {
        Ok(()) => {
            // The called side leaves last, so that the caller's end does not look like a crash.
            let reached = child.conclude(passage);
            workout.drain();
            reached
        }
        Err(Ended) => {
            let stopped = passage.is_some_and(|passage| passage.stop);
            assert!(!stopped, "a peer that stopped for a while was taken for dead");
            workout.drain();
            let reached = child.conclude(passage);
            assert!(reached, "the subject's end was reported, but it was not killed");
            reached
        }
    }
}

/// Whether a process listens at the function of `there`.
fn is_listening(there: Address) -> bool {
    let device = told(DEVICE);
    let listening = bellwire_shm::name::listening().expect("procfs");
    listening.iter().any(|found| {
        device.ends_with(&format!(":{}", found.job)) && found.address == there.function_address()
    })
}

/// Repeats `ask` until it returns a value, or the child has ended.
fn until<T>(child: &Watched, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let mut patience = Patience::new();
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if child.ended() {
            return None;
        }
        assert!(!patience.is_over(), "the subject neither comes nor goes");
        patience.spend(String::new);
    }
}

/// A child. After it has stopped, a thread continues it after a while.
struct Watched {
    child: RefCell<Process>,
    continued: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watched {
    fn new(child: Process) -> Watched {
        let continued = Arc::new(AtomicBool::new(false));
        let over = Arc::new(AtomicBool::new(false));
        let id = child.id();
        let flags = (continued.clone(), over.clone());
        let thread = std::thread::spawn(move || {
            while !flags.1.load(Ordering::SeqCst) {
                if is_stopped(id) {
                    // Time for the survivor to use a peer that does not answer.
                    std::thread::sleep(Duration::from_millis(60));
                    // SAFETY: a signal to our own child, which has not been waited for: it is
                    // stopped.
                    unsafe { libc::kill(id, libc::SIGCONT) };
                    flags.0.store(true, Ordering::SeqCst);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Watched { child: RefCell::new(child), continued, over, thread: Some(thread) }
    }

    /// Whether it has ended.
    fn ended(&self) -> bool {
        self.child.borrow_mut().ended().is_some()
    }

    /// Whether it has ended or stopped.
    fn has_crashed(&self) -> bool {
        self.ended() || is_stopped(self.child.borrow().id())
    }

    /// Waits for its end, which must be as planned. Returns whether it reached the passage.
    fn conclude(&self, passage: Option<&Passage>) -> bool {
        let status = self.child.borrow_mut().end();
        let killed = status.signal() == Some(libc::SIGKILL);
        match passage {
            Some(passage) if !passage.stop && killed => true,
            _ => {
                assert!(status.success(), "the subject ended with {status}");
                self.continued.load(Ordering::SeqCst)
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
