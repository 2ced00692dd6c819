//! `chpp_nic`: the whole network interface of cHPP between raw TLPs and the network (C-31, C-32,
//! C-36; cHPP sections 3.4, 4 and 5, Fig. 10 to 12), as `hardware/chpp_nic` builds it.
//!
//! `nic_core`, both halves of the PCIe boundary, what the host stores and what it reads are
//! connected. So the host has nothing but memory of its own, and a window of 64 KiB to store into
//! and to read from. The README of the gates says how software uses it.
//!
//! What stands at the outputs depends on registers only, and so do all outputs of `nic_core` and of
//! `pcie_rx`. Of the wires between the blocks these depend on others in the same cycle:
//!
//! * `pcie_tx` is ready for reads, writes or an answer by which of the other two are offered.
//! * `host_regs` passes the beat of a store on to `nic_core`, if it is not its own.
//! * `completer` is ready for a request if `pcie_tx` is ready for an answer.

use bellwire_wire::registers::{COUNTS, PAGE, VERSION};

use super::completer::{self, Completer, REGISTERS};
use super::data_reorder::{BEAT_WORDS, LANES};
use super::host_regs::{self, HostRegs};
use super::nic_core::{self, CLASSES, CPU_BITS, LANE_BITS, NicCore, Shape, Taps};
use super::pcie_rx::{self, BASE_BITS, LOWER_BITS, PcieRx};
use super::pcie_tx::{self, DEVICE_BITS, EMPTY_BITS, PcieTx};

/// Bytes of a read and of a write, at most, as every link allows.
const MOST: usize = 128;
/// Bytes of an entry of a list of slots.
const ENTRY_BYTES: usize = 8;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The own processor: a strap, as `cpus`.
        cpu: u8 = CPU_BITS,
        /// How many processors there are.
        cpus: u8 = CPU_BITS + 1,
        /// Bus and device of the interface: the hard block's, as `base` and `read_credit`.
        device: u16 = DEVICE_BITS,
        /// The window's address, without the bits of its size.
        base: u64 = BASE_BITS,
        /// The host has room for one more read.
        read_credit: bool = 1,
        /// A beat of a TLP comes from the host.
        rx_valid: bool = 1,
        /// It is the last one.
        rx_last: bool = 1,
        /// DWs that it lacks; only the last one may.
        rx_empty: u8 = EMPTY_BITS,
        /// The beat: the byte that was sent first is the lowest one.
        rx_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A beat for the host is taken, if one is offered.
        tx_ready: bool = 1,
        /// A beat of a packet comes from the network.
        from_valid: bool = 1,
        /// The class of its packet.
        from_class: u8 = 1,
        /// It is the last of its packet.
        from_last: bool = 1,
        /// The lane of its last byte.
        from_to: u8 = LANE_BITS,
        /// The beat.
        from_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A beat for the network is taken, if one is offered.
        to_ready: bool = 1,
        /// By class: a place in the network is free again.
        to_credit: [bool; CLASSES] = CLASSES,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The beat from the host is taken.
        rx_ready: bool = 1,
        /// A beat of a TLP is offered to the host.
        tx_valid: bool = 1,
        /// It is the last one.
        tx_last: bool = 1,
        /// DWs that it lacks.
        tx_empty: u8 = EMPTY_BITS,
        /// The beat: the byte that is sent first is the lowest one; zero if there is none.
        tx_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// By class: a beat from the network is taken, if one is offered.
        from_ready: [bool; CLASSES] = CLASSES,
        /// By class: a place for a packet from the network is free again.
        from_credit: [bool; CLASSES] = CLASSES,
        /// A beat for the network is offered.
        to_valid: bool = 1,
        /// The class of its packet.
        to_class: u8 = 1,
        /// It is the last of its packet.
        to_last: bool = 1,
        /// The lane of its last byte; zero if none is offered.
        to_to: u8 = LANE_BITS,
        /// The beat; zero if none is offered.
        to_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
    }
}

/// The interface.
#[derive(Clone, Debug)]
pub struct ChppNic {
    pcie_rx: PcieRx,
    host_regs: HostRegs,
    core: NicCore,
    completer: Completer,
    pcie_tx: PcieTx,
}

impl ChppNic {
    /// An interface without functions that are open.
    ///
    /// # Panics
    /// If a read or a write has more bytes than every link allows, and as its blocks do.
    pub fn new(shape: Shape) -> ChppNic {
        let most = [LANES * shape.request, ENTRY_BYTES * shape.batch, shape.write];
        assert!(most.into_iter().all(|most| most <= MOST), "{MOST} bytes in a TLP");
        ChppNic {
            pcie_rx: PcieRx::new(shape.tags, 32),
            host_regs: HostRegs::new(32),
            core: NicCore::new(shape),
            completer: Completer::new(COUNTS.len(), PAGE),
            pcie_tx: PcieTx::new(MOST, MOST),
        }
    }

    /// What has moved between the blocks of the core in the last cycle.
    pub fn taps(&self) -> Taps {
        self.core.taps()
    }

    /// What stands at the port into the network: registers, which nothing that enters in the same
    /// cycle changes. All other outputs are zero.
    pub fn sends(&self) -> Out {
        let core = self.core.sends();
        Out {
            to_valid: core.to_valid,
            to_class: core.to_class,
            to_last: core.to_last,
            to_to: core.to_to,
            to_data: core.to_data,
            ..Out::default()
        }
    }

    /// By class, whether a beat from the network is taken in this cycle: registers.
    pub fn takes(&self) -> [bool; CLASSES] {
        self.core.takes()
    }

