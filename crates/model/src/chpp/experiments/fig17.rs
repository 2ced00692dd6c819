//! Fig. 17 (C-50): the cycles of a message of 1 byte, stage by stage.

use super::Kind;
use super::single::single;
use crate::chpp::Config;
use crate::chpp::journal::Stage;
use crate::chpp::sensitivity::without_effect;
use crate::experiment::{Axis, Experiment, Origin, Report, Role};

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

/// The experiment.
pub const EXPERIMENT: Experiment =
    Experiment { id: "fig17", title: "where the cycles of a byte go", rows: "C-50", run };

fn run(report: &mut Report) -> Result<(), String> {
    let config = Config::prototype();
    let cycle = config.nic.cycle().as_ns();
    let mut ways = Vec::new();
    for (kind, role, published) in
        [(Kind::NapImmediate, Role::Calibrated, 35.0), (Kind::Put, Role::Predicted, 48.0)]
    {
        let explanation = single(&config, kind, 1)?.explanation;
        let cycles = |stage| explanation.time_in(stage).as_ns() / cycle;
        // The upload module's share is its delay; after it, the PCIe packet leaves.
        let upload = config.nic.module().as_ns() / cycle;
        let engines = ENGINES.into_iter().map(cycles).sum::<f64>() + upload;
        report.value(
            format!("{}, engine cycles", kind.name()),
            "cycles",
            role,
            engines,
            Some(published),
        );
        for stage in ENGINES.into_iter().filter(|stage| cycles(*stage) > 0.0) {
            report.value(
                format!("{}, of these in {stage:?}", kind.name()),
                "cycles",
                Role::Predicted,
                cycles(stage),
                None,
            );
        }
        let along = ENGINES.into_iter().map(cycles).chain([upload]);
        ways.push((kind.name(), published, along.collect::<Vec<f64>>()));
        report.value(
            format!("{}, of these in Upload", kind.name()),
            "cycles",
            Role::Predicted,
            upload,
            None,
        );
        let (role, name) = match kind {
            Kind::NapImmediate => (Role::Calibrated, "descriptor read of a NAP"),
            _ => (Role::Predicted, "descriptor read of a PUT"),
        };
        report.value(name, "cycles", role, cycles(Stage::DescriptorMemory), Some(130.0));
        if kind == Kind::Put {
            report.value(
                "data read of a PUT",
                "cycles",
                Role::Predicted,
                cycles(Stage::DataMemory),
                Some(130.0),
            );
        }
    }
    let figure = report.figure(
        "Fig. 17: engine cycles of 1 B, summed along its way",
        Axis::linear("module: doorbell 1, ..., dispatch 10, upload 11", ""),
        Axis::linear("cycles so far", "cycles"),
    );
    for (name, published, along) in ways {
        let end = along.len() as f64;
        let mut so_far = 0.0;
        let sums = along.iter().zip(1..).map(|(cycles, module)| {
            so_far += cycles;
            (f64::from(module), so_far)
        });
        figure.series(name, Origin::Model, sums);
        let origin = if name == Kind::Put.name() { Origin::Published } else { Origin::Calibrated };
        figure.series(format!("{name}, all modules"), origin, [(end, published)]);
    }
    let nap = single(&config, Kind::NapImmediate, 1)?.explanation;
    let outside = nap.total.as_ns() / cycle - 165.0;
    report.value(
        "NAP immediate, cycles outside of engines and reads",
        "cycles",
        Role::Predicted,
        outside,
        Some(145.5),
    );
    report.note(
        "The paper's parts (35 + 130 cycles) leave 145.5 of the 310.5 cycles of Table 3 unexplained. Here they are the processor's 50 (Oc), \
         the doorbell's way over the bus, and that of data and event into memory.",
    );
    without_effect(report, "the stages of a NAP or PUT of 1 B", &config, |config| {
        let stages = |kind| {
            let explanation = single(config, kind, 1)?.explanation;
            Ok::<_, String>(ENGINES.map(|stage| explanation.time_in(stage)))
        };
        Ok((stages(Kind::NapImmediate)?, stages(Kind::Put)?))
    })?;
    report.note("48 cycles are predicted: the 35 of the NAP fix the delay of one module, a PUT passes three more and has a longer descriptor.");
    report.note("The clock runs from the doorbell in the send engine to the upload in the receive engine; the paper's text has the two engines the other way round.");
    Ok(())
}
