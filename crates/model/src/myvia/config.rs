//! The parameters of a machine, read from TOML. `myvia.toml` has those of the paper's systems and
//! says where each value comes from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::kmem::PAGE;
use super::memory::ENTRY_BYTES;
pub use super::memory::Layout;
use super::ring::Rings;
pub use crate::form::ParameterError as ConfigError;
use crate::form::{demand, read};
use crate::sensitivity::Parameters;
use crate::units::{Bytes, Frequency, Rate, Span};

/// The paper's systems.
pub const PAPER: &str = include_str!("myvia.toml");

/// A host's processor and memory.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Clock of the processor.
    pub clock: Frequency,
    /// Memory that programs can register.
    pub memory: Bytes,
}

/// A PCI bus.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// Bus clock.
    pub clock: Frequency,
    /// Bytes per clock.
    pub width: Bytes,
    /// The most bytes of a burst before the bus is arbitrated again.
    pub burst: Bytes,
    /// Clocks of a burst from host memory without data: arbitration, address, memory latency,
    /// turnaround.
    pub read_overhead: u64,
    /// The same for a burst to host memory, or from the processor to the NIC.
    pub write_overhead: u64,
}

/// A NIC.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Nic {
    /// Clock of its processor, one instruction per cycle.
    pub clock: Frequency,
    /// Its memory.
    pub memory: Bytes,
    /// Part of it that the firmware's code and tables take.
    pub firmware: Bytes,
    /// From starting a host DMA to its first word on the bus.
    pub dma_start: Span,
}

/// A link, and the overhead of a packet.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// Bytes per second.
    pub rate: Rate,
    /// Bytes of a packet besides data and route; on Ethernet with gap and preamble.
    pub header: Bytes,
    /// The smallest packet, header included.
    pub least: Bytes,
    /// The most data of a packet.
    pub most: Bytes,
    /// Delay of a head in a cable.
    pub cable: Span,
    /// Delay of a head in a switch.
    pub switch: Span,
    /// Ports of the switch; 0 for a cable from NIC to NIC.
    pub ports: u8,
}

/// Costs of software on the host's processor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Software {
    /// Cycles for the user agent to make a descriptor, without translation.
    pub post: u64,
    /// Cycles to translate one piece of memory by the table (UTLB).
    pub translate: u64,
    /// Cycles to read a status word and return it to the program.
    pub complete: u64,
    /// Cycles of a system call.
    pub trap: u64,
    /// Cycles for a driver to handle a frame.
    pub frame: u64,
    /// Cycles for a handler to look up or move an entry.
    pub entry: u64,
    /// From an interrupt until its handler runs, and back to the program.
    pub interrupt: Span,
    /// Rate of the kernel's copies from its buffers to the program's.
    pub copy: Rate,
}

/// Instructions of the NIC's firmware.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Firmware {
    /// Finds the next physical descriptor, or doorbell.
    pub take: u64,
    /// Starts the DMA of a descriptor in host memory and reads it.
    pub descriptor: u64,
    /// Translates a page by a table or cache on the NIC.
    pub translate: u64,
    /// Finds a buffer and starts a host DMA.
    pub prepare: u64,
    /// Each further piece of a host DMA.
    pub piece: u64,
    /// Makes a packet's header and starts the send DMA.
    pub launch: u64,
    /// Makes a status word (and a record) and starts its DMA.
    pub conclude: u64,
    /// Checks a received packet and finds its VI and descriptor.
    pub match_packet: u64,
    /// Notices that a DMA has ended.
    pub notice: u64,
    /// A try to lock a resource of the NIC, and its unlock.
    pub lock: u64,
}

/// How the NIC's work is divided into steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pipeline {
    /// 7 + 5 stages, one per use of a resource, with locks (M-18).
    Locked,
    /// 2 + 2 stages; hardware executes DMA chains (M-19).
    Chained,
    /// One step after another for each message, without locks (B-14).
    Serial,
    /// No processor: an Ethernet controller with rings in host memory (B-16).
    Hardware,
}

/// The place of work queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Queues {
    /// Physical descriptors on the NIC, with overflow in host memory (M-12, M-13).
    NicRing,
    /// Descriptors in host memory; a doorbell of 2 B announces each (B-14).
    HostQueue,
    /// In the kernel, reached by system calls (B-16).
    Kernel,
}

