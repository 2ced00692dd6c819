//! The packages in SystemVerilog: ports, written from the model's structs, and formats of the link,
//! of PCIe and of the interface's registers.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use bellwire_model::cycle::{
    Ports, bell_decode, cdc_fifo_gray, chpp_link_nic, chpp_nic, chpp_quad, completer, credit_gate,
    credit_ledger, data_join, data_reorder, desc_extract, desc_fetch, desc_gate, dllp_rx, dllp_tx,
    doorbell_arb, doorbell_fifo, event_ring, fc_init, frame_rx, frame_tx, get_packer, host_regs,
    key_window, lane_deskew, lane_stripe, lane_train, nic_core, op_arb, packed_struct, packer,
    packet_arb, pcie_rx, pcie_tx, read_arb, replay_buf, rx_ack, rx_dispatch, send_event, send_vc,
    slot_cache, slot_read, smp_link, smp_port, source_arb, stream_fifo, tag_alloc, tlp_unwrap,
    tlp_wrap, upload, vc_rx_buf, write_arb, xbar,
};
use bellwire_model::damq_pd;

use crate::link_pkg::link_pkg;
use crate::pcie_pkg::pcie_pkg;
use crate::regs_pkg::regs_pkg;

/// The package of the link's formats.
pub const LINK_PKG: &str = "hardware/link_pkg/src/link_pkg.sv";
/// The package of PCIe's headers.
pub const PCIE_PKG: &str = "hardware/pcie_pkg/src/pcie_pkg.sv";
/// The package of the interface's registers.
pub const REGS_PKG: &str = "hardware/regs_pkg/src/regs_pkg.sv";