    /// One cycle.
    pub fn cycle(&mut self, input: In) -> Out {
        // Registers.
        let came = self.pcie_rx.clone().cycle(pcie_rx::In::default());
        let asks = self.core.asks();
        let answer = self.completer.clone().cycle(completer::In::default());

        let sent = self.pcie_tx.cycle(transmits(&input, &asks, &answer));
        let mut stored = host_regs::In {
            store_valid: came.store_valid,
            store_last: came.out_last,
            store_address: came.store_address,
            store_bytes: came.store_bytes,
            store_data: came.out_data,
            refused: [false; 3],
            tlp_dropped: came.dropped_valid,
            tlp_refused: sent.refused,
        };
        let says = self.host_regs.clone().cycle(stored);
        let core = self.core.cycle(works(&input, &came, &says, &sent));
        stored.refused = core.refused;
        self.host_regs.cycle(stored);
        let completed = self.completer.cycle(completer::In {
            value: values(&says, core.counts),
            request_valid: came.request_valid,
            request_is_read: came.request_is_read,
            request_address: came.request_address,
            request_requester: came.request_requester,
            request_tag: came.request_tag,
            request_class: came.request_class,
            request_attributes: came.request_attributes,
            request_count: came.request_count,
            request_lower: came.request_lower,
            answer_ready: sent.answer_ready,
        });
        let end = asks.read_address + u64::from(asks.read_bytes);
        self.pcie_rx.cycle(pcie_rx::In {
            device: input.device,
            base: input.base,
            read_valid: asks.read_valid && sent.read_ready,
            read_tag: asks.read_tag,
            read_end: (end % (1 << LOWER_BITS)) as u8,
            in_valid: input.rx_valid,
            in_last: input.rx_last,
            in_empty: input.rx_empty,
            in_data: input.rx_data,
            request_ready: completed.request_ready,
        });
        Out {
            rx_ready: came.in_ready,
            tx_valid: sent.out_valid,
            tx_last: sent.out_last,
            tx_empty: sent.out_empty,
            tx_data: sent.out_data,
            from_ready: core.from_ready,
            from_credit: core.from_credit,
            to_valid: core.to_valid,
            to_class: core.to_class,
            to_last: core.to_last,
            to_to: core.to_to,
            to_data: core.to_data,
        }
    }
}

/// What enters the transmitter.
fn transmits(input: &In, asks: &nic_core::Out, answer: &completer::Out) -> pcie_tx::In {
    pcie_tx::In {
        device: input.device,
        read_valid: asks.read_valid,
        read_function: asks.read_function,
        read_address: asks.read_address,
        read_bytes: asks.read_bytes,
        read_tag: asks.read_tag,
        read_credit: input.read_credit,
        write_valid: asks.write_valid,
        write_last: asks.write_last,
        write_function: asks.write_function,
        write_address: asks.write_address,
        write_bytes: asks.write_bytes,
        write_data: asks.write_data,
        answer_valid: answer.answer_valid,
        // Whoever reads registers is answered by the physical function.
        answer_function: 0,
        answer_requester: answer.answer_requester,
        answer_tag: answer.answer_tag,
        answer_class: answer.answer_class,
        answer_attributes: answer.answer_attributes,
        answer_status: answer.answer_status,
        answer_count: answer.answer_count,
        answer_lower: answer.answer_lower,
        answer_has_data: answer.answer_has_data,
        answer_data: answer.answer_data,
        out_ready: input.tx_ready,
    }
}

/// What enters the core.
fn works(
    input: &In,
    came: &pcie_rx::Out,
    says: &host_regs::Out,
    sent: &pcie_tx::Out,
) -> nic_core::In {
    nic_core::In {
        cpu: input.cpu,
        cpus: input.cpus,
        keys_valid: says.keys_valid,
        keys_window: says.keys_window,
        keys_function: says.keys_function,
        keys_base: says.keys_base,
        keys_pages: says.keys_pages,
        keys_pair: says.keys_pair,
        keys_opens: says.keys_opens,
        keys_key: says.keys_key,
        rings_valid: says.rings_valid,
        rings_opens: says.rings_opens,
        rings_ring: says.rings_ring,
        rings_base: says.rings_base,
        rings_count: says.rings_count,
        slots_valid: says.slots_valid,
        slots_opens: says.slots_opens,
        slots_pair: says.slots_pair,
        slots_page: says.slots_page,
        slots_count: says.slots_count,
        store_valid: says.bell_valid,
        store_last: came.out_last,
        store_address: came.store_address,
        store_bytes: came.store_bytes,
        store_data: came.out_data,
        read_ready: sent.read_ready,
        in_valid: came.completion_valid,
        in_last: came.out_last,
        in_tag: came.completion_tag,
        in_failed: came.completion_failed,
        in_bytes: came.completion_bytes,
        in_remaining: came.completion_remaining,
        in_data: came.out_data,
        write_ready: sent.write_ready,
        from_valid: input.from_valid,
        from_class: input.from_class,
        from_last: input.from_last,
        from_to: input.from_to,
        from_data: input.from_data,
        to_ready: input.to_ready,
        to_credit: input.to_credit,
    }
}

/// What the host reads, in the order of [`COUNTS`].
fn values(says: &host_regs::Out, counts: [u32; nic_core::COUNTS]) -> [u32; REGISTERS] {
    let [stores, bells, events, packets, targets] = counts;
    let mut values = [0; REGISTERS];
    values[..COUNTS.len()].copy_from_slice(&[
        VERSION,
        says.dropped,
        says.refusals,
        stores,
        bells,
        events,
        packets,
        targets,
        says.tlps_dropped,
        says.tlps_refused,
    ]);
    values
}

#[cfg(test)]
mod tests;