/// The translation of addresses (3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Translation {
    /// Class 1: by the host, with the table mapped into the program (M-10).
    User,
    /// Class 2: by the NIC, with a table in its memory (B-15).
    NicTable,
    /// Class 3: by the NIC, with a cache of the host's table (B-14).
    NicCache,
}

/// A VIA implementation: its choice of mechanisms.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// The NIC's steps.
    pub pipeline: Pipeline,
    /// The place of descriptors.
    pub queues: Queues,
    /// The translation.
    pub translation: Translation,
    /// The layout of registered memory.
    pub layout: Layout,
    /// Entries of the translation cache.
    pub cache_entries: usize,
    /// Descriptors in a work queue's ring on the NIC, or in host memory if queues are there.
    pub small_ring: usize,
    /// Descriptors in the overflow ring.
    pub big_ring: usize,
    /// Descriptors left at which the NIC requests a refill.
    pub low_mark: usize,
    /// The most bytes of one host DMA.
    pub largest_dma: Bytes,
    /// The most data in a packet of this system.
    pub packet: Bytes,
    /// Send buffers on the NIC in use at one time.
    pub send_buffers: usize,
    /// Receive buffers on the NIC in use at one time.
    pub receive_buffers: usize,
    /// Messages that the NIC sends at one time.
    pub messages: usize,
    /// Whether a completion queue gets a record besides the status word (M-25).
    pub completion_record: bool,
}

/// A machine: two or more equal hosts, each with a NIC, and the network between them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Setup {
    /// Its name in the file.
    pub name: String,
    /// Processor and memory.
    pub host: Host,
    /// The bus.
    pub bus: Bus,
    /// The NIC.
    pub nic: Nic,
    /// The link.
    pub wire: Wire,
    /// Costs of host software.
    pub software: Software,
    /// Costs of NIC firmware.
    pub firmware: Firmware,
    /// The VIA implementation.
    pub system: System,
}

/// Named parts, and setups made of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    host: BTreeMap<String, Host>,
    bus: BTreeMap<String, Bus>,
    nic: BTreeMap<String, Nic>,
    wire: BTreeMap<String, Wire>,
    software: Software,
    firmware: BTreeMap<String, Firmware>,
    system: BTreeMap<String, System>,
    setup: BTreeMap<String, Names>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    host: String,
    bus: String,
    nic: String,
    wire: String,
    firmware: String,
    system: String,
}

impl Setup {
    /// A system of the paper: `myvia-a`, `berkeley-a`, `m-via-100`, `m-via-gigabit`, `myvia-b`,
    /// `berkeley-b` or `gm-b`.
    ///
    /// # Errors
    /// If there is no such system.
    pub fn paper(name: &str) -> Result<Setup, ConfigError> {
        Setup::read(PAPER, name)
    }

    /// Reads a setup from a file of parts.
    ///
    /// # Errors
    /// The fault and its remedy.
    pub fn read(text: &str, name: &str) -> Result<Setup, ConfigError> {
        let file: File = read(text)?;
        let names = part("setup", &file.setup, name)?;
        let setup = Setup {
            name: name.to_owned(),
            host: part("host", &file.host, &names.host)?.clone(),
            bus: part("bus", &file.bus, &names.bus)?.clone(),
            nic: part("nic", &file.nic, &names.nic)?.clone(),
            wire: part("wire", &file.wire, &names.wire)?.clone(),
            software: file.software.clone(),
            firmware: part("firmware", &file.firmware, &names.firmware)?.clone(),
            system: part("system", &file.system, &names.system)?.clone(),
        };
        setup.check()?;
        Ok(setup)
    }

