//! Two processes, one doorbell. Run it in two terminals: `cargo run --example first -- 0` and
//! `cargo run --example first -- 1`.

use bellwire::{Address, Device, Message, Operation, QueuePairOptions, Wait};
use std::time::Duration;

fn main() -> bellwire::Result<()> {
    let node = u32::from(std::env::args().nth(1).as_deref() == Some("1"));
    let device = Device::open(&format!("shm:first?node={node}"))?;
    let mut function = device.open_function(0)?;
    let completions = function.create_completion_queue(16)?;
    let queue_pair = function.create_queue_pair(&QueuePairOptions::new(completions))?;

    // A receive moves its buffer into the queue; the completion returns it.
    function.post_receive(queue_pair, vec![0; 64], 1)?;
    let greeting = format!("hello from node {node}");
    let peer = Address::new(1 - node, 0, queue_pair.number);
    function.post_send(queue_pair, Message::inline(greeting.as_bytes()).to(peer).context(2))?;

    let (mut sent, mut received) = (false, false);
    while !(sent && received) {
        let done = function.wait(completions, Wait::Adaptive, Duration::from_secs(30))?;
        match done.operation {
            Operation::Receive => {
                let bytes = done.buffer.expect("a receive has one").into_bytes(done.length);
                println!("{} says: {}", done.peer, String::from_utf8_lossy(&bytes));
                received = true;
            }
            _ => sent = done.status.is_success(),
        }
    }
    Ok(())
}
