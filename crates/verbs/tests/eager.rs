//! Messages that fit a packet: matching, order, backlog, refusals.

use bellwire::*;
use bellwire_testkit::loopback::{Fabric, FabricOptions};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(10);

struct Side {
    function: Function,
    cq: CompletionQueue,
    qp: QueuePair,
}

impl Side {
    fn new(fabric: &Fabric, node: u32) -> Side {
        let mut function = fabric.device(node).open_function(0).unwrap();
        let cq = function.create_completion_queue(512).unwrap();
        let qp = function.create_queue_pair(&QueuePairOptions::new(cq)).unwrap();
        Side { function, cq, qp }
    }

    fn address(&self) -> Address {
        self.function.query(self.qp).unwrap().address
    }

    fn next(&mut self) -> Completion {
        self.function.wait(self.cq, Wait::Adaptive, SECOND).unwrap()
    }
}

/// A message with an immediate value arrives whole, tells who sent it, and each side gets its buffer back.
#[test]
fn a_message_arrives() {
    let fabric = Fabric::new(FabricOptions::default());
    let (mut a, mut b) = (Side::new(&fabric, 1), Side::new(&fabric, 2));
    b.function.post_receive(b.qp, vec![0; 16], 7).unwrap();
    let send = Send::buffer(b"hello".to_vec()).to(b.address()).with_immediate(42).context(9);
    a.function.post_send(a.qp, send).unwrap();
    let received = loop {
        a.function.progress().unwrap();
        if let Some(received) = b.function.poll(b.cq).unwrap() {
            break received;
        }
    };
    assert_eq!((received.status, received.length), (Status::Success, 5));
    assert_eq!((received.context, received.immediate), (7, Some(42)));
    assert_eq!(received.peer, a.address());
    assert_eq!(received.buffer.unwrap().into_bytes(5), b"hello");
    let sent = a.next();
    assert_eq!((sent.operation, sent.context), (Operation::Send, 9));
    assert_eq!(sent.buffer.unwrap().into_vec().unwrap(), b"hello");
}
