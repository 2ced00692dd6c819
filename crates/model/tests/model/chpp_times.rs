//! The time of one operation on an idle machine, computed from the parameters: each block by its
//! own rule, in the order of the path (cHPP, Figs. 11 and 12).

use bellwire_model::chpp::Config;
use bellwire_model::chpp::config::Packing;
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{endpoint, single};
use bellwire_model::chpp::journal::{Interval, Stage};
use bellwire_model::units::Span;
use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::entry::{Chain, Entry};
use bellwire_wire::tail::Tail;

/// Something that serves one after the other: free from then on, in picoseconds.
#[derive(Clone, Copy, Default)]
struct Unit(u64);

impl Unit {
    /// When a request of `now` begins that takes `time`.
    fn serve(&mut self, now: u64, time: u64) -> u64 {
        let begins = now.max(self.0);
        self.0 = begins + time;
        begins
    }
}

/// The parameters in picoseconds.
struct Rules<'a> {
    config: &'a Config,
    cycle: u64,
    module: u64,
    latency: u64,
}

impl Rules<'_> {
    /// Bytes on the wires: 8 lanes of 5 GHz with 8 of 10 bits of data.
    fn wire(&self, bytes: u64) -> u64 {
        let pcie = &self.config.pcie;
        let rate = pcie.transfer_rate.hz() * pcie.lanes / 8 * 8 / 10;
        (bytes * 1_000_000_000_000).div_ceil(rate)
    }

    fn memory(&self, bytes: u64) -> u64 {
        (bytes * 1_000_000_000_000).div_ceil(self.config.host.memory_rate.bytes_per_second())
    }

    fn beats(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.config.nic.bus.count())
    }

    /// A packet on the internal bus: header, engine, data.
    fn bus(&self, bytes: u64) -> u64 {
        let nic = &self.config.nic;
        self.cycle * (nic.header_cycles + nic.engine_cycles + self.beats(bytes))
    }

    fn edge(&self, time: u64) -> u64 {
        time.div_ceil(self.cycle) * self.cycle
    }

    /// Reads a run at an aligned address from `begins` on, and returns when its pieces have passed
    /// the internal bus: end, and bytes so far.
    fn reads(&self, begins: u64, bytes: u64) -> Vec<(u64, u64)> {
        let pcie = &self.config.pcie;
        let (mut up, mut memory, mut down, mut bus) = (Unit(0), Unit(0), Unit(0), Unit(0));
        let mut requests = Unit(0);
        let (mut pieces, mut done) = (Vec::new(), 0);
        let most = pcie.read_request.count();
        while done < bytes {
            let run = most.min(bytes - done);
            let asked = requests.serve(begins, self.bus(0));
            let arrived = up.serve(asked, self.wire(24)) + self.wire(24) + self.latency;
            let accessed = memory.serve(arrived, self.memory(run)) + self.memory(run);
            let ready = accessed + self.config.host.memory_latency.ps();
            let mut cut = 0;
            while cut < run {
                let piece = pcie.max_payload.count().min(run - cut);
                let data = piece.next_multiple_of(4);
                let left = down.serve(ready, self.wire(20 + data)) + self.wire(20 + data);
                let taken = bus.serve(self.edge(left + self.latency), self.bus(data));
                cut += piece;
                pieces.push((taken + self.bus(data), done + cut));
            }
            done += run;
        }
        pieces
    }

    /// From a descriptor of this length in memory until it is extracted. It is read as a whole: the
    /// header has 16 bytes, and each further word of the path takes a cycle.
    fn descriptor(&self, begins: u64, bytes: u64) -> u64 {
        let here = self.reads(begins, bytes).last().unwrap().0;
        here + self.extract(bytes)
    }

    fn extract(&self, bytes: u64) -> u64 {
        self.module + self.cycle * (bytes - 16).div_ceil(self.config.nic.descriptor_path.count())
    }

    /// From the extracted descriptor of a NAP or PUT until its event is visible at the other end.
    fn transfer(&self, extracted: u64, is_nap: bool, is_immediate: bool, bytes: u64) -> u64 {
        let nic = &self.config.nic;
        let (cycle, module) = (self.cycle, self.module);
        let data = match is_immediate {
            true => vec![(extracted, bytes)],
            // The data read module, and behind the bus extract and reorder.
            false => {
                let pieces = self.reads(extracted + module, bytes);
                pieces.into_iter().map(|(end, so_far)| (end + 2 * module, so_far)).collect()
            }
        };
        let header = self.beats(nic.packet_header.count());
        let (mut converter, mut output, mut crossing) = (Unit(0), Unit(0), Unit(0));
        let (mut unpacker, mut upload) = (Unit(0), Unit(0));
        let (mut up, mut memory) = (Unit(0), Unit(0));
        let piece = if is_nap { bytes } else { nic.put_payload.count() };
        let (mut sent, mut end) = (0, 0);
        while sent < bytes {
            let length = piece.min(bytes - sent);
            let available = data.iter().find(|it| it.1 >= sent + length).unwrap().0;
            // The packer.
            let beats = header + self.beats(length.next_multiple_of(4));
            let head = if nic.conversion {
                let time = cycle * self.beats(length);
                (converter.serve(available, time) + time + 2 * module).max(output.0)
            } else if nic.packing == Packing::Gathered {
                let comes = if is_immediate { cycle * self.beats(length) } else { 0 };
                (available + comes + 2 * cycle).max(output.0)
            } else if is_nap && nic.packing == Packing::Copied {
                let copied = if is_immediate { 0 } else { cycle * self.beats(length) };
                available.max(output.0) + copied + module
            } else {
                // The packer works when the data comes from the bus, and not before.
                let streaming = cycle * (beats - 1);
                let now = if is_immediate { available } else { available - 2 * module };
                (available + module).saturating_sub(streaming).max(output.0).max(now)
            };
            let head = self.edge(head);
            output.serve(head, cycle * beats);
            // The crossbar, and the dispatch.
            let granted = crossing.serve(head, cycle * (beats + nic.engine_cycles));
            let mut arrived = granted + module + cycle * (beats - 1) + module;
            if nic.conversion {
                let time = cycle * beats;
                arrived = unpacker.serve(arrived, time) + time + 2 * module;
            }
            // The upload: data in writes, then the event of the last packet.
            let mut turn = (arrived + module).max(upload.0);
            let mut write = |bytes: u64, turn: &mut u64| {
                let wire = self.wire(24 + bytes.next_multiple_of(4));
                let begins = up.serve(*turn, wire);
                let arrives = begins + wire + self.latency;
                let time = self.memory(bytes.next_multiple_of(4));
                end = memory.serve(arrives, time) + time;
                *turn = (*turn + self.bus(bytes)).max(self.edge(begins));
            };
            let mut written = 0;
            while written < length {
                let run = self.config.pcie.max_payload.count().min(length - written);
                write(run, &mut turn);
                written += run;
            }
            sent += length;
            if sent == bytes {
                write(32, &mut turn);
            }
            upload.0 = turn;
        }
        end
    }

    /// From the processor's start until the event is visible.
    fn latency(&self, kind: Kind, bytes: u64) -> u64 {
        let (cycle, module) = (self.cycle, self.module);
        // The processor, the doorbell of 8 bytes over wires and bus; its FIFO, arbiter, descriptor
        // read module.
        let rung = self.config.host.cpu_start.ps() + self.wire(24 + 8) + self.latency;
        let reads = self.edge(rung) + self.bus(8) + 3 * module;
        let descriptor = descriptor_bytes(kind, bytes);
        let extracted = self.descriptor(reads, descriptor);
        if kind != Kind::Get {
            let is_immediate = kind == Kind::NapImmediate;
            return self.transfer(extracted, kind.is_nap(), is_immediate, bytes);
        }
        // A GET packet: the descriptor as its data.
        let nic = &self.config.nic;
        let beats = self.beats(nic.packet_header.count()) + self.beats(descriptor);
        let parsed = if nic.conversion { module } else { 0 };
        let head = self.edge(extracted + parsed + module);
        let mut arrived = head + module + cycle * (beats - 1) + module;
        if nic.conversion {
            arrived += cycle * beats + 2 * module;
        }
        self.transfer(arrived + self.extract(descriptor), false, false, bytes)
    }
}

