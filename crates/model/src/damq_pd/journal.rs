//! The steps of a submission, as the paper counts them (Figs. 1 and 2; D-10, D-11).

use crate::units::Time;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The data is in host memory.
    DataPrepared,
    /// The descriptor is in the host queue.
    DescriptorPrepared,
    /// PIO writes have put the descriptor into the interface.
    DescriptorWritten,
    /// A PIO write has rung the doorbell.
    DoorbellRung,
    /// The prefetch logic knows of the descriptor.
    PrefetchEntered,
    /// A DMA read of the descriptor begins.
    DescriptorReadBegins,
    /// The descriptor has arrived.
    DescriptorCame,
    /// The descriptor is in the descriptor logic (the buffer).
    LogicEntered,
    /// A DMA read of the data begins.
    DataReadBegins,
    /// The data has arrived.
    DataCame,
    /// The message is sent.
    Sent,
}

/// One step of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Time,
    /// Port.
    pub port: u8,
    /// Number of the message among those of its port.
    pub number: u32,
    /// The step.
    pub step: Step,
}

/// Records steps while it is open.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    entries: Option<Vec<Entry>>,
}

impl Journal {
    /// Starts recording.
    pub fn open(&mut self) {
        self.entries = Some(Vec::new());
    }

    /// Records a step.
    #[inline]
    pub fn note(&mut self, at: Time, port: u8, number: u32, step: Step) {
        if let Some(entries) = &mut self.entries {
            entries.push(Entry { at, port, number, step });
        }
    }

    /// The steps of a message, in order of time.
    pub fn steps(&self, port: u8, number: u32) -> Vec<Entry> {
        let all = self.entries.iter().flatten();
        let mut steps: Vec<Entry> =
            all.filter(|entry| entry.port == port && entry.number == number).copied().collect();
        steps.sort_by_key(|entry| entry.at);
        steps
    }
}
