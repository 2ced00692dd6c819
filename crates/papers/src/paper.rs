//! The six groups of rows: five papers, and the systems that they compare themselves with.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A paper, or the group of baselines, to which a row belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paper {
    /// Rows C-..: a network card for the inside of a super-node, with NAP, PUT and GET.
    ChppNic,
    /// Rows D-..: submission of descriptors through one buffer shared by many ports.
    DamqPd,
    /// Rows M-..: the Virtual Interface Architecture on Myrinet.
    Myvia,
    /// Rows S-..: direct links between processors on a simplified PCIe.
    SmpInterconnect,
    /// Rows H-..: a communication library on plain Ethernet.
    HpclEthernet,
    /// Rows B-..: the systems that the five are compared with.
    Baselines,
}

impl Paper {
    /// All groups, in the order of the scoreboard.
    pub const ALL: [Paper; 6] = [
        Paper::ChppNic,
        Paper::DamqPd,
        Paper::Myvia,
        Paper::SmpInterconnect,
        Paper::HpclEthernet,
        Paper::Baselines,
    ];

    /// The group's name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Paper::ChppNic => "chpp-nic",
            Paper::DamqPd => "damq-pd",
            Paper::Myvia => "myvia",
            Paper::SmpInterconnect => "smp-interconnect",
            Paper::HpclEthernet => "hpcl-ethernet",
            Paper::Baselines => "baselines",
        }
    }

    /// A heading for readers.
    pub const fn title(self) -> &'static str {
        match self {
            Paper::ChppNic => "cHPP NIC",
            Paper::DamqPd => "DAMQ-PD",
            Paper::Myvia => "MyVIA",
            Paper::SmpInterconnect => "SMP interconnect",
            Paper::HpclEthernet => "HPCL/Ethernet",
            Paper::Baselines => "Baselines and compared systems",
        }
    }

    /// The paper's topic, in a sentence or two.
    pub const fn summary(self) -> &'static str {
        match self {
            Paper::ChppNic => {
                "A network interface for the inside of a super-node: short messages, PUT and GET started by a doorbell, eight functions, a \
                 crossbar with virtual channels."
            }
            Paper::DamqPd => {
                "Descriptors are stored by the processor into one buffer on the interface that all virtual ports share, with credits granted on \
                 demand, so that a message starts without a read from memory."
            }
            Paper::Myvia => {
                "The Virtual Interface Architecture on Myrinet: translation at user level, a small ring of descriptors on the card that overflows \
                 into memory, pipelines with double buffers."
            }
            Paper::SmpInterconnect => {
                "Direct links between processors on a simplified PCIe: sequence numbers, replay, credits and virtual channels, and how large their \
                 buffers have to be."
            }
            Paper::HpclEthernet => {
                "A communication library on plain Ethernet: channels, a light reliable protocol, polling in place of interrupts, and fixed buffers, \
                 beside TCP/IP."
            }
            Paper::Baselines => "What the five papers compare themselves with.",
        }
    }

    /// The letter with which the identities of this group begin.
    pub const fn letter(self) -> char {
        match self {
            Paper::ChppNic => 'C',
            Paper::DamqPd => 'D',
            Paper::Myvia => 'M',
            Paper::SmpInterconnect => 'S',
            Paper::HpclEthernet => 'H',
            Paper::Baselines => 'B',
        }
    }

    /// How many rows the group has; they are numbered from 1 without a gap.
    pub const fn row_count(self) -> usize {
        match self {
            Paper::ChppNic => 55,
            Paper::DamqPd => 31,
            Paper::Myvia => 32,
            Paper::SmpInterconnect => 32,
            Paper::HpclEthernet => 30,
            Paper::Baselines => 27,
        }
    }

    pub(crate) fn of_letter(letter: char) -> Option<Paper> {
        Paper::ALL.into_iter().find(|paper| paper.letter() == letter)
    }
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The given name is that of no paper.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no paper `{0}`; choose one of chpp-nic, damq-pd, myvia, smp-interconnect, hpcl-ethernet, baselines \
     (the first letters are enough)"
)]
pub struct UnknownPaper(String);

impl FromStr for Paper {
    type Err = UnknownPaper;

    /// Reads a name or its first letters, in any case: `chpp-nic`, `chpp` and `C` are the same.
    fn from_str(text: &str) -> Result<Paper, UnknownPaper> {
        let wanted = text.to_ascii_lowercase();
        Paper::ALL
            .into_iter()
            .find(|paper| !wanted.is_empty() && paper.name().starts_with(&wanted))
            .ok_or_else(|| UnknownPaper(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First letters are unambiguous, so an abbreviation is never a guess.
    #[test]
    fn abbreviations_are_unique() {
        for paper in Paper::ALL {
            let first_letter = &paper.name()[..1];
            let matching =
                Paper::ALL.into_iter().filter(|other| other.name().starts_with(first_letter));
            assert_eq!(matching.count(), 1, "{first_letter} names several papers");
            assert_eq!(paper.letter().to_string().parse::<Paper>().unwrap(), paper);
            assert_eq!(paper.name().parse::<Paper>().unwrap(), paper);
        }
        assert_eq!("chpp".parse::<Paper>().unwrap(), Paper::ChppNic);
        assert!("".parse::<Paper>().is_err());
        assert!("chpp-nics".parse::<Paper>().is_err());
    }
}
