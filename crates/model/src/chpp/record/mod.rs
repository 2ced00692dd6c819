//! What a machine did, as files for programs that show such things.
//!
//! | file | function | from | for |
//! |---|---|---|---|
//! | Perfetto trace | [`perfetto::trace`] | the journal and the signals | ui.perfetto.dev |
//! | waveforms (VCD) | [`vcd::waveforms`] | the signals | GTKWave, Surfer |
//! | captures (pcapng) | [`frames::capture`] | the frames | Wireshark |
//!
//! A machine notes nothing unless it is asked to, before it runs: `Machine::open_journal`, `Machine::watch_signals`,
//! `Machine::capture_frames`. What is noted has a limit, [`MOST_NOTES`], so that a long run does not fill the memory; what comes after that is
//! left out, and the files say so.

pub mod frames;
pub mod perfetto;
pub mod signals;
pub mod vcd;

/// Marks, changes of signals and frames are noted up to this number of each.
pub const MOST_NOTES: usize = 4_000_000;
