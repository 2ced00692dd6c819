//! What the papers publish: each printed figure counts as one prediction at most.

use bellwire_model::experiment::Role;
use bellwire_model::published::Published;
use bellwire_model::system::System;

/// Figures that repeat others: computed from printed ones, by us or in the paper itself. By system
/// and unit.
const COMPUTED: [(&str, &str, &[f64]); 14] = [
    // Table 3: slopes, and differences of two rows.
    ("chpp", "ns/B", &[1.375, 1.0938, 0.3125]),
    ("chpp", "ns", &[76.0, 660.0, 1232.0]),
    // Table 3 less Fig. 17.
    ("chpp", "cycles", &[145.5]),
    // 2.8 over 2.6 GB/s, 2.8 of 4 GB/s, and one of eight equal shares.
    ("chpp", "%", &[7.69, 70.0, 12.5]),
    // A largest DMA of 120 KB, and pages of 4 KB.
    ("myvia", "1", &[1.0, 30.0, 1.606]),
    ("myvia", "us", &[16.384]),
    // Peaks over their links and buses.
    ("myvia", "%", &[57.7, 47.8, 92.8, 96.0]),
    // The ratios of 4.1 times 40 Gbps.
    ("smp", "Gbps", &[17.8, 32.0, 34.6, 37.1, 38.5, 37.59, 64.0, 75.18]),
    ("smp", "B", &[1984.0]),
    // Lines through two delays of Fig. 5.
    ("smp", "ns/DW", &[2.0, 0.929]),
    // 1.18E+08 B/s again.
    ("hpcl", "%", &[94.4]),
    ("hpcl", "Mb/s", &[944.0, 994.0]),
    ("hpcl", "us", &[10.136]),
    ("hpcl", "1/s", &[98662.0]),
];

/// Figures of a system's experiment that count as predicted and repeat others.
fn counted_again(system: &str, text: &str, id: &str) -> Vec<String> {
    let published = Published::read(text, id).unwrap();
    let predicted = published.values.iter().filter(|value| value.role == Role::Predicted);
    let repeats = predicted.filter(|value| {
        let near = |figure: &f64| (value.value / figure - 1.0).abs() < 5e-4;
        let same = |of: &&(&str, &str, _)| of.0 == system && of.1 == value.unit;
        COMPUTED.iter().filter(same).any(|(_, _, figures)| figures.iter().any(near))
    });
    repeats.map(|value| format!("{system} {id}: {} {}", value.name, value.unit)).collect()
}

/// No figure that follows from printed ones by arithmetic counts as predicted. Canary: 944 Mb/s
/// beside the 1.18E+08 B/s do, if they are not marked.
#[test]
fn no_figure_is_predicted_twice() {
    for (system, paper) in System::of_papers() {
        for experiment in paper.experiments {
            let again = counted_again(system.name, experiment.published, experiment.id);
            assert!(again.is_empty(), "{again:?}");
        }
    }
    let unmarked = r#"
        [fig8]
        values = [
            { name = "HPCL", unit = "B/s", value = 118000000 },
            { name = "HPCL", unit = "Mb/s", value = 944 },
            { name = "HPCL, each", unit = "us", value = 10.136, role = "derived" },
        ]
    "#;
    assert_eq!(counted_again("hpcl", unmarked, "fig8"), ["hpcl fig8: HPCL Mb/s"]);
}

/// Numbers that a paper states of several things: system, experiment, unit, number, and how often.
const STATED: [(&str, &str, &str, f64, usize); 3] = [
    // Packets of 20 DW before, and of 4 DW after (4.1).
    ("smp", "bandwidth", "%", 80.0, 2),
    // Table 3: a PUT of 256 B and a GET of 1 B, two cells.
    ("chpp", "table3", "us", 1.838, 2),
    // MyVIA from 4 KB on, MyVIA at 32 KB, and GM at 32 KB (4, Fig. 6).
    ("myvia", "fig6", "MB/s", 250.0, 3),
];

/// Numbers that several predicted values of an experiment stand beside, and that the paper states
/// less often.
fn read_twice(system: &str, text: &str, id: &str) -> Vec<String> {
    let published = Published::read(text, id).unwrap();
    let predicted: Vec<_> =
        published.values.iter().filter(|value| value.role == Role::Predicted).collect();
    let often = |unit: &str, number: f64| {
        predicted.iter().filter(|value| value.unit == unit && value.value == number).count()
    };
    let stated = |unit: &str, number: f64| {
        let stated =
            STATED.iter().find(|of| (of.0, of.1, of.2, of.3) == (system, id, unit, number));
        stated.map_or(1, |of| of.4)
    };
    let twice = predicted
        .iter()
        .filter(|value| often(&value.unit, value.value) != stated(&value.unit, value.value));
    twice.map(|value| format!("{system} {id}: {}", value.name)).collect()
}

/// A printed figure with two readings counts once. Canary: two readings that both count.
#[test]
fn no_reading_counts_beside_another() {
    for (system, paper) in System::of_papers() {
        for experiment in paper.experiments {
            let twice = read_twice(system.name, experiment.published, experiment.id);
            assert!(twice.is_empty(), "{twice:?}");
        }
    }
    let both = r#"
        [fig15]
        values = [
            { name = "MTU 128 B", unit = "GB/s", value = 3.2 },
            { name = "MTU 128 B, second reading", unit = "GB/s", value = 3.2 },
            { name = "MTU 128 B, third reading", unit = "GB/s", value = 3.2, role = "derived" },
        ]
    "#;
    let told = read_twice("chpp", both, "fig15");
    assert_eq!(told, ["chpp fig15: MTU 128 B", "chpp fig15: MTU 128 B, second reading"]);
}
