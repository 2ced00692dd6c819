//! The experiments of the MyVIA paper: calibrated values fit, predictions are as close as
//! documented, and no deviation above 5 % lacks an explanation.

use bellwire_model::experiment::{Origin, Report, Role};

use crate::support;

fn run(id: &str) -> Report {
    let report = support::report("myvia", id);
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
/// says so. Most of it is fitted, so the rows of the figure are not claimed.
// shows: M-30
#[test]
fn lanai4() {
    let report = run("fig5");
    near(&report, "MyVIA, peak", 76.2, 1.0);
    near(&report, "Berkeley VIA, peak", 47.46, 5.0);
    near(&report, "the bandwidths are the same at", 2000.0, 5.0);
    assert!(value(&report, "latencies up to 4 KB differ") < 10.0);
    let fails = report.claims.iter().filter(|claim| !claim.holds);
    let fails: Vec<&str> = fails.map(|claim| claim.claim.as_str()).collect();
    assert_eq!(fails, ["below 2000 B it is only slightly lower (25 %)"]);
    assert_eq!(report.figures.len(), 2);
    let origins = report.figures[1].series.iter().map(|series| series.origin);
    assert_eq!(origins.filter(|origin| *origin == Origin::Model).count(), 3);
    let calibrated = report.values.iter().filter(|value| value.role == Role::Calibrated);
    assert_eq!(calibrated.count(), 2);
}

/// On LANai9 the lowest latency and the factor of two over Berkeley VIA are calibrated; 250 MB/s at
/// 4 KB follow. GM is faster than MyVIA at the smallest message, by less than 15 %, never slower,
/// and reaches 250 MB/s at 32 KB. Nothing exceeds what a line of 250 MB/s carries beside headers of
/// 16 B: bytes are counted where they come. Berkeley VIA's 250 MB/s at 32 KB do not follow, and the
/// report explains it. So the rows of the figure are not claimed.
// shows: M-30, B-17
#[test]
fn lanai9() {
    let report = run("fig6");
    near(&report, "MyVIA, one way, 4 B", 8.46, 0.5);
    near(&report, "MyVIA, 4 KB", 250.0, 1.0);
    near(&report, "MyVIA, 32 KB", 250.0, 1.0);
    near(&report, "GM, 32 KB", 250.0, 1.0);
    near(&report, "Berkeley VIA, 32 KB", 250.0, 15.0);
    near(&report, "MyVIA over Berkeley VIA, 4096 B", 2.0, 10.0);
    let [myvia, gm] = ["MyVIA", "GM"].map(|name| value(&report, &format!("{name}, one way, 4 B")));
    assert!(gm < 0.95 * myvia && myvia < 1.15 * gm, "{gm} and {myvia} us");
    let rates = report.figures.iter().find(|figure| figure.title.contains("bandwidth")).unwrap();
    let modelled = rates.series.iter().filter(|series| series.origin == Origin::Model);
    for (length, rate) in modelled.flat_map(|series| &series.points) {
        let line = 250.0 * length / (length + 16.0);
        assert!(*rate < line, "{rate} MB/s of {length} B on a line that carries {line}");
    }
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
// shows: B-15
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
    // At least the published 10 % in 6 of 12 runs, so B-14 is not claimed.
    let losses = report.values.iter().filter(|value| value.what.ends_with("times the cache: loss"));
    let published = losses.clone().filter(|value| (10.0..=40.0).contains(&value.model)).count();
    assert_eq!((published, losses.count()), (6, 12));
    // The least and the greatest of all. The report says why the least is less than published.
    assert!((3.8..4.2).contains(&value(&report, "poor locality, least")));
    assert!((31.0..33.0).contains(&value(&report, "poor locality, greatest")));
    assert_eq!(value(&report, "MyVIA, interrupts"), 0.0);
    all_hold(&report);
}

/// High marks cause interrupts, and low marks a dry ring. The rate is level for all lengths of the
/// ring, so the plateau of long ones is no result. With a window of 64 LANai9's ring of 128 cannot
/// overflow, so it has no interrupts; the ring of LANai4 has them under the same load.
// shows: M-15
#[test]
fn rings() {
    let report = run("rings");
    all_hold(&report);
    assert_eq!(value(&report, "LANai9 as set, window of 64, 4096 B"), 0.0);
    assert!(value(&report, "LANai4 as set, window of 64, 4096 B") > 50.0);
    assert!(value(&report, "LANai9 as set, 1000 posted at once") > 0.0);
    for name in ["LANai4", "LANai9"] {
        let rate = |entries: u32| {
            value(&report, &format!("{name}, ring of {entries}, mark a quarter: messages"))
        };
        assert!((rate(2) / rate(64) - 1.0).abs() < 0.01, "the length of the ring matters");
    }
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
    assert!(report.values.iter().all(|value| value.interval.is_some()));
    let mut of_all = report.values.iter().filter(|value| value.what.ends_with(page));
    assert!(of_all.all(|value| value.model > 5.0));
}
