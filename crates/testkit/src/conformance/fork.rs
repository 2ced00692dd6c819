//! A forked child shares memory with its parent and must not touch it.

use super::stage::{A, B, Stage};
use super::{Fixture, Node};
use bellwire::{Atomic, Error, Get, Message, Put, QueuePairOptions, Rights, Wait};
use std::time::{Duration, Instant};

/// Every call of a forked child is refused by name. The parent goes on, whatever the child does or
/// drops.
pub fn a_forked_child_is_refused(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let region = stage.nodes[B].function.allocate_region(64, Rights::all()).expect("room");
    let key = region.remote_key();
    let hello = |stage: &mut Stage<'_>| {
        stage.nodes[B].receive(8, 0);
        stage.nodes[A].send(Message::inline(b"hello").to(to));
        stage.success(A);
        stage.success(B);
    };
    hello(&mut stage);
    // SAFETY: other threads of the test harness may hold locks of the allocator, which the C
    // library keeps usable in a child. The child prints nothing, allocates little, and leaves by
    // `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            let refused = every_call_is_refused(&mut stage.nodes[A], to, key);
            let nodes = stage.nodes.leave();
            drop(nodes);
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(if refused { 0 } else { 1 }) };
        }
        child => {
            assert!(child > 0, "fork: {}", std::io::Error::last_os_error());
            let since = Instant::now();
            let mut status = 0;
            // SAFETY: asks about the child just made.
            while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
                if since.elapsed() > super::patience::limit() {
                    // SAFETY: our own child, not yet waited for.
                    unsafe { libc::kill(child, libc::SIGKILL) };
                    panic!("the forked child hangs");
                }
                hello(&mut stage);
            }
            assert_eq!(status, 0, "the forked child: 256 is a call that was not refused");
        }
    }
    hello(&mut stage);
    stage.nodes[A].put(Put::new(vec![1; 64], key));
    stage.success(A);
    assert_eq!(region.load_u64(0), 0x0101_0101_0101_0101);
}

/// Whether every call that needs the device says [`Error::Forked`].
fn every_call_is_refused(node: &mut Node, to: bellwire::Address, key: bellwire::RemoteKey) -> bool {
    let (pair, completions) = (node.queue_pair, node.completions);
    let function = &mut node.function;
    let second = Duration::from_secs(1);
    let results = [
        function.post_send(pair, Message::inline(b"x").to(to)).map_err(|r| r.error),
        function.post_receive(pair, vec![0; 8], 0).map_err(|r| r.error),
        function.post_put(pair, Put::new(vec![1; 64], key)).map_err(|r| r.error),
        function.post_get(pair, Get::new(key, vec![1; 64])).map_err(|r| r.error),
        function.post_atomic(pair, Atomic::fetch_add(key.at(0), 1)).map_err(|r| r.error),
        function.post_atomic(pair, Atomic::compare_swap(key.at(0), 1, 1)).map_err(|r| r.error),
        function.poll(completions).map(drop),
        function.progress().map(drop),
        function.wait(completions, Wait::Spin, second).map(drop),
        function.wait(completions, Wait::Block, second).map(drop),
        function.arm().map(drop),
        function.create_completion_queue(4).map(drop),
        function.create_shared_receive_queue(4).map(drop),
        function.create_queue_pair(&QueuePairOptions::new(completions)).map(drop),
        function.allocate_region(64, Rights::all()).map(drop),
        function.register(vec![0; 64], Rights::all()).map(drop).map_err(|r| r.error),
        function.listen(5).map(drop),
        function.start_connect(pair, to, b"", second),
        function.disconnect(pair),
        function.destroy_queue_pair(pair),
    ];
    results.iter().all(|result| matches!(result, Err(Error::Forked)))
}
