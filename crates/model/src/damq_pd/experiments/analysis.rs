//! Sections 3.1 and 3.2 (D-23, D-24, D-25): storage, capacity and utilisation, counted in runs
//! instead of computed.

use crate::damq_pd::{Config, LONGEST, Load, Machine, Organisation, Submission};
use crate::experiment::{Axis, Origin, Report};
use crate::units::Time;

/// What the ports filled of an interface whose send engine is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Words of the data memory that PIO may use.
    pub words: usize,
    /// The most of them in use at one time.
    pub peak: usize,
    /// Words of descriptors that port 0 submitted.
    pub submitted: u64,
}

/// Lets `active` ports submit all they can while nothing leaves. With `queued`, they go on in host
/// memory when the buffer is full.
pub fn fill(config: &Config, active: usize, queued: bool) -> Result<Filled, String> {
    let mut config = config.clone();
    config.host.submission = if queued { Submission::PioAndDma } else { Submission::Pio };
    let mut loads = vec![Load::IDLE; config.nic.ports];
    loads[..active].fill(Load::SATURATED);
    let mut machine = Machine::new(&config, &loads, 1).map_err(|error| error.to_string())?;
    machine.stop_engine(true);
    // Long enough to fill buffer and queue; processes without credits poll until the end.
    machine.run_before(Time::from_ps(400_000_000)).map_err(|stalled| stalled.to_string())?;
    machine.model.check()?;
    let submitted: u64 = machine.model.processes[0].submitted.iter().sum();
    Ok(Filled {
        words: machine.model.buffer.words.len() - config.nic.landing,
        peak: machine.model.peak,
        submitted: submitted * u64::from(LONGEST),
    })
}

/// An interface with `ports` ports and `depth` words in all.
pub fn interface(organisation: Organisation, ports: usize, depth: usize) -> Config {
    let mut config = Config::paper();
    config.nic.organisation = organisation;
    config.nic.ports = ports;
    config.nic.depth = depth;
    config
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let (ports, depth) = (16, 1024);
    let queue = (Config::paper().host.queue * usize::from(LONGEST)) as f64;
    let (samq, damq) = (Organisation::Samq, Organisation::DamqPd);
    let mut words = |what: String, model: f64, published: f64| {
        report.value(what, "words", model).beside(published);
    };
    // Same storage, N M = P: how much one port can have in flight.
    let part = (depth / ports) as f64;
    let with_parts = fill(&interface(samq, ports, depth), 1, true)?;
    let shared = fill(&interface(damq, ports, depth), 1, true)?;
    words("same storage: words of SAMQ (N M)".into(), with_parts.words as f64, part * 16.0);
    words("same storage: words of DAMQ-PD (P)".into(), shared.words as f64, 1024.0);
    let most = "most words that one port has under way";
    words(format!("SAMQ, {most} (M + Q)"), with_parts.submitted as f64, part + queue);
    words(format!("DAMQ-PD, {most} (P + Q)"), shared.submitted as f64, 1024.0 + queue);
    // Same capacity, M = P: how much storage it needs.
    let small = 256;
    let with_parts = fill(&interface(samq, ports, small * ports), 1, true)?;
    let shared = fill(&interface(damq, ports, small), 1, true)?;
    let same = "same capacity (M = P = 256): words of";
    words(format!("{same} SAMQ (N M)"), with_parts.words as f64, (small * ports) as f64);
    words(format!("{same} DAMQ-PD (P)"), shared.words as f64, small as f64);
    let equal = with_parts.submitted == shared.submitted;
    let mut curves = [Vec::new(), Vec::new()];
    for active in [1, 4, 8, 12, 16] {
        for (name, organisation, published) in
            [("SAMQ", samq, active as f64 / ports as f64), ("DAMQ-PD", damq, 1.0)]
        {
            let filled = fill(&interface(organisation, ports, depth), active, false)?;
            let used = filled.peak as f64 / filled.words as f64;
            let what = format!("{name}: peak use, {active} of {ports} active");
            report.value(what, "1", used).beside(published);
            let x = active as f64;
            curves[usize::from(organisation == damq)].push([(x, used), (x, published)]);
        }
    }
    let x = Axis::linear("active ports of 16", "");
    let figure = report.figure("Use of the buffer (3.2)", x, Axis::linear("share in use", ""));
    for (name, curve) in ["SAMQ", "DAMQ-PD"].into_iter().zip(curves) {
        figure.series(name, Origin::Model, curve.iter().map(|point| point[0]));
        let formula = curve.iter().map(|point| point[1]);
        figure.series(format!("{name}, published"), Origin::Formula, formula);
    }
    report.claim("with M = P one port can have as much under way in both", equal);
    report.note(format!(
        "Control memory of DAMQ-PD beside {} bits of words (257 each): address queue and free list {} bits each, tickets {} bits, and for each port two \
         lists of two pointers and two counts, {} bits. SAMQ needs only the pointers.",
        257 * depth,
        10 * depth,
        16 * depth,
        ports * 2 * (2 * 10 + 2 * 11),
    ));
    Ok(())
}