/// Names of blocks and the packages of their ports.
fn packages() -> Vec<(&'static str, String)> {
    vec![
        ("bell_decode", package::<bell_decode::In, bell_decode::Out>("bell_decode")),
        ("cdc_fifo_gray", package::<cdc_fifo_gray::In, cdc_fifo_gray::Out>("cdc_fifo_gray")),
        ("chpp_link_nic", package::<chpp_link_nic::In, chpp_link_nic::Out>("chpp_link_nic")),
        ("chpp_nic", with_taps(&package::<chpp_nic::In, chpp_nic::Out>("chpp_nic"))),
        ("chpp_quad", package::<chpp_quad::In, chpp_quad::Out>("chpp_quad")),
        ("completer", package::<completer::In, completer::Out>("completer")),
        ("credit_gate", package::<credit_gate::In, credit_gate::Out>("credit_gate")),
        ("credit_ledger", package::<credit_ledger::In, credit_ledger::Out>("credit_ledger")),
        ("damq_pd", package::<damq_pd::ports::In, damq_pd::ports::Out>("damq_pd")),
        ("data_join", package::<data_join::In, data_join::Out>("data_join")),
        ("data_reorder", package::<data_reorder::In, data_reorder::Out>("data_reorder")),
        ("desc_extract", package::<desc_extract::In, desc_extract::Out>("desc_extract")),
        ("desc_fetch", package::<desc_fetch::In, desc_fetch::Out>("desc_fetch")),
        ("desc_gate", package::<desc_gate::In, desc_gate::Out>("desc_gate")),
        ("dllp_rx", package::<dllp_rx::In, dllp_rx::Out>("dllp_rx")),
        ("dllp_tx", package::<dllp_tx::In, dllp_tx::Out>("dllp_tx")),
        ("doorbell_arb", package::<doorbell_arb::In, doorbell_arb::Out>("doorbell_arb")),
        ("doorbell_fifo", package::<doorbell_fifo::In, doorbell_fifo::Out>("doorbell_fifo")),
        ("event_ring", package::<event_ring::In, event_ring::Out>("event_ring")),
        ("fc_init", package::<fc_init::In, fc_init::Out>("fc_init")),
        ("frame_rx", package::<frame_rx::In, frame_rx::Out>("frame_rx")),
        ("frame_tx", package::<frame_tx::In, frame_tx::Out>("frame_tx")),
        ("get_packer", package::<get_packer::In, get_packer::Out>("get_packer")),
        ("host_regs", package::<host_regs::In, host_regs::Out>("host_regs")),
        ("key_window", package::<key_window::In, key_window::Out>("key_window")),
        ("lane_deskew", package::<lane_deskew::In, lane_deskew::Out>("lane_deskew")),
        ("lane_stripe", package::<lane_stripe::In, lane_stripe::Out>("lane_stripe")),
        ("lane_train", package::<lane_train::In, lane_train::Out>("lane_train")),
        ("nic_core", package::<nic_core::In, nic_core::Out>("nic_core")),
        ("op_arb", package::<op_arb::In, op_arb::Out>("op_arb")),
        ("packer", package::<packer::In, packer::Out>("packer")),
        ("packet_arb", package::<packet_arb::In, packet_arb::Out>("packet_arb")),
        ("pcie_rx", package::<pcie_rx::In, pcie_rx::Out>("pcie_rx")),
        ("pcie_tx", package::<pcie_tx::In, pcie_tx::Out>("pcie_tx")),
        ("read_arb", package::<read_arb::In, read_arb::Out>("read_arb")),
        ("replay_buf", package::<replay_buf::In, replay_buf::Out>("replay_buf")),
        ("rx_ack", package::<rx_ack::In, rx_ack::Out>("rx_ack")),
        ("rx_dispatch", package::<rx_dispatch::In, rx_dispatch::Out>("rx_dispatch")),
        ("send_event", package::<send_event::In, send_event::Out>("send_event")),
        ("send_vc", package::<send_vc::In, send_vc::Out>("send_vc")),
        ("slot_cache", package::<slot_cache::In, slot_cache::Out>("slot_cache")),
        ("slot_read", package::<slot_read::In, slot_read::Out>("slot_read")),
        ("smp_link", package::<smp_link::In, smp_link::Out>("smp_link")),
        ("smp_port", package::<smp_port::In, smp_port::Out>("smp_port")),
        ("source_arb", package::<source_arb::In, source_arb::Out>("source_arb")),
        ("stream_fifo", package::<stream_fifo::In, stream_fifo::Out>("stream_fifo")),
        ("tag_alloc", package::<tag_alloc::In, tag_alloc::Out>("tag_alloc")),
        ("tlp_unwrap", package::<tlp_unwrap::In, tlp_unwrap::Out>("tlp_unwrap")),
        ("tlp_wrap", package::<tlp_wrap::In, tlp_wrap::Out>("tlp_wrap")),
        ("upload", package::<upload::In, upload::Out>("upload")),
        ("vc_rx_buf", package::<vc_rx_buf::In, vc_rx_buf::Out>("vc_rx_buf")),
        ("write_arb", package::<write_arb::In, write_arb::Out>("write_arb")),
        ("xbar", package::<xbar::In, xbar::Out>("xbar")),
    ]
}

/// A package with what `chpp_nic_taps` shows of the core, too.
fn with_taps(package: &str) -> String {
    // The bench alone does not use it, and a parameter must be used.
    let taps = packed_struct::<nic_core::Taps>("taps");
    let (_, taps) = taps.split_once('\n').expect("the first line is its size");
    package.replace("\nendpackage", &format!("\n{taps}\nendpackage"))
}

/// The package of a block's ports.
fn package<In: Ports, Out: Ports>(block: &str) -> String {
    format!(
        "// Written by `hardware layouts` from the model's structs of `{block}`; change those.\n\
         package {block}_ports;\n\n{}\n{}\nendpackage\n",
        packed_struct::<In>("in"),
        packed_struct::<Out>("out")
    )
}

/// Writes all packages below `root`, or with `check` compares them with what is there.
///
/// # Errors
/// A file that cannot be written, or that differs.
pub fn layouts(root: &Path, check: bool) -> Result<()> {
    let ports = |(block, text)| (format!("hardware/{block}/test/{block}_ports.sv"), text);
    let formats = [(LINK_PKG, link_pkg()), (PCIE_PKG, pcie_pkg()), (REGS_PKG, regs_pkg())];
    let formats = formats.map(|(path, text)| (path.to_owned(), text));
    for (path, text) in packages().into_iter().map(ports).chain(formats) {
        let path = root.join(path);
        if !check {
            fs::write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
        } else if fs::read_to_string(&path).unwrap_or_default() != text {
            bail!("{} is not what the code says; run `hardware layouts`", path.display());
        }
    }
    Ok(())
}
