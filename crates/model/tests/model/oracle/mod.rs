//! Random traffic on a modelled cHPP machine; each operation is compared byte by byte with its
//! expected effect.

use std::collections::HashMap;

use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{pattern, post};
use bellwire_model::chpp::host::{Notice, RingKind};
use bellwire_model::chpp::machine::{HostApi, Program};
use bellwire_model::chpp::{Config, Machine};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::event::Status;

/// The expected effect of an operation.
pub enum Due {
    /// These bytes in a slot of the receiver.
    Nap(Vec<u8>),
    /// These bytes at this address.
    Memory(u64, Vec<u8>),
}

/// Random operations of all kinds between random queue pairs; each is compared byte by byte when
/// its event arrives.
pub struct Traffic {
    left: u32,
    due: HashMap<u32, Due>,
    /// Send events by operation.
    pub sent: HashMap<u32, u32>,
    next_place: HashMap<(usize, usize), u64>,
    functions: u64,
    nodes: u64,
    /// Operations that ended.
    pub checked: u32,
    /// Canary: compares with one byte changed.
    pub wrong_oracle: bool,
    /// Operations that ended with wrong bytes.
    pub mismatches: u32,
}

impl Traffic {
    pub fn new(config: &Config, operations: u32) -> Traffic {
        Traffic {
            left: operations,
            due: HashMap::new(),
            sent: HashMap::new(),
            next_place: HashMap::new(),
            functions: config.nic.functions as u64,
            nodes: config.nodes() as u64,
            checked: 0,
            wrong_oracle: false,
            mismatches: 0,
        }
    }

    /// Allocates an unused piece of a function's memory, at an odd address.
    fn place(&mut self, api: &HostApi<'_>, at: Endpoint, bytes: u64) -> u64 {
        let key = (usize::from(at.cpu()), usize::from(at.function()));
        let next = self.next_place.entry(key).or_insert_with(|| api.free_memory(key.0, key.1));
        let place = *next;
        *next += bytes + 1 + place % 5;
        place
    }

    pub fn post(&mut self, api: &mut HostApi<'_>) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let end = |api: &mut HostApi<'_>| {
            let (node, function, pair) =
                (api.below(self.nodes), api.below(self.functions), api.below(4));
            Endpoint::new(node as u8, function as u8, pair as u8).unwrap()
        };
        let (from, to) = (end(api), end(api));
        let kind = Kind::ALL[api.below(4) as usize];
        let most = if kind.is_nap() { 2048 } else { 6000 };
        let bytes = if api.below(4) == 0 { api.below(20) } else { api.below(most + 1) };
        let (near, far) = (self.place(api, from, bytes), self.place(api, to, bytes));
        let source = if kind == Kind::Get { far } else { near };
        let seed = api.below(1 << 30) as usize;
        let memory = api.memory_mut(source, bytes as usize).unwrap();
        memory.iter_mut().enumerate().for_each(|(at, byte)| *byte = pattern(seed + at));
        let mut expected = memory.to_vec();
        if self.wrong_oracle && bytes > 0 {
            expected[bytes as usize / 2] ^= 1;
        }
        let operation = post(api, kind, (from, to), (near, far), bytes).unwrap();
        let due = match kind {
            Kind::NapImmediate | Kind::NapIndirect => Due::Nap(expected),
            Kind::Put => Due::Memory(far, expected),
            Kind::Get => Due::Memory(near, expected),
        };
        self.due.insert(operation, due);
    }
}

impl Program for Traffic {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        assert_eq!(notice.event.status, Status::Success);
        if notice.ring == RingKind::Send {
            *self.sent.entry(notice.operation).or_default() += 1;
            return;
        }
        let due = self
            .due
            .remove(&notice.operation)
            .expect("each operation gives one event to its receiver");
        let (address, expected) = match due {
            Due::Nap(expected) => (notice.event.address, expected),
            Due::Memory(address, expected) => (address, expected),
        };
        let got = api.memory(address, expected.len()).unwrap();
        self.mismatches += u32::from(got != expected);
        self.checked += 1;
        self.post(api);
    }
}

/// Runs random traffic; returns the machine and the oracle's findings.
pub fn random_traffic(
    config: &Config,
    seed: u64,
    operations: u32,
    wrong_oracle: bool,
) -> (Machine, Traffic) {
    let mut machine = Machine::new(config, seed).unwrap();
    let mut traffic = Traffic::new(config, operations);
    traffic.wrong_oracle = wrong_oracle;
    for _ in 0..100 {
        traffic.post(&mut machine.api());
    }
    machine.run_to_end(&mut traffic).unwrap();
    (machine, traffic)
}
