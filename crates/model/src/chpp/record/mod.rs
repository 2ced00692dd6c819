//! What a machine did, as files for viewers.
//!
//! | file | function | from | for |
//! |---|---|---|---|
//! | Perfetto trace | [`perfetto::trace`] | the journal and the signals | ui.perfetto.dev |
//! | waveforms (VCD) | [`vcd::waveforms`] | the signals | GTKWave, Surfer |
//! | captures (pcapng) | [`frames::capture`] | the frames | Wireshark |
//!
//! A machine records only what a caller requests before the run: `Machine::open_journal`,
//! `Machine::watch_signals`, `Machine::capture_frames`. [`MOST_NOTES`] bounds each record, so that
//! a long run does not fill the memory. Later entries are dropped; only the waveforms say so.

pub mod frames;
pub mod perfetto;
pub mod signals;
pub mod vcd;

/// The maximum number of marks, of signal changes and of frames.
pub const MOST_NOTES: usize = 4_000_000;
