//! The list of modelled systems: what each is called, and what it offers.

use crate::experiment::{Experiment, Sensitivity};
use crate::perturbed::{self, Perturbed};
use crate::trial::Trial;
use crate::{chpp, damq_pd, hpcl, myvia, network, smp};

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
    /// Its loads with any parameters, for sweeps.
    pub loads: &'static [Trial],
    /// Varies its parameters in a short run.
    pub sensitivity: fn() -> Result<Sensitivity, String>,
    /// What must follow when a parameter changes, and what does.
    pub perturbations: Perturbations,
    /// Whether a single operation can be followed stage by stage.
    pub explains: bool,
}

/// What must follow when a parameter of a system changes, and the measurements that show it.
#[derive(Clone, Copy)]
pub struct Perturbations {
    /// The expectations, as [`crate::perturbed`] describes.
    pub file: &'static str,
    /// Changes each parameter as a file of expectations says, and measures.
    pub run: fn(&str) -> Result<Perturbed, String>,
    /// The section of the system's page.
    pub section: fn() -> Result<String, String>,
    /// The system's page, from the top of a checkout.
    pub page: &'static str,
}

impl System {
    /// The system of this name, or of the paper of this name.
    pub fn named(name: &str) -> Option<&'static System> {
        SYSTEMS.iter().find(|system| [system.name, system.paper].contains(&name))
    }
}

/// The networks, which are no system of a paper but have parameters and a table all the same.
pub static NETWORK: Perturbations = Perturbations {
    file: network::perturbed::EXPECTED,
    run: |file| perturbed::perturbed(file, &[], &network::perturbed::PROBES),
    section: || {
        use network::perturbed::{EXPECTED, PROBES};
        perturbed::section(EXPECTED, &PROBES)
    },
    page: "docs/model.md",
};

/// Everything that has a table of perturbations, by name.
pub fn perturbed_models() -> impl Iterator<Item = (&'static str, Perturbations)> {
    let systems = SYSTEMS.iter().map(|system| (system.name, system.perturbations));
    systems.chain([("network", NETWORK)])
}

/// The perturbations of a system, or of `network`.
pub fn perturbations(name: &str) -> Option<Perturbations> {
    perturbed_models().find(|(model, _)| *model == name).map(|(_, found)| found)
}

/// The perturbations of a system's module.
macro_rules! perturbations {
    ($system:ident, $page:literal) => {
        Perturbations {
            file: $system::experiments::perturbed::EXPECTED,
            run: |file| {
                use $system::experiments::{EXPERIMENTS, perturbed::PROBES};
                perturbed::perturbed(file, &EXPERIMENTS, &PROBES)
            },
            section: || {
                use $system::experiments::perturbed::{EXPECTED, PROBES};
                perturbed::section(EXPECTED, &PROBES)
            },
            page: $page,
        }
    };
}

/// All systems, in the order of the scoreboard. Add a line here for a new one.
pub static SYSTEMS: [System; 5] = [
    System {
        name: "chpp",
        paper: "chpp-nic",
        title: "the interface, host and controller of cHPP",
        parameters: chpp::config::PROTOTYPE,
        experiments: &chpp::experiments::EXPERIMENTS,
        loads: &chpp::loads::LOADS,
        sensitivity: chpp::experiments::sensitivity,
        perturbations: perturbations!(chpp, "docs/model-chpp.md"),
        explains: true,
    },
    System {
        name: "damq-pd",
        paper: "damq-pd",
        title: "the descriptor interface of DAMQ-PD",
        parameters: damq_pd::config::PAPER,
        experiments: &damq_pd::experiments::EXPERIMENTS,
        loads: &damq_pd::loads::LOADS,
        sensitivity: damq_pd::experiments::sensitivity,
        perturbations: perturbations!(damq_pd, "docs/model-damq-pd.md"),
        explains: false,
    },
    System {
        name: "myvia",
        paper: "myvia",
        title: "MyVIA, Berkeley VIA, GM and M-VIA",
        parameters: myvia::config::PAPER,
        experiments: &myvia::experiments::EXPERIMENTS,
        loads: &myvia::loads::LOADS,
        sensitivity: myvia::experiments::sensitivity,
        perturbations: perturbations!(myvia, "docs/model-myvia.md"),
        explains: false,
    },
    System {
        name: "smp",
        paper: "smp-interconnect",
        title: "the direct link between processors",
        parameters: smp::config::RECOMMENDED,
        experiments: &smp::experiments::EXPERIMENTS,
        loads: &smp::loads::LOADS,
        sensitivity: smp::experiments::sensitivity,
        perturbations: perturbations!(smp, "docs/model-smp.md"),
        explains: false,
    },
    System {
        name: "hpcl",
        paper: "hpcl-ethernet",
        title: "the cluster of HPCL/Ethernet",
        parameters: hpcl::config::CLUSTER,
        experiments: &hpcl::experiments::EXPERIMENTS,
        loads: &hpcl::loads::LOADS,
        sensitivity: hpcl::experiments::sensitivity,
        perturbations: perturbations!(hpcl, "docs/model-hpcl.md"),
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
