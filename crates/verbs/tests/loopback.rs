//! The example device of `bellwire_device::Transport` carries every operation.

use bellwire::engine::DynTransport;
use bellwire::{
    Address, Atomic, Device, DeviceBackend, FunctionAddress, Get, Message, Put, QueuePairOptions,
    Result, Rights, Status, Wait,
};
use bellwire_device::NodeInfo;
use std::time::Duration;

#[allow(dead_code)]
#[path = "../../device/examples/loopback.rs"]
mod example;

struct Alone;

impl NodeInfo for Alone {
    fn node(&self) -> u32 {
        7
    }

    fn describe(&self) -> String {
        "the example".to_owned()
    }
}

impl DeviceBackend for Alone {
    fn info(&self) -> &dyn NodeInfo {
        self
    }

    fn functions(&self) -> u8 {
        1
    }

    fn open_function(&self, function: u8, _: u8) -> Result<Box<dyn DynTransport>> {
        Ok(Box::new(example::Loopback::new(FunctionAddress { node: 7, function })))
    }
}

/// Messages of any length, puts, gets and atomics work over the smallest device, and so do waits.
#[test]
fn the_example_carries_every_operation() {
    let device = Device::from_backend("example:alone", Box::new(Alone)).expect("a device");
    let mut function = device.open_function(0).expect("a function");
    let queue = function.create_completion_queue(64).expect("a queue");
    let pair = function.create_queue_pair(&QueuePairOptions::new(queue)).expect("a queue pair");
    let us = Address::new(7, 0, pair.number);
    let region = function.allocate_region(64, Rights::all()).expect("memory");
    let key = region.remote_key();
    for length in [5, 100_000] {
        function.post_receive(pair, vec![0; length], 0).expect("room");
        function.post_send(pair, Message::buffer(vec![9; length]).to(us)).expect("room");
    }
    function.post_put(pair, Put::new(vec![3; 8], key.slice(0, 8))).expect("room");
    function.post_get(pair, Get::new(key.slice(0, 8), vec![0; 8])).expect("room");
    function.post_atomic(pair, Atomic::fetch_add(key.at(8), 4)).expect("room");
    for _ in 0..7 {
        let done = function.wait(queue, Wait::Block, Duration::from_secs(8)).expect("in time");
        assert_eq!(done.status, Status::Success, "{done:?}");
    }
    assert_eq!((region.load_u64(0), region.load_u64(8)), (0x0303_0303_0303_0303, 4));
}
