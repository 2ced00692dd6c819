//! Records of a run of the cHPP model, in the formats of viewers.

use crate::command::write_file;
use anyhow::Result;
use bellwire_model::chpp::Machine;
use bellwire_model::chpp::record::{frames, perfetto, vcd};
use std::path::PathBuf;

/// Record files for viewers.
#[derive(clap::Args)]
pub struct Records {
    /// Also writes a trace for ui.perfetto.dev: a track for each block, a counter for each queue,
    /// arrows along each message
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Also writes waveforms of queues and handshakes, for GTKWave or Surfer (VCD)
    #[arg(long, value_name = "FILE")]
    vcd: Option<PathBuf>,
    /// Also writes the traffic of each link, for Wireshark (pcapng, times in picoseconds)
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
}

impl Records {
    /// Whether no file was requested.
    pub fn is_empty(&self) -> bool {
        self.trace.is_none() && self.vcd.is_none() && self.pcap.is_none()
    }

    /// Makes a machine record the data for these files, before it runs.
    pub fn prepare(&self, machine: &mut Machine) {
        if self.trace.is_some() {
            machine.open_journal();
        }
        if self.trace.is_some() || self.vcd.is_some() {
            machine.watch_signals();
        }
        if self.pcap.is_some() {
            machine.capture_frames();
        }
    }

    pub fn write(&self, machine: &Machine) -> Result<()> {
        if let Some(file) = &self.trace {
            write_file(file, perfetto::trace(machine))?;
        }
        if let Some(file) = &self.vcd {
            write_file(file, vcd::waveforms(machine))?;
        }
        if let Some(file) = &self.pcap {
            write_file(file, frames::capture(machine))?;
        }
        Ok(())
    }
}
