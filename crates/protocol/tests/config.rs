//! The settings of the reliable protocol: which are refused, and what HPCL's variant is.

use bellwire_protocol::reliable::{Config, Recovery};

/// Each setting is refused just outside of its bounds, with the text that says how to mend it, and
/// taken at its bounds.
#[test]
fn settings_that_cannot_work_are_refused() {
    let right = Config::new(1500);
    assert_eq!(right.check(), Ok(()));
    let refused = |text: &str, wrong: &[Config]| {
        for config in wrong {
            assert_eq!(config.check().unwrap_err(), text, "{config:?}");
        }
    };
    let taken = |right: &[Config]| {
        for config in right {
            assert_eq!(config.check(), Ok(()), "{config:?}");
        }
    };
    taken(&[256, 65_535].map(|frame_bytes| Config { frame_bytes, ..right }));
    refused(
        "frame_bytes must be 256 to 65535; set the interface's MTU accordingly",
        &[255, 65_536].map(|frame_bytes| Config { frame_bytes, ..right }),
    );
    taken(&[1, 1024].map(|window_frames| Config { window_frames, ..right }));
    refused(
        "window_frames must be 1 to 1024",
        &[0, 1025].map(|window_frames| Config { window_frames, ..right }),
    );
    // The longest packet here is 65,472 bytes, so that 2^16 is exactly enough.
    let tight = Config { packet_bytes: 65_472, ..right };
    let send = |send_bytes| Config { send_bytes, ..tight };
    let receive = |receive_bytes| Config { receive_bytes, ..tight };
    let most = 1 << 28;
    taken(&[send(1 << 16), send(most), receive(1 << 16), receive(most)]);
    let wrong = [0, 1 << 15, (1 << 16) + 1, 1 << 29];
    let text = " must be a power of two, at most 2^28, that holds the longest packet and 64 bytes";
    refused(&format!("send_bytes{text}"), &wrong.map(send));
    refused(&format!("receive_bytes{text}"), &wrong.map(receive));
    let long = Config { packet_bytes: 65_473, send_bytes: 1 << 16, ..right };
    refused(&format!("send_bytes{text}"), &[long]);
    let endless = Config { packet_bytes: u32::MAX, ..right };
    refused(&format!("send_bytes{text}"), &[endless]);
    taken(&[1, 0x8000].map(|links| Config { links, ..right }));
    refused("links must be 1 to 32768", &[0, 0x8001].map(|links| Config { links, ..right }));
    taken(&[Config { acknowledge_every: 1, keep_alive_ns: 1, keep_alive_probes: 1, ..right }]);
    refused(
        "acknowledge_every, keep_alive_ns and keep_alive_probes must not be 0",
        &[
            Config { acknowledge_every: 0, ..right },
            Config { keep_alive_ns: 0, ..right },
            Config { keep_alive_probes: 0, ..right },
        ],
    );
    taken(&[[1, 1], [5, 6]].map(|timeout_ns| Config { timeout_ns, ..right }));
    refused(
        "timeout_ns must be a lower and an upper bound, neither 0",
        &[[0, 0], [0, 1], [6, 5]].map(|timeout_ns| Config { timeout_ns, ..right }),
    );
}

/// HPCL has a constant window, acknowledges each frame at once, sends one message in a frame, and
/// goes back after a loss. All else is as in production.
#[test]
fn hpcl_is_what_its_paper_says() {
    let hpcl = Config::hpcl(1500);
    assert_eq!((hpcl.window_frames, hpcl.acknowledge_every, hpcl.acknowledge_delay_ns), (8, 1, 0));
    assert_eq!((hpcl.recovery, hpcl.congestion, hpcl.coalesce), (Recovery::GoBack, false, false));
    let other = Config::new(1500);
    let common = Config {
        window_frames: other.window_frames,
        acknowledge_every: other.acknowledge_every,
        acknowledge_delay_ns: other.acknowledge_delay_ns,
        recovery: other.recovery,
        congestion: other.congestion,
        coalesce: other.coalesce,
        ..hpcl
    };
    assert_eq!(common, other);
}
