//! The steps of a submission, as the paper counts them (Figs. 1 and 2; D-10, D-11).

use crate::units::Time;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The data is prepared in memory.
    DataPrepared,
    /// The descriptor is prepared in the host queue.
    DescriptorPrepared,
    /// PIO writes put the descriptor into the interface.
    DescriptorWritten,
    /// A PIO write rings the doorbell.
    DoorbellRung,
    /// The prefetch logic knows of the descriptor.
    PrefetchEntered,
    /// A DMA read of the descriptor begins.
    DescriptorReadBegins,
    /// The descriptor has come.
    DescriptorCame,
    /// The descriptor is in the descriptor logic (the buffer).
    LogicEntered,
    /// A DMA read of the data begins.
    DataReadBegins,
    /// The data has come.
    DataCame,
    /// The message is sent.
    Sent,
}

/// A step of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Time,
    /// Port.
    pub port: u8,
    /// Number of the message among those of its port.
    pub number: u32,
    /// What.
    pub step: Step,
}

/// Notes steps, if it is open.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    entries: Option<Vec<Entry>>,
}

impl Journal {
    /// Begins to note.
    pub fn open(&mut self) {
        self.entries = Some(Vec::new());
    }

    /// Notes a step.
    #[inline]
    pub fn note(&mut self, at: Time, port: u8, number: u32, step: Step) {
        if let Some(entries) = &mut self.entries {
            entries.push(Entry { at, port, number, step });
        }
    }

    /// The steps of a message in the order of time.
    pub fn steps(&self, port: u8, number: u32) -> Vec<Entry> {
        let all = self.entries.iter().flatten();
        let mut steps: Vec<Entry> =
            all.filter(|entry| entry.port == port && entry.number == number).copied().collect();
        steps.sort_by_key(|entry| entry.at);
        steps
    }
}
