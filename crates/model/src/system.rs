//! The list of modelled systems: what each is called, and what it offers.

use crate::experiment::{Experiment, Sensitivity};
use crate::{chpp, damq_pd, hpcl, myvia, smp};

/// A modelled system of a paper.
#[derive(Clone, Copy)]
pub struct System {
    /// Its name, which is also that of its module.
    pub name: &'static str,
    /// The name of its paper on the command line.
    pub paper: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Its parameters as TOML, with the source of each.
    pub parameters: &'static str,
    /// The experiments of its paper.
    pub experiments: &'static [Experiment],
    /// Varies its parameters in a short run.
    pub sensitivity: fn() -> Result<Sensitivity, String>,
    /// Whether a single operation can be followed stage by stage.
    pub explains: bool,
}

impl System {
    /// The system of this name, or of the paper of this name.
    pub fn named(name: &str) -> Option<&'static System> {
        SYSTEMS.iter().find(|system| [system.name, system.paper].contains(&name))
    }
}

/// All systems, in the order of the scoreboard. Add a line here for a new one.
pub static SYSTEMS: [System; 5] = [
    System {
        name: "chpp",
        paper: "chpp-nic",
        title: "the interface, host and controller of cHPP",
        parameters: chpp::config::PROTOTYPE,
        experiments: &chpp::experiments::EXPERIMENTS,
        sensitivity: chpp::experiments::sensitivity,
        explains: true,
    },
    System {
        name: "damq-pd",
        paper: "damq-pd",
        title: "the descriptor interface of DAMQ-PD",
        parameters: damq_pd::config::PAPER,
        experiments: &damq_pd::experiments::EXPERIMENTS,
        sensitivity: damq_pd::experiments::sensitivity,
        explains: false,
    },
    System {
        name: "myvia",
        paper: "myvia",
        title: "MyVIA, Berkeley VIA, GM and M-VIA",
        parameters: myvia::config::PAPER,
        experiments: &myvia::experiments::EXPERIMENTS,
        sensitivity: myvia::experiments::sensitivity,
        explains: false,
    },
    System {
        name: "smp",
        paper: "smp-interconnect",
        title: "the direct link between processors",
        parameters: smp::config::RECOMMENDED,
        experiments: &smp::experiments::EXPERIMENTS,
        sensitivity: smp::experiments::sensitivity,
        explains: false,
    },
    System {
        name: "hpcl",
        paper: "hpcl-ethernet",
        title: "the cluster of HPCL/Ethernet",
        parameters: hpcl::config::CLUSTER,
        experiments: &hpcl::experiments::EXPERIMENTS,
        sensitivity: hpcl::experiments::sensitivity,
        explains: false,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Every published table belongs to an experiment of its system, and names are unique.
    #[test]
    fn what_is_published_belongs_to_an_experiment() {
        for System { name, paper, experiments, .. } in &SYSTEMS {
            let named =
                [System::named(name), System::named(paper)].map(|found| found.map(|of| of.name));
            assert_eq!(named, [Some(*name); 2]);
            for experiment in *experiments {
                let tables: toml::Table = toml::from_str(experiment.published).unwrap();
                for id in tables.keys() {
                    let known = experiments.iter().any(|experiment| experiment.id == id);
                    assert!(known, "{name} has no experiment {id}");
                }
            }
        }
    }
}
