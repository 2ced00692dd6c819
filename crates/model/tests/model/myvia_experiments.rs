//! The experiments of the MyVIA paper: calibrated values fit, predictions are as close as
//! documented, and no deviation above 5 % lacks an explanation.

use bellwire_model::experiment::{Origin, Report, Role};
use bellwire_model::myvia::experiments::EXPERIMENTS;

fn run(id: &str) -> Report {
    let experiment = EXPERIMENTS.iter().find(|experiment| experiment.id == id).unwrap();
    let report = experiment.run().unwrap();
    assert_eq!(report.unexplained(), Vec::<&str>::new());
    report
}

fn value(report: &Report, what: &str) -> f64 {
    let found = report.values.iter().find(|value| value.what.starts_with(what));
    found.unwrap_or_else(|| panic!("no value {what}")).model
}

fn near(report: &Report, what: &str, published: f64, percent: f64) {
    let error = (value(report, what) / published - 1.0) * 100.0;
    assert!(error.abs() < percent, "{what}: {error} %");
}

fn all_hold(report: &Report) {
    let fails = report.claims.iter().find(|claim| !claim.holds);
    assert!(fails.is_none(), "{fails:?}");
}

/// On LANai4 latencies nearly coincide, the bandwidths cross at the calibrated length, and Berkeley
/// VIA's peak is as published. Short messages are slower than the paper's "slightly"; the report
/// says so.
// shows: M-26, M-27, M-30, B-14
#[test]
fn lanai4() {
    let report = run("fig5");
    near(&report, "MyVIA, peak", 76.2, 1.0);
    near(&report, "Berkeley VIA, peak", 47.46, 5.0);
    near(&report, "the bandwidths are the same at", 2000.0, 5.0);
    assert!(value(&report, "latencies up to 4 KB differ") < 10.0);
    let fails: Vec<&str> = report
        .claims
        .iter()
        .filter(|claim| !claim.holds)
        .map(|claim| claim.claim.as_str())
        .collect();
    assert_eq!(fails, ["below 2000 B it is only slightly lower (25 %)"]);
    assert_eq!(report.figures.len(), 2);
    let origins = report.figures[1].series.iter().map(|series| series.origin);
    assert_eq!(origins.filter(|origin| *origin == Origin::Model).count(), 3);
    let calibrated = report.values.iter().filter(|value| value.role == Role::Calibrated);
    assert_eq!(calibrated.count(), 3);
}

/// On LANai9 the lowest latency is calibrated; 250 MB/s at 4 KB and the factor of two over Berkeley
/// VIA follow; GM is slightly better. Berkeley VIA's 250 MB/s at 32 KB do not follow, and the
/// report explains it; so the row of that figure is not claimed.
// shows: M-28, M-30, B-14, B-17
#[test]
fn lanai9() {
    let report = run("fig6");
    near(&report, "MyVIA, one way, 4 B", 8.46, 0.5);
    near(&report, "MyVIA, 4 KB", 250.0, 1.0);
    near(&report, "MyVIA, 32 KB", 250.0, 1.0);
    near(&report, "GM, 32 KB", 250.0, 1.0);
    near(&report, "Berkeley VIA, 32 KB", 250.0, 15.0);
    near(&report, "MyVIA over Berkeley VIA, 4096 B", 2.0, 10.0);
    all_hold(&report);
}

/// M-VIA takes at least one interrupt per message; its bandwidth on 100 Mb/s follows from the
/// frames.
// shows: B-16
#[test]
fn m_via() {
    let report = run("m-via");
    near(&report, "100 Mb/s, one way", 22.0, 1.0);
    near(&report, "100 Mb/s, peak", 11.6, 5.0);
    near(&report, "1 Gb/s, peak", 59.7, 1.5);
    all_hold(&report);
}

/// Poor locality costs Berkeley VIA's cache what the paper says, 10 to 40 %, for messages of 512 B,
/// and of 2 KB from regions of twice the cache on. It costs longer messages less, and none more.
/// It costs MyVIA nothing. A table on the NIC fills up at some point.
// shows: B-14, B-15
#[test]
fn translation() {
    let report = run("tlb");
    let loss = |length: u32, region: &str| {
        value(&report, &format!("{length} B, region {region} times the cache: loss"))
    };
    let mut shorter = [100.0; 3];
    for length in [512, 2048, 4096, 8192] {
        let losses = ["1.5", "2", "4"].map(|region| loss(length, region));
        assert!(losses.is_sorted() && losses[2] <= 40.0, "{length} B: {losses:?}");
        assert!(losses.iter().zip(shorter).all(|(&here, there)| here < there), "{length} B");
        shorter = losses;
    }
    assert!(loss(512, "1.5") >= 10.0 && loss(2048, "2") >= 10.0);
    // The least and the greatest of all. The report says why the least is less than published.
    assert!((3.8..4.2).contains(&value(&report, "poor locality, least")));
    assert!((31.0..33.0).contains(&value(&report, "poor locality, greatest")));
    assert_eq!(value(&report, "MyVIA, interrupts"), 0.0);
    all_hold(&report);
}

/// High marks cause interrupts, low marks a dry ring, and long rings a plateau. On LANai9 there are
/// almost no interrupts under the measured load.
// shows: M-15, M-16, M-17
#[test]
fn rings() {
    let report = run("rings");
    all_hold(&report);
    assert_eq!(value(&report, "LANai9 as set, window of 64, 4096 B"), 0.0);
    assert!(value(&report, "LANai9 as set, 1000 posted at once") > 0.0);
}

/// A message of 120 KB is one DMA or thirty, and thirty are slower; a longer one takes two.
// shows: M-23, B-18
#[test]
fn dma() {
    all_hold(&run("dma"));
}

/// The numbers of stages are as published, transfers overlap, and two buffers beat one where the
/// NIC overlaps.
// shows: M-18, M-19, M-20
#[test]
fn pipelines() {
    let report = run("pipelines");
    assert_eq!(value(&report, "LANai4, stages of sending"), 7.0);
    assert_eq!(value(&report, "LANai9, stages of receiving"), 2.0);
    for name in ["LANai4", "LANai9"] {
        assert!(value(&report, &format!("{name}, 4 KB: two buffers over one")) > 1.1);
        assert!(value(&report, &format!("{name}, 32 KB: sending while")) > 50.0);
    }
    assert_eq!(value(&report, "Berkeley VIA on LANai4, 32 KB: sending while"), 0.0);
}

/// All systems carry the mix. For the messages that MyVIA was designed for, it is ahead of Berkeley
/// VIA on LANai9. The report says that long messages among short ones cost it this lead.
// shows: M-31
#[test]
fn mix() {
    let report = run("mix");
    near(&report, "messages above 8192 B", 8.0, 5.0);
    assert!(value(&report, "messages of 128 to 4096 B") > 80.0);
    let page = "bandwidth, of the mix up to 4096 B";
    let of = |name: &str| value(&report, &format!("{name}: {page}"));
    assert!(of("myvia-b") > 1.3 * of("berkeley-b") && of("gm-b") >= of("myvia-b"));
    assert!(
        report
            .values
            .iter()
            .filter(|value| value.what.ends_with(page))
            .all(|value| value.model > 5.0)
    );
}
