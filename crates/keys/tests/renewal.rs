//! One session follows another without a pause.

#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use support::renewal;

/// After the first session no frame waits for the next one, and none on its way is lost, although
/// handshake frames are. Both sides send all the time. Sessions end by count, and by time.
#[test]
fn nothing_waits_for_the_next_session() {
    for (limits, step_ns) in renewal::cases() {
        let sessions =
            renewal::run(limits, step_ns, 50_000).unwrap_or_else(|what| panic!("{what}"));
        assert!(sessions > 20, "{sessions} sessions");
    }
}
