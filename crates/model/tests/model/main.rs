//! Tests of the models, one module per subject, written against the public API only. One program,
//! because twenty took minutes to build.

mod chpp_blocks;
mod chpp_checks;
mod chpp_core_gates;
mod chpp_crossbar;
mod chpp_experiments;
mod chpp_fetch_gates;
mod chpp_functions;
mod chpp_gates;
mod chpp_host_gates;
mod chpp_io;
mod chpp_link_nic_gates;
mod chpp_links;
mod chpp_nic_gates;
mod chpp_operation_gates;
mod chpp_operations;
mod chpp_quad_gates;
mod chpp_read_gates;
mod chpp_records;
mod chpp_send_gates;
mod chpp_software;
mod chpp_times;
mod chpp_workload;
mod chpp_write_gates;
mod core_path;
mod damq_pd;
mod damq_pd_experiments;
#[cfg(feature = "canaries")]
mod draws;
mod goal;
mod hpcl;
mod hpcl_experiments;
mod limit;
#[allow(dead_code, reason = "lock-step looks at more")]
mod link_nic_path;
mod loggp;
mod myvia;
mod myvia_experiments;
mod myvia_times;
mod networks;
#[allow(dead_code, reason = "lock-step looks at more")]
mod nic_path;
mod oracle;
mod perturbed;
mod port_path;
mod published;
mod queues;
mod smp_blocks;
mod smp_coherence;
mod smp_controllers;
mod smp_experiments;
mod smp_link;
mod smp_link_gates;
#[allow(dead_code, reason = "lock-step looks at more")]
mod smp_path;
mod smp_port_gates;
mod smp_system;
mod support;
mod switching;