    /// Checks ranges. Call it also for a setting that code has changed.
    ///
    /// # Errors
    /// The first parameter out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Setup { bus, nic, wire, software, system, host, .. } = self;
        let (width, burst) = (bus.width.count(), bus.burst.count());
        let (most, packet) = (wire.most.count(), system.packet.count());
        let is_clock = |clock: Frequency| (1_000_000..=100_000_000_000).contains(&clock.hz());
        let is_rate = |rate: Rate| rate.bytes_per_second() >= 1_000_000;
        let is_piece = |bytes: u64| (64..=1 << 20).contains(&bytes);
        let is_few = |count: usize| (1..=64).contains(&count);
        let is_burst = burst.is_multiple_of(width) && (width..=4096).contains(&burst);
        let is_serial = system.pipeline == Pipeline::Serial;
        let is_memory = (PAGE..=1 << 36).contains(&host.memory.count());
        let is_kernel = system.queues == Queues::Kernel;
        let is_hardware = system.pipeline == Pipeline::Hardware;
        let values: [(&'static str, &dyn ToString, bool, &str); 25] = [
            ("queues", &"kernel", is_hardware || !is_kernel, HARDWARE),
            ("pipeline", &"hardware", is_kernel || !is_hardware, KERNEL),
            ("queues", &"host-queue", is_serial || system.queues != Queues::HostQueue, SERIAL),
            (
                "translation",
                &"nic-cache",
                is_serial || system.translation != Translation::NicCache,
                SERIAL,
            ),
            ("width", &bus.width, matches!(width, 4 | 8), "4 B or 8 B"),
            ("burst", &bus.burst, is_burst, "a multiple of the width, up to 4 KiB"),
            ("read_overhead", &bus.read_overhead, bus.read_overhead <= 1000, "at most 1000"),
            ("write_overhead", &bus.write_overhead, bus.write_overhead <= 1000, "at most 1000"),
            ("host clock", &host.clock, is_clock(host.clock), "1 MHz to 100 GHz"),
            ("bus clock", &bus.clock, is_clock(bus.clock), "1 MHz to 100 GHz"),
            ("nic clock", &nic.clock, is_clock(nic.clock), "1 MHz to 100 GHz"),
            ("host memory", &host.memory, is_memory, "4 KiB to 64 GiB"),
            ("ports", &wire.ports, wire.ports != 1, "0 (no switch) or 2 and more"),
            ("most", &wire.most, is_piece(most), "64 B to 1 MiB"),
            ("rate", &wire.rate, is_rate(wire.rate), "1 MB/s or more"),
            ("copy", &software.copy, is_rate(software.copy), "1 MB/s or more"),
            (
                "cache_entries",
                &system.cache_entries,
                (1..=1 << 20).contains(&system.cache_entries),
                "1 to 1048576",
            ),
            (
                "small_ring",
                &system.small_ring,
                (1..=4096).contains(&system.small_ring),
                "1 to 4096",
            ),
            ("big_ring", &system.big_ring, system.big_ring <= 32_768, "at most 32768"),
            (
                "low_mark",
                &system.low_mark,
                system.low_mark < system.small_ring,
                "less than small_ring",
            ),
            (
                "largest_dma",
                &system.largest_dma,
                is_piece(system.largest_dma.count()),
                "64 B to 1 MiB",
            ),
            (
                "packet",
                &system.packet,
                (64..=most).contains(&packet),
                "64 B to the most of the wire",
            ),
            ("send_buffers", &system.send_buffers, is_few(system.send_buffers), "1 to 64"),
            ("receive_buffers", &system.receive_buffers, is_few(system.receive_buffers), "1 to 64"),
            ("messages", &system.messages, is_few(system.messages), "1 to 64"),
        ];
        for (name, value, fits, what) in values {
            demand(name, value, fits, what)?;
        }
        let need = packet * (system.send_buffers + system.receive_buffers) as u64;
        let room = self.data_bytes();
        demand(
            "nic memory",
            &nic.memory,
            room >= need,
            format!("enough for firmware, rings and {need} B of buffers; {room} B are left"),
        )
    }

    /// Bytes of NIC memory for the small rings of `vis` VIs.
    pub fn ring_bytes(&self, vis: u64) -> u64 {
        match self.system.queues {
            Queues::NicRing => {
                2 * vis * self.system.small_ring as u64 * super::descriptor::BYTES as u64
            }
            _ => 0,
        }
    }

    /// Bytes of NIC memory for data (M-24), besides the rings of [`VIS`] VIs and the translation
    /// cache.
    pub fn data_bytes(&self) -> u64 {
        let cache = match self.system.translation {
            Translation::NicCache => self.system.cache_entries as u64 * u64::from(ENTRY_BYTES),
            _ => 0,
        };
        let taken = self.nic.firmware.count() + self.ring_bytes(VIS) + cache;
        self.nic.memory.count().saturating_sub(taken)
    }

