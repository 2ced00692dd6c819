//! The gates of the whole interface as a library, for the device `rtl:chpp`, and what they need for
//! the operations of the paper's Table 3 (C-49).

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use bellwire_model::chpp::Config;
use bellwire_model::chpp::clocked::single::single;
use bellwire_model::chpp::clocked::{Interface, Machine};
use bellwire_model::chpp::experiments::{EXPERIMENTS, Kind as Operation, single as event_driven};
use bellwire_model::cycle::chpp_nic::ChppNic;
use bellwire_model::cycle::chpp_nic::{In, Out};
use bellwire_model::cycle::nic_core::{Shape, Taps};
use bellwire_model::cycle::{Ports, layout_hash};
use bellwire_model::published::Published;

use bellwire_rtl::Library;

use crate::block::Block;
use crate::finding::Finding;
use crate::simulation::{Kind, Recipe};
use crate::tools::Tools;

/// The block that the library has.
pub const BLOCK: &str = "chpp_nic";

/// Around its bench: what moves between blocks of the core.
const TAPS: &str = "hardware/chpp_nic/test/chpp_nic_taps.sv";

/// Builds the library with the sizes of [`Shape::PROTOTYPE`], and puts it at `to`.
///
/// # Errors
/// What Verilator, the compiler or the file system says.
pub fn library(tools: &Tools, block: &Block, to: &Path) -> Result<()> {
    let parameters = sizes(&Shape::PROTOTYPE);
    let recipe = Recipe {
        top: format!("{}_taps", block.top),
        sources: block.with_bench().into_iter().chain([TAPS.into()]).collect(),
        parameters: parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        kind: Kind::Library(layout_hash(&[In::SIGNALS, Out::SIGNALS, Taps::SIGNALS])),
    };
    let built = recipe.build(tools)?;
    let cannot = || format!("cannot write {}", to.display());
    // Under another name first: a program that has loaded the old one keeps it.
    let unfinished = to.with_extension("unfinished");
    fs::copy(built, &unfinished).with_context(cannot)?;
    fs::rename(unfinished, to).with_context(cannot)
}

/// Two hosts of the paper's prototype with these interfaces.
fn machine<I: Interface>(config: &Config, interfaces: Vec<I>) -> Machine<I> {
    Machine::new(config, 1, interfaces, Shape::PROTOTYPE.packets)
}

/// The parameters of the module for a shape.
fn sizes(shape: &Shape) -> Vec<(&'static str, u64)> {
    let sizes = [
        ("Bells", shape.bells),
        ("Tags", shape.tags),
        ("Timeout", shape.timeout as usize),
        ("Beats", shape.beats),
        ("Reads", shape.reads),
        ("Request", shape.request),
        ("Longest", shape.longest),
        ("Fetches", shape.fetches),
        ("Places", shape.places),
        ("Events", shape.events),
        ("Gets", shape.gets),
        ("PackBeats", shape.packer.beats),
        ("PackPackets", shape.packer.packets),
        ("Payload", shape.packer.payload),
        ("LongestNap", shape.packer.longest),
        ("Packets", shape.packets),
        ("Depth", shape.depth),
        ("Room", shape.room),
        ("Write", shape.write),
        ("Slots", shape.slots),
        ("Batch", shape.batch),
    ];
    sizes.into_iter().map(|(name, size)| (name, size as u64)).collect()
}

/// Times of the operations of Table 3 between two hosts whose interfaces are the gates of a
/// library, beside those of the event-driven machine and of the paper.
///
/// # Errors
/// If the library cannot be loaded, an operation fails, or the model's blocks give another time.
pub fn table3(library: &Path) -> Result<Vec<Finding>> {
    let config = Config::prototype();
    let cannot = || format!("cannot load {}", library.display());
    let library = Library::load(library).map_err(|why| anyhow!(why)).with_context(cannot)?;
    let gates = (0..2).map(|_| library.interface().context("there is no memory for gates"));
    let mut gates = machine(&config, gates.collect::<Result<Vec<_>>>()?);
    let mut blocks = machine(&config, vec![ChppNic::new(Shape::PROTOTYPE); 2]);
    let experiment = EXPERIMENTS.iter().find(|experiment| experiment.id == "table3");
    let experiment = experiment.context("the model has no experiment table3")?;
    let published = Published::read(experiment.published, "table3").map_err(|why| anyhow!(why))?;
    let mut findings = Vec::new();
    for kind in Operation::ALL {
        for &(bytes, paper) in published.curve(kind.name()) {
            let bytes = bytes as u64;
            let times = [single(&mut gates, kind, bytes), single(&mut blocks, kind, bytes)];
            let [Ok(here), Ok(model)] = &times else { bail!("{times:?}") };
            if here.intervals != model.intervals {
                bail!("{} of {bytes} B in gates:\n{here}\nin blocks:\n{model}", kind.name());
            }
            let of_events = |config| {
                let found =
                    event_driven::single(config, kind, bytes).map_err(|why| anyhow!(why))?;
                anyhow::Ok(found.latency.as_ns() / 1e3)
            };
            let name = format!("{}, {bytes} B", kind.name());
            let finding = Finding::new(name)
                .with("us in gates", here.total.as_ns() / 1e3)
                .with("us event by event", of_events(&config)?)
                .with("us event by event, with delays of gates", of_events(&Config::of_gates())?)
                .with("us in the paper", paper);
            findings.push(finding);
        }
    }
    Ok(findings)
}