/// The length of a descriptor, by the format.
fn descriptor_bytes(kind: Kind, bytes: u64) -> u64 {
    let list = [Entry { address: 0, length: bytes }];
    let inside = vec![0; bytes as usize];
    let chain = Chain { sources: (&list[..]).into(), destinations: (&list[..]).into() };
    let repr = DescriptorRepr {
        destination: endpoint(1),
        queue_pair: 0,
        traffic_class: 0,
        magic: 0,
        wants_event: true,
        work: match kind {
            Kind::NapImmediate => Work::NapImmediate(&inside),
            Kind::NapIndirect => Work::NapIndirect((&list[..]).into()),
            Kind::Put => Work::Put(chain),
            Kind::Get => Work::Get { chain, return_magic: 0 },
        },
        tail: Tail::EMPTY,
    };
    repr.buffer_len() as u64
}

/// Runs every kind of operation, with lengths around each limit, in settings that change the
/// prototype.
fn agree(settings: &[fn(&mut Config)]) {
    agree_at(settings, &[1, 4, 5, 63, 100, 128, 129, 200, 256, 300, 640, 1000]);
}

fn agree_at(settings: &[fn(&mut Config)], lengths: &[u64]) {
    for (number, change) in settings.iter().enumerate() {
        let mut config = Config::prototype();
        // Acknowledgements and updates have a test of their own.
        config.pcie.ack_limit = "0 B".parse().unwrap();
        config.pcie.credit_limit = "0 B".parse().unwrap();
        // So do credits.
        config.crossbar.receive_packets = 32;
        change(&mut config);
        let rules = Rules {
            cycle: config.nic.clock.period().ps(),
            module: config.nic.clock.period().ps() * config.nic.module_cycles,
            latency: config.pcie.latency.ps(),
            config: &config,
        };
        for kind in Kind::ALL {
            for &bytes in lengths {
                let got = single(&config, kind, bytes).unwrap().latency.ps();
                let expected = rules.latency(kind, bytes);
                assert_eq!(got, expected, "setting {number}, {kind:?} of {bytes} B");
            }
        }
    }
}