    /// Pages in a table on the NIC, if two buffers in each direction must fit besides (B-15).
    pub fn table_pages(&self) -> Option<u64> {
        let System { packet, send_buffers, receive_buffers, translation, .. } = &self.system;
        let buffers = packet.count() * (send_buffers + receive_buffers) as u64;
        let room = self.data_bytes().saturating_sub(buffers) / u64::from(ENTRY_BYTES);
        (*translation == Translation::NicTable).then_some(room)
    }

    /// Empty rings of a work queue.
    pub fn rings<T>(&self) -> Rings<T> {
        let System { small_ring, big_ring, low_mark, .. } = self.system;
        Rings::new(small_ring, big_ring, low_mark)
    }

    /// Cycles of the host's processor as time.
    pub fn host_cycles(&self, cycles: u64) -> Span {
        Span::from_ps(
            (u128::from(cycles) * 1_000_000_000_000 / u128::from(self.host.clock.hz())) as u64,
        )
    }

    /// Instructions of the NIC's processor as time.
    pub fn instructions(&self, instructions: u64) -> Span {
        self.nic.clock.period() * instructions
    }
}

/// Only serial firmware has the steps that read descriptors and translations from host memory.
const SERIAL: &str = "with the pipeline `serial`, whose firmware alone reads host memory";

/// The kernel's driver takes frames from a NIC without a processor. Such a NIC knows no program's
/// rings.
const HARDWARE: &str = "with the pipeline `hardware`, whose NIC has no processor";
const KERNEL: &str = "with the queues `kernel`, whose driver takes frames from such a NIC";

/// VIs that fit on a NIC. The paper does not say; our choice.
pub const VIS: u64 = 128;

fn part<'a, T>(
    kind: &'static str,
    parts: &'a BTreeMap<String, T>,
    name: &str,
) -> Result<&'a T, ConfigError> {
    parts.get(name).ok_or_else(|| ConfigError::Value {
        name: kind,
        value: name.to_owned(),
        what: format!("one of {}", parts.keys().cloned().collect::<Vec<_>>().join(", ")),
    })
}

impl Parameters for Setup {
    const FILE: &'static str = PAPER;

    fn refusal(&self) -> Option<String> {
        self.check().err().map(|why| why.to_string())
    }

