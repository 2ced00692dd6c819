//! Fig. 17 (C-50): the cycles of a message of 1 byte, stage by stage.

use super::Kind;
use super::single::single;
use crate::chpp::Config;
use crate::chpp::journal::Stage;
use crate::experiment::{Axis, Origin, Report};

/// The stages of the two engines, without memory reads and the bus.
const ENGINES: [Stage; 10] = [
    Stage::Doorbell,
    Stage::Arbiter,
    Stage::DescriptorRead,
    Stage::DescriptorExtract,
    Stage::DataRead,
    Stage::DataExtract,
    Stage::DataReorder,
    Stage::Packer,
    Stage::Crossbar,
    Stage::Dispatch,
];

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let config = Config::prototype();
    let cycle = config.nic.cycle().as_ns();
    let mut ways = Vec::new();
    for kind in [Kind::NapImmediate, Kind::Put] {
        let explanation = single(&config, kind, 1)?.explanation;
        let cycles = |stage| explanation.time_in(stage).as_ns() / cycle;
        // The upload module's share is its delay; after it, the PCIe packet leaves.
        let upload = config.nic.module().as_ns() / cycle;
        let engines = ENGINES.into_iter().map(cycles).sum::<f64>() + upload;
        report.value(format!("{}, engine cycles", kind.name()), "cycles", engines);
        for stage in ENGINES.into_iter().filter(|stage| cycles(*stage) > 0.0) {
            report.value(
                format!("{}, of these in {stage:?}", kind.name()),
                "cycles",
                cycles(stage),
            );
        }
        let along = ENGINES.into_iter().map(cycles).chain([upload]);
        ways.push((kind.name(), along.collect::<Vec<f64>>()));
        report.value(format!("{}, of these in Upload", kind.name()), "cycles", upload);
        let of = if kind.is_nap() { "NAP" } else { "PUT" };
        report.value(
            format!("descriptor read of a {of}"),
            "cycles",
            cycles(Stage::DescriptorMemory),
        );
        if kind == Kind::Put {
            report.value("data read of a PUT", "cycles", cycles(Stage::DataMemory));
        }
    }
    let figure = report.figure(
        "Fig. 17: engine cycles of 1 B, summed along its way",
        Axis::linear("module: doorbell 1, ..., dispatch 10, upload 11", ""),
        Axis::linear("cycles so far", "cycles"),
    );
    for (name, along) in ways {
        let mut so_far = 0.0;
        let sums = along.iter().zip(1..).map(|(cycles, module)| {
            so_far += cycles;
            (f64::from(module), so_far)
        });
        figure.series(name, Origin::Model, sums);
    }
    let nap = single(&config, Kind::NapImmediate, 1)?.explanation;
    let outside = nap.total.as_ns() / cycle - 165.0;
    report.value("NAP immediate, cycles outside of engines and reads", "cycles", outside);
    report.vary("the stages of a NAP or PUT of 1 B", &config, |config| {
        let stages = |kind| {
            let explanation = single(config, kind, 1)?.explanation;
            Ok::<_, String>(ENGINES.map(|stage| explanation.time_in(stage)))
        };
        Ok((stages(Kind::NapImmediate)?, stages(Kind::Put)?))
    })
}