/// A last packet of one byte leaves when its own byte has come.
#[test]
fn a_short_last_packet_takes_its_time() {
    agree_at(&[|_| {}], &[129]);
}

/// The parts of an operation are told where they are: the module that reads data takes its 16 ns,
/// and memory and dispatch have their time, also for a packet that is full.
#[test]
fn modules_are_told_with_their_time() {
    let explained = single(&Config::prototype(), Kind::Put, 128).unwrap().explanation;
    let reads = (Stage::DataRead, None, Span::from_ns(16));
    let is_it = |it: &Interval| (it.stage, it.cause, it.length) == reads;
    assert!(explained.intervals.iter().any(is_it), "{explained}");
    for stage in [Stage::DataMemory, Stage::Dispatch] {
        assert!(explained.time_in(stage) > Span::ZERO, "{stage:?}: {explained}");
    }
}

/// An operation of the prototype takes the times of its blocks.
#[test]
fn one_operation_takes_the_times_of_its_blocks() {
    agree(&[|_| {}]);
}

/// So it does if a parameter of the interface is another.
#[test]
fn blocks_take_the_times_of_their_parameters() {
    agree(&[
        |config| config.nic.clock = "200 MHz".parse().unwrap(),
        |config| config.nic.bus = "8 B".parse().unwrap(),
        |config| config.nic.descriptor_path = "4 B".parse().unwrap(),
        |config| (config.nic.module_cycles, config.nic.header_cycles) = (7, 3),
        |config| config.nic.engine_cycles = 5,
    ]);
}

/// And if packets are others: longer, converted, or not gathered.
#[test]
fn packets_take_the_times_of_their_form() {
    agree(&[
        |config| config.nic.put_payload = "256 B".parse().unwrap(),
        |config| config.nic.packet_header = "94 B".parse().unwrap(),
        |config| config.nic.conversion = true,
        |config| config.nic.packing = Packing::Streamed,
        |config| config.nic.packing = Packing::Gathered,
    ]);
}

/// And if the bus or the host is another.
#[test]
fn buses_and_hosts_take_their_times() {
    agree(&[
        |config| config.pcie.latency = "231 ns".parse().unwrap(),
        |config| config.pcie.lanes = 4,
        |config| {
            config.host.memory_latency = "97 ns".parse().unwrap();
            config.host.memory_rate = "1.6 GB/s".parse().unwrap();
        },
        |config| config.pcie.max_payload = "64 B".parse().unwrap(),
    ]);
}