    /// The file has named parts, such as `[host.a]`; a setup names one of each.
    fn place(&self, path: &str) -> String {
        let (part, key) = path.split_once('.').unwrap_or((path, ""));
        let file: Option<toml::Table> = toml::from_str(PAPER).ok();
        let name =
            file.as_ref().and_then(|file| file["setup"].get(&self.name)?.get(part)?.as_str());
        name.map_or(path.to_owned(), |name| format!("{part}.{name}.{key}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 7] =
        ["myvia-a", "berkeley-a", "m-via-100", "m-via-gigabit", "myvia-b", "berkeley-b", "gm-b"];

    /// All systems of the paper are valid and have the sizes that it prints.
    #[test]
    fn the_papers_systems_are_right() {
        for name in ALL {
            Setup::paper(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let setup = Setup::paper("myvia-a").unwrap();
        assert_eq!(setup.nic.memory, Bytes::new(1 << 20));
        assert_eq!(setup.system.largest_dma, Bytes::new(120 << 10));
        assert_eq!(Setup::paper("berkeley-b").unwrap().system.largest_dma, Bytes::new(64 << 10));
        assert_eq!(Setup::paper("myvia-b").unwrap().bus.width, Bytes::new(8));
    }

    /// An error names the fault and its remedy.
    #[test]
    fn faults_are_explained() {
        let fault = |text: &str| Setup::read(text, "myvia-a").unwrap_err().to_string();
        let told = Setup::paper("x").unwrap_err().to_string();
        assert!(told.contains("`setup` is x; it must be one of berkeley-a"), "{told}");
        let told = fault(&PAPER.replacen("small_ring = ", "small_rings = ", 1));
        assert!(told.contains("unknown field `small_rings`") && told.contains("line "), "{told}");
        let told = fault(&PAPER.replacen("\"33 MHz\"", "\"33\"", 1));
        assert!(told.contains("it has no unit"), "{told}");
        type Change = fn(&mut Setup);
        let changes: [(Change, &str); 4] = [
            (|setup| setup.system.low_mark = 5000, "less than small_ring"),
            (|setup| setup.nic.memory = Bytes::new(300 << 10), "of buffers"),
            (|setup| setup.bus.burst = Bytes::new(6), "a multiple of the width"),
            (|setup| setup.system.send_buffers = 0, "1 to 64"),
        ];
        for (change, part) in changes {
            let mut setup = Setup::paper("myvia-a").unwrap();
            change(&mut setup);
            let told = setup.check().unwrap_err().to_string();
            assert!(told.contains(part), "{told}");
        }
    }

    /// Rings of both directions take 16 B a descriptor; a cache on the NIC takes 8 B an entry, and
    /// a table what buffers leave. Memory that does not suffice is none.
    #[test]
    fn the_nics_memory_is_divided() {
        let mut setup = Setup::paper("myvia-a").unwrap();
        setup.nic.memory = Bytes::new(1 << 20);
        setup.nic.firmware = Bytes::new(100_000);
        setup.system.small_ring = 50;
        setup.system.queues = Queues::NicRing;
        // 2 directions, 3 VIs, 50 descriptors of 16 B.
        assert_eq!(setup.ring_bytes(3), 2 * 3 * 50 * 16);
        let rings = 2 * 128 * 50 * 16;
        assert_eq!(setup.data_bytes(), 1_048_576 - 100_000 - rings);
        assert_eq!(setup.table_pages(), None);
        setup.system.queues = Queues::HostQueue;
        assert_eq!((setup.ring_bytes(3), setup.data_bytes()), (0, 1_048_576 - 100_000));
        (setup.system.translation, setup.system.cache_entries) = (Translation::NicCache, 1000);
        assert_eq!(setup.data_bytes(), 1_048_576 - 100_000 - 8000);
        assert_eq!(setup.table_pages(), None);
        setup.system.translation = Translation::NicTable;
        setup.system.packet = Bytes::new(4000);
        (setup.system.send_buffers, setup.system.receive_buffers) = (2, 3);
        assert_eq!(setup.table_pages(), Some((1_048_576 - 100_000 - 5 * 4000) / 8));
        setup.nic.firmware = Bytes::new(2 << 20);
        assert_eq!((setup.data_bytes(), setup.table_pages()), (0, Some(0)));
    }

    /// At 400 MHz a cycle takes 2.5 ns, at 300 MHz three take 10 ns.
    #[test]
    fn cycles_are_times() {
        let mut setup = Setup::paper("myvia-a").unwrap();
        setup.host.clock = Frequency::from_hz(400_000_000);
        assert_eq!(setup.host_cycles(7), Span::from_ps(17_500));
        setup.host.clock = Frequency::from_hz(300_000_000);
        assert_eq!(setup.host_cycles(3), Span::from_ns(10));
    }

    /// The NIC's memory must hold all buffers, to the byte. The low mark lies below the ring's
    /// size.
    #[test]
    fn limits_are_exact() {
        let mut setup = Setup::paper("myvia-a").unwrap();
        let buffers = setup.system.send_buffers + setup.system.receive_buffers;
        let need = setup.system.packet.count() * buffers as u64;
        let free = setup.data_bytes();
        setup.nic.firmware = Bytes::new(setup.nic.firmware.count() + free - need);
        assert_eq!(setup.data_bytes(), need);
        assert!(setup.check().is_ok() && setup.is_valid());
        setup.nic.firmware = Bytes::new(setup.nic.firmware.count() + 1);
        assert!(setup.check().is_err() && !setup.is_valid());
        let mut setup = Setup::paper("myvia-a").unwrap();
        setup.system.low_mark = setup.system.small_ring - 1;
        assert!(setup.check().is_ok());
        setup.system.low_mark = setup.system.small_ring;
        assert!(setup.check().is_err());
    }

    /// The places of parameters name the part of the file that a setup uses.
    #[test]
    fn places_name_parts() {
        let setup = Setup::paper("myvia-a").unwrap();
        assert_eq!(setup.place("software.trap"), "software.trap");
        let place = setup.place("host.clock");
        let parts: Vec<&str> = place.split('.').collect();
        assert_eq!((parts.len(), parts[0], parts[2]), (3, "host", "clock"), "{place}");
    }
}
