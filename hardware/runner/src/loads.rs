//! Random loads of all blocks.

mod bell_decode;
mod cdc_fifo_gray;
mod chpp_link_nic;
mod chpp_nic;
mod chpp_quad;
mod completer;
mod credit_gate;
mod credit_ledger;
mod damq_pd;
mod data_join;
mod data_reorder;
mod desc_extract;
mod desc_fetch;
mod desc_gate;
mod dllp_rx;
mod dllp_tx;
mod doorbell_arb;
mod doorbell_fifo;
mod event_ring;
mod fc_init;
mod frame_rx;
mod frame_tx;
mod get_packer;
mod host_regs;
mod key_window;
mod lane_deskew;
mod lane_stripe;
mod lane_train;
mod nic_core;
mod op_arb;
mod packer;
mod packet_arb;
mod pcie_rx;
mod pcie_tx;
mod read_arb;
mod replay_buf;
mod rx_ack;
mod rx_dispatch;
mod send_event;
mod send_vc;
mod slot_cache;
mod slot_read;
mod smp_link;
mod smp_port;
mod source_arb;
mod stream_fifo;
mod tag_alloc;
mod tlp_unwrap;
mod tlp_wrap;
mod upload;
mod vc_rx_buf;
mod write_arb;
mod xbar;

use anyhow::{Result, bail};
use bellwire_model::cycle::chpp_link_nic::Shape as ChppLinkNicShape;
use bellwire_model::cycle::chpp_quad::Shape as ChppQuadShape;
use bellwire_model::cycle::desc_extract::Shape as DescExtractShape;
use bellwire_model::cycle::desc_fetch::Shape as DescShape;
use bellwire_model::cycle::get_packer::Shape as GetPackerShape;
use bellwire_model::cycle::lane_train::Shape as LaneTrainShape;
use bellwire_model::cycle::nic_core::Shape as NicCoreShape;
use bellwire_model::cycle::packer::Shape as PackerShape;
use bellwire_model::cycle::rx_dispatch::Shape as RxDispatchShape;
use bellwire_model::cycle::send_event::Shape as SendEventShape;
use bellwire_model::cycle::smp_link::Shape as SmpLinkShape;
use bellwire_model::cycle::smp_port::Shape as SmpPortShape;
use bellwire_model::cycle::vc_rx_buf::Room;
use bellwire_model::cycle::xbar::Shape as XbarShape;

use crate::bench::Bench;

