//! Misleading redirects: a Bellwire program plays the door of a NIC.

use bellwire::{CompletionQueue, Device, Function, QueuePairOptions};
use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use vipl::*;

/// The number that NICs listen on.
const DOOR: u32 = u32::from_be_bytes(*b"VIPL");
/// Pause between two requests of a client that was told to ask again.
const PAUSE_MS: u64 = 5;

/// How a door answers.
#[derive(Clone, Copy)]
enum Says {
    No(&'static str),
    Yes,
}

/// Runs a client against a host whose two functions answer like this. Returns the result of its
/// request, and how often each function was asked.
fn fare(case: &str, first: Says, second: Says, timeout_ms: u64) -> (Return, [u64; 2]) {
    let name = format!("shm:vipl-door-{case}-{}", std::process::id());
    let device = Device::open(&name).expect("the host");
    let functions = [0, 1].map(|number| device.open_function(number).expect("a function"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let host = scope.spawn(|| play(functions, [first, second], &done));
        let returned = ask(&name, device.node(), timeout_ms);
        done.store(true, Ordering::Release);
        (returned, host.join().expect("the host plays on"))
    })
}

/// Answers requests until `done`; counts them.
fn play(mut functions: [Function; 2], says: [Says; 2], done: &AtomicBool) -> [u64; 2] {
    let doors = functions.each_mut().map(|function| function.listen(DOOR).expect("a door"));
    let queues: [CompletionQueue; 2] =
        functions.each_mut().map(|function| function.create_completion_queue(64).expect("a queue"));
    let mut asked = [0; 2];
    while !done.load(Ordering::Acquire) {
        for (place, function) in functions.iter_mut().enumerate() {
            let Ok(Some(request)) = function.poll_request(doors[place]) else { continue };
            asked[place] += 1;
            match says[place] {
                Says::No(why) => function.reject(request, why.as_bytes()).expect("a client"),
                Says::Yes => {
                    let options = QueuePairOptions::new(queues[place]);
                    let pair = function.create_queue_pair(&options).expect("a queue pair");
                    // The client's own greeting serves as an answer.
                    let greeting = request.private_data.clone();
                    function.accept(request, pair, &greeting).expect("a client");
                }
            }
        }
        std::thread::yield_now();
    }
    asked
}

/// A VI of a new NIC asks the first function of `node`.
fn ask(device: &str, node: u32, timeout_ms: u64) -> Return {
    let device = CString::new(device).expect("no zero");
    let attributes = ViAttributes {
        reliability_level: 2,
        max_transfer_size: 4096,
        qos: null_mut(),
        ptag: null_mut(),
        enable_rdma_write: 0,
        enable_rdma_read: 0,
    };
    // Host address of 6 bytes, discriminator of one byte.
    let mut address = [6, 0, 1, 0, 0, 0, 0, 0, 0, 0, b'x'];
    address[4..8].copy_from_slice(&node.to_be_bytes());
    let address = address.as_ptr().cast::<NetAddress>();
    let (mut nic, mut vi): (*mut c_void, *mut c_void) = (null_mut(), null_mut());
    let mut theirs = attributes;
    // SAFETY: texts end with a zero, places are variables, and the address is as long as it says.
    unsafe {
        assert_eq!(VipOpenNic(In::new(device.as_ptr()), Out::from(&mut nic)), Return::Success);
        assert_eq!(
            VipCreateVi(nic, Some(&attributes), null_mut(), null_mut(), Out::from(&mut vi)),
            Return::Success
        );
        let address = || In::new(address);
        let returned =
            VipConnectRequest(vi, address(), address(), timeout_ms as _, Out::from(&mut theirs));
        let mut state = ViState::Error;
        let (mut sends, mut receives, mut again) = (0, 0, attributes);
        assert_eq!(
            VipQueryVi(
                vi,
                Out::from(&mut state),
                Out::from(&mut again),
                Out::from(&mut sends),
                Out::from(&mut receives),
            ),
            Return::Success
        );
        let wanted = if returned == Return::Success { ViState::Connected } else { ViState::Idle };
        assert_eq!(state, wanted);
        assert_eq!(VipCloseNic(nic), Return::Success);
        let none = || In::new(null());
        assert_ne!(
            VipConnectRequest(vi, none(), none(), 0, Out::from(&mut theirs)),
            Return::Success
        );
        returned
    }
}

/// A client follows one redirect to another function of the node, and connects there.
// shows: M-03
#[test]
fn a_pointer_is_followed() {
    let (returned, asked) = fare("one", Says::No("ask function 1"), Says::Yes, 20_000);
    assert_eq!((returned, asked), (Return::Success, [1, 1]));
}

/// A client follows redirects in a circle, or back to the redirecting function, at its own pace,
/// and ends with its timeout.
// shows: M-03
#[test]
fn pointers_in_a_circle_end() {
    let patience = 200;
    for (case, first, second) in
        [("circle", "ask function 1", "ask function 0"), ("self", "ask function 0", "rejected")]
    {
        let (returned, asked) = fare(case, Says::No(first), Says::No(second), patience);
        assert_eq!(returned, Return::Timeout);
        assert!((1..=patience / PAUSE_MS + 1).contains(&asked[0]), "{case}: asked {asked:?}");
        assert!(asked[1] <= asked[0], "{case}: asked {asked:?}");
    }
}

/// The target of a redirect may be gone: the request times out, as with any server that goes away.
// shows: M-03
#[test]
fn a_pointer_to_nobody_times_out() {
    let (returned, asked) = fare("gone", Says::No("ask function 5"), Says::Yes, 200);
    assert_eq!((returned, asked), (Return::Timeout, [1, 0]));
}

/// Other answers are refusals: no text redirects to another node.
// shows: M-03
#[test]
fn other_answers_are_refusals() {
    for text in ["rejected", "ask node 1 function 1", "ask function 1.1", "ask function 300", ""] {
        let (returned, asked) = fare("text", Says::No(text), Says::Yes, 20_000);
        assert_eq!((returned, asked), (Return::Reject, [1, 0]), "{text:?}");
    }
}
