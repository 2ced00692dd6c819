//! A function of a simulated machine on which nothing will ever happen again.

use bellwire::*;
use std::time::Duration;

/// All calls that would wait for ever say so.
#[test]
fn a_standstill_is_told_by_all_calls() {
    let (ended, has_ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let name = format!("model:chpp:standstill-{}?programs=1", std::process::id());
        let device = Device::open(&name).expect("a node");
        let mut function = device.open_function(0).expect("a function");
        let queue = function.create_completion_queue(4).expect("a queue");
        let told = loop {
            match function.poll(queue) {
                Ok(None) => {}
                told => break told.map(drop),
            }
        };
        let waits = [Wait::Spin, Wait::Adaptive, Wait::Block];
        let waits = waits.map(|how| function.wait(queue, how, Duration::MAX).map(drop));
        let others = [function.progress().map(drop), function.arm().map(drop)];
        ended.send([told].into_iter().chain(waits).chain(others).collect::<Vec<_>>()).unwrap();
    });
    let told = has_ended.recv_timeout(Duration::from_secs(8)).expect("it does not end");
    assert_eq!(told.len(), 6);
    assert!(told.iter().all(|it| matches!(it, Err(Error::Standstill { .. }))), "{told:?}");
}
