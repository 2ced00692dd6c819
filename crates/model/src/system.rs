//! The list of modelled systems: what each is called, and what it offers.

use crate::experiment::{Experiment, Sensitivity};
use crate::perturbed::{self, Perturbed};
use crate::trial::Trial;
use crate::{chpp, damq_pd, hpcl, myvia, network, smp};

/// A modelled system.
#[derive(Clone, Copy)]
pub struct System {
    /// Its name, which is also that of its module.
    pub name: &'static str,
    /// The paper that describes it, if one does.
    pub paper: Option<Paper>,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Its parameters as TOML, with the source of each.
    pub parameters: &'static str,
    /// Its loads with any parameters, for sweeps.
    pub loads: &'static [Trial],
    /// What must follow when a parameter changes, and what does.
    pub perturbations: Perturbations,
    /// Whether a single operation can be followed stage by stage.
    pub explains: bool,
}

/// What a system has of its paper.
#[derive(Clone, Copy)]
pub struct Paper {
    /// The name of the paper on the command line.
    pub name: &'static str,
    /// The experiments of the paper.
    pub experiments: &'static [Experiment],
    /// Varies the parameters in a short run, and says which of them the paper leaves open.
    pub sensitivity: fn() -> Result<Sensitivity, String>,
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
    ///
    /// # Errors
    /// The names that there are.
    pub fn named(name: &str) -> Result<&'static System, String> {
        let is_named = |system: &&System| {
            system.name == name || system.paper.is_some_and(|paper| paper.name == name)
        };
        SYSTEMS.iter().find(is_named).ok_or_else(|| {
            let names: Vec<&str> = SYSTEMS.iter().map(|system| system.name).collect();
            format!("there are {}", names.join(", "))
        })
    }

    /// The systems that a paper describes.
    pub fn of_papers() -> impl Iterator<Item = (&'static System, Paper)> {
        SYSTEMS.iter().filter_map(|system| Some((system, system.paper?)))
    }
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
pub static SYSTEMS: [System; 6] = [
    System {
        name: "chpp",
        paper: Some(Paper {
            name: "chpp-nic",
            experiments: &chpp::experiments::EXPERIMENTS,
            sensitivity: chpp::experiments::sensitivity,
        }),
        title: "the interface, host and controller of cHPP",
        parameters: chpp::config::PROTOTYPE,
        loads: &chpp::loads::LOADS,
        perturbations: perturbations!(chpp, "docs/model-chpp.md"),
        explains: true,
    },
    System {
        name: "damq-pd",
        paper: Some(Paper {
            name: "damq-pd",
            experiments: &damq_pd::experiments::EXPERIMENTS,
            sensitivity: damq_pd::experiments::sensitivity,
        }),
        title: "the descriptor interface of DAMQ-PD",
        parameters: damq_pd::config::PAPER,
        loads: &damq_pd::loads::LOADS,
        perturbations: perturbations!(damq_pd, "docs/model-damq-pd.md"),
        explains: false,
    },
    System {
        name: "myvia",
        paper: Some(Paper {
            name: "myvia",
            experiments: &myvia::experiments::EXPERIMENTS,
            sensitivity: myvia::experiments::sensitivity,
        }),
        title: "MyVIA, Berkeley VIA, GM and M-VIA",
        parameters: myvia::config::PAPER,
        loads: &myvia::loads::LOADS,
        perturbations: perturbations!(myvia, "docs/model-myvia.md"),
        explains: false,
    },
    System {
        name: "smp",
        paper: Some(Paper {
            name: "smp-interconnect",
            experiments: &smp::experiments::EXPERIMENTS,
            sensitivity: smp::experiments::sensitivity,
        }),
        title: "the direct link between processors",
        parameters: smp::config::RECOMMENDED,
        loads: &smp::loads::LOADS,
        perturbations: perturbations!(smp, "docs/model-smp.md"),
        explains: false,
    },
    System {
        name: "hpcl",
        paper: Some(Paper {
            name: "hpcl-ethernet",
            experiments: &hpcl::experiments::EXPERIMENTS,
            sensitivity: hpcl::experiments::sensitivity,
        }),
        title: "the cluster of HPCL/Ethernet",
        parameters: hpcl::config::CLUSTER,
        loads: &hpcl::loads::LOADS,
        perturbations: perturbations!(hpcl, "docs/model-hpcl.md"),
        explains: false,
    },
    System {
        name: "network",
        paper: None,
        title: "routers in any topology",
        parameters: network::PARAMETERS,
        loads: &network::loads::LOADS,
        perturbations: Perturbations {
            file: network::perturbed::EXPECTED,
            run: |file| perturbed::perturbed(file, &[], &network::perturbed::PROBES),
            section: || {
                use network::perturbed::{EXPECTED, PROBES};
                perturbed::section(EXPECTED, &PROBES)
            },
            page: "docs/model.md",
        },
        explains: false,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Every published table belongs to an experiment of its system, and names are unique.
    #[test]
    fn what_is_published_belongs_to_an_experiment() {
        for (System { name, .. }, Paper { name: paper, experiments, .. }) in System::of_papers() {
            for by in [*name, paper] {
                assert_eq!(System::named(by).map(|found| found.name), Ok(*name));
            }
            for experiment in experiments {
                let tables: toml::Table = toml::from_str(experiment.published).unwrap();
                for id in tables.keys() {
                    let known = experiments.iter().any(|experiment| experiment.id == id);
                    assert!(known, "{name} has no experiment {id}");
                }
            }
        }
    }

    /// A name that nothing has is refused with those that there are.
    #[test]
    fn an_unknown_name_is_refused() {
        let why = System::named("vax").map(|found| found.name).unwrap_err();
        assert_eq!(why, "there are chpp, damq-pd, myvia, smp, hpcl, network");
    }
}