/// The load of a block with the bench's parameters.
///
/// # Errors
/// If there is none for this block.
pub fn load(block: &str, parameters: &[(String, u64)], seed: u64) -> Result<Box<dyn Bench>> {
    let number = |wanted: &str| {
        let found = parameters.iter().find(|(name, _)| name == wanted);
        found.map_or(0, |(_, value)| *value) as usize
    };
    Ok(match block {
        "damq_pd" => {
            let [ports, depth, landing] = ["Ports", "Depth", "Landing"].map(number);
            Box::new(damq_pd::DamqLoad::new(ports, depth, landing, seed))
        }
        "bell_decode" => {
            let [functions, bits] = ["Functions", "DroppedWidth"].map(number);
            Box::new(bell_decode::BellDecodeLoad::new(functions, bits as u32, seed))
        }
        "cdc_fifo_gray" => Box::new(cdc_fifo_gray::CdcFifoGrayLoad::new(number("Depth"), seed)),
        "chpp_link_nic" => {
            let (nic, port) = (nic_core_shape(number), smp_port_shape(number));
            Box::new(chpp_link_nic::ChppLinkNicLoad::new(ChppLinkNicShape { nic, port }, seed))
        }
        "chpp_nic" => Box::new(chpp_nic::ChppNicLoad::new(nic_core_shape(number), seed)),
        "chpp_quad" => {
            let shape = ChppQuadShape { nic: nic_core_shape(number), channels: number("Channels") };
            Box::new(chpp_quad::ChppQuadLoad::new(shape, seed))
        }
        "completer" => {
            let [registers, page] = ["Registers", "Page"].map(number);
            Box::new(completer::CompleterLoad::new(registers, page as u16, seed))
        }
        "credit_gate" => Box::new(credit_gate::CreditGateLoad::new(seed)),
        "credit_ledger" => {
            let [headers, data, after] = ["Headers", "Data", "AgainAfter"].map(number);
            let (headers, data) = (headers as u8, data as u16);
            Box::new(credit_ledger::CreditLedgerLoad::new(headers, data, after as u64, seed))
        }
        "data_join" => Box::new(data_join::DataJoinLoad::new(number("Reads"), seed)),
        "data_reorder" => {
            let [beats, reads, tags] = ["Beats", "Reads", "Tags"].map(number);
            Box::new(data_reorder::DataReorderLoad::new(beats, reads, tags, seed))
        }
        "desc_extract" => {
            let [places, beats, request] = ["Places", "Beats", "Request"].map(number);
            let shape = DescExtractShape { places, beats, request };
            Box::new(desc_extract::DescExtractLoad::new(shape, seed))
        }
        "desc_fetch" => {
            let [places, beats, request, tags] = ["Places", "Beats", "Request", "Tags"].map(number);
            let shape = DescShape { places, beats, request, tags };
            Box::new(desc_fetch::DescFetchLoad::new(shape, seed))
        }
        "desc_gate" => {
            let [functions, depth, gets] = ["Functions", "Depth", "Gets"].map(number);
            Box::new(desc_gate::DescGateLoad::new(functions, depth, gets, seed))
        }
        "dllp_rx" => Box::new(dllp_rx::DllpRxLoad::new(seed)),
        "dllp_tx" => Box::new(dllp_tx::DllpTxLoad::new(seed)),
        "doorbell_arb" => Box::new(doorbell_arb::DoorbellArbLoad::new(number("Functions"), seed)),
        "doorbell_fifo" => {
            let [functions, depth, bits] = ["Functions", "Depth", "DroppedWidth"].map(number);
            Box::new(doorbell_fifo::DoorbellFifoLoad::new(functions, depth, bits as u32, seed))
        }
        "event_ring" => {
            let [rings, count_bits] = ["Rings", "CountWidth"].map(number);
            Box::new(event_ring::EventRingLoad::new(rings, count_bits, seed))
        }
        "fc_init" => Box::new(fc_init::FcInitLoad::new(number("AgainAfter") as u64, seed)),
        "frame_rx" => Box::new(frame_rx::FrameRxLoad::new(number("MaxBeats"), seed)),
        "frame_tx" => Box::new(frame_tx::FrameTxLoad::new(seed)),
        "get_packer" => {
            let [gets, get_beats] = ["Gets", "GetBeats"].map(number);
            let shape = GetPackerShape { gets, get_beats };
            Box::new(get_packer::GetPackerLoad::new(shape, seed))
        }
        "host_regs" => Box::new(host_regs::HostRegsLoad::new(number("CountWidth") as u32, seed)),
        "key_window" => {
            let [functions, pairs, bits] = ["Functions", "Pairs", "CountWidth"].map(number);
            Box::new(key_window::KeyWindowLoad::new(functions, pairs, bits as u32, seed))
        }
        "lane_deskew" => Box::new(lane_deskew::LaneDeskewLoad::new(number("MaxSkew"), seed)),
        "lane_stripe" => {
            Box::new(lane_stripe::LaneStripeLoad::new(number("MarkEvery") as u64, seed))
        }
        "lane_train" => Box::new(lane_train::LaneTrainLoad::new(lane_train_shape(number), seed)),
        "nic_core" => Box::new(nic_core::NicCoreLoad::new(nic_core_shape(number), seed)),
        "op_arb" => Box::new(op_arb::OpArbLoad::new(number("PlaceWidth"), seed)),
        "packer" => {
            let [beats, packets, payload, longest] =
                ["Beats", "Packets", "Payload", "Longest"].map(number);
            let shape = PackerShape { beats, packets, payload, longest };
            Box::new(packer::PackerLoad::new(shape, seed))
        }
        "packet_arb" => {
            let [inputs, channels] = ["Inputs", "Channels"].map(number);
            Box::new(packet_arb::PacketArbLoad::new(inputs, channels, seed))
        }
        "pcie_rx" => {
            let [tags, bits] = ["Tags", "DroppedWidth"].map(number);
            Box::new(pcie_rx::PcieRxLoad::new(tags, bits as u32, seed))
        }
        "pcie_tx" => {
            let [reads, writes] = ["MaxRead", "MaxPayload"].map(number);
            Box::new(pcie_tx::PcieTxLoad::new(reads, writes, seed))
        }
        "read_arb" => {
            Box::new(read_arb::ReadArbLoad::new(number("Requesters"), number("Tags"), seed))
        }
        "replay_buf" => {
            let after = number("ReplayAfter") as u64;
            Box::new(replay_buf::ReplayBufLoad::new(number("Depth"), after, seed))
        }
        "rx_ack" => Box::new(rx_ack::RxAckLoad::new(number("AcknowledgeAfter") as u64, seed)),
        "rx_dispatch" => {
            let [packets, gets, data_beats, get_beats] =
                ["Packets", "Gets", "DataBeats", "GetBeats"].map(number);
            let shape = RxDispatchShape { packets, gets, data_beats, get_beats };
            Box::new(rx_dispatch::RxDispatchLoad::new(shape, seed))
        }
        "send_event" => {
            let [functions, depth, bits] = ["Functions", "Depth", "DroppedWidth"].map(number);
            let shape = SendEventShape { functions, depth, dropped_bits: bits as u32 };
            Box::new(send_event::SendEventLoad::new(shape, seed))
        }
        "send_vc" => Box::new(send_vc::SendVcLoad::new(number("Depth"), seed)),
        "slot_cache" => {
            let [pairs, slots, batch, count_bits] =
                ["Pairs", "Slots", "Batch", "CountWidth"].map(number);
            Box::new(slot_cache::SlotCacheLoad::new(pairs, slots, batch, count_bits, seed))
        }
        "slot_read" => Box::new(slot_read::SlotReadLoad::new(number("Batch"), seed)),
        "smp_link" => Box::new(smp_link::SmpLinkLoad::new(smp_link_shape(number), seed)),
        "smp_port" => Box::new(smp_port::SmpPortLoad::new(smp_port_shape(number), seed)),
        "source_arb" => Box::new(source_arb::SourceArbLoad::new(number("Functions"), seed)),
        "stream_fifo" => Box::new(stream_fifo::StreamFifoLoad::new(number("Depth"), seed)),
        "tag_alloc" => {
            let timeout = number("Timeout") as u64;
            Box::new(tag_alloc::TagAllocLoad::new(number("Tags"), timeout, seed))
        }
        "tlp_unwrap" => Box::new(tlp_unwrap::TlpUnwrapLoad::new(number("Beats"), seed)),
        "tlp_wrap" => {
            let [channel, beats, segments] = ["Channel", "Beats", "Segments"].map(number);
            Box::new(tlp_wrap::TlpWrapLoad::new(channel as u8, beats, segments, seed))
        }
        "upload" => Box::new(upload::UploadLoad::new(number("MaxPayload"), seed)),
        "vc_rx_buf" => {
            let [headers, data, longest] = ["Headers", "Data", "Longest"].map(number);
            let room = Room { headers: headers as u8, data: data as u16, longest };
            let after = number("AgainAfter") as u64;
            Box::new(vc_rx_buf::VcRxBufLoad::new(room, after, seed))
        }
        "write_arb" => Box::new(write_arb::WriteArbLoad::new(seed)),
        "xbar" => {
            let [ports, channels, classes, credits] =
                ["Ports", "Channels", "Classes", "Credits"].map(number);
            let [depth, room, beats] = ["Depth", "Room", "Beats"].map(number);
            let shape = XbarShape { ports, channels, classes, depth, room, beats, credits };
            Box::new(xbar::XbarLoad::new(shape, seed))
        }
        _ => bail!("no load for {block} in hardware/runner/src/loads.rs"),
    })
}

