//! Laws across counters, besides the checks of each block.

use super::config::Buffers;
use super::node::Node;
use crate::stats::Imbalance;

/// With fixed buffers no message is copied between user and kernel. Each received message is copied
/// once, into the ring (H-21), or twice if the ring was full. With dynamic buffers it is copied
/// from the user, into a kernel buffer, and to the user (B-25). Bytes written to and read from
/// sockets are copied once on each side.
pub(super) fn copies(node: &mut Node) -> Result<(), Imbalance> {
    let delivered: u64 = node
        .module
        .iter_mut()
        .flat_map(super::device::Module::channels)
        .map(|channel| channel.endpoint.counters().packets_delivered)
        .sum();
    let counters = node.counters;
    let (written, read) = node.sockets.iter().fold((0, 0), |(written, read), socket| {
        let [to, _, _, _, from] = socket.books();
        (written + to, read + from)
    });
    let by_sockets = written > 0 || read > 0;
    let fixed = node.config.hpcl.buffers == Buffers::Fixed;
    let law = if counters.copies_to_ring != delivered {
        "one copy into the ring for each message delivered"
    } else if fixed && !by_sockets && counters.copies_from_user + counters.copies_to_user > 0 {
        "no copy between user and kernel with fixed buffers"
    } else if !fixed && !by_sockets && counters.copies_to_user != counters.received {
        "one copy to the user for each message received with dynamic buffers"
    } else if fixed && counters.allocations > 0 {
        "no buffer made for a message with fixed buffers"
    } else if counters.needless_reaps > 0 {
        "reaping only if no message waits"
    } else if counters.mismatches > 0 {
        "messages come as they were sent, in order"
    } else {
        return Ok(());
    };
    Err(Imbalance {
        queue: format!("node {}", node.number),
        law,
        details: format!("{delivered} delivered; {counters:?}"),
    })
}