/// Sizes and times of an end of the link.
fn smp_link_shape(number: impl Fn(&str) -> usize) -> SmpLinkShape {
    SmpLinkShape {
        replay: number("Replay"),
        replay_after: number("ReplayAfter") as u64,
        acknowledge_after: number("AcknowledgeAfter") as u64,
        headers: number("Headers") as u8,
        data: number("Data") as u16,
        update_again_after: number("UpdateAgainAfter") as u64,
        init_again_after: number("InitAgainAfter") as u64,
        cut_through: number("CutThrough") == 1,
    }
}

/// Those of an end with its lanes.
fn smp_port_shape(number: impl Fn(&str) -> usize) -> SmpPortShape {
    SmpPortShape {
        link: smp_link_shape(&number),
        mark_every: number("MarkEvery") as u64,
        max_skew: number("MaxSkew"),
        train: lane_train_shape(&number),
    }
}

/// Times of the training of lanes.
fn lane_train_shape(number: impl Fn(&str) -> usize) -> LaneTrainShape {
    let [every, sets, lost_after] = ["Every", "Sets", "LostAfter"].map(|name| number(name) as u64);
    LaneTrainShape { every, sets, lost_after }
}

/// The sizes of the whole interface, as both its core and the whole have them.
fn nic_core_shape(number: impl Fn(&str) -> usize) -> NicCoreShape {
    let packer = PackerShape {
        beats: number("PackBeats"),
        packets: number("PackPackets"),
        payload: number("Payload"),
        longest: number("LongestNap"),
    };
    NicCoreShape {
        functions: 8,
        bells: number("Bells"),
        tags: number("Tags"),
        timeout: number("Timeout") as u64,
        beats: number("Beats"),
        reads: number("Reads"),
        request: number("Request"),
        longest: number("Longest"),
        fetches: number("Fetches"),
        places: number("Places"),
        events: number("Events"),
        gets: number("Gets"),
        packer,
        packets: number("Packets"),
        depth: number("Depth"),
        room: number("Room"),
        write: number("Write"),
        slots: number("Slots"),
        batch: number("Batch"),
    }
}
