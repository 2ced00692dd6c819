//! What every device must do, written against the public API only.
//!
//! A device runs all of it with a few lines in a file of `tests/`:
//!
//! ```
//! use bellwire_testkit::conformance::Named;
//!
//! fn shm() -> Named {
//!     Named::new("shm")
//! }
//! bellwire_testkit::conformance_tests!(shm);
//! // If other processes of the host can open the device by its name:
//! bellwire_testkit::conformance_host_tests!(shm);
//! # fn main() {}
//! ```
//!
//! Each check becomes a test of its own, `TOPIC::CHECK`. A check panics when it fails, and never
//! hangs: its watchdog reports which side waits for what. Checks run in parallel, each with a
//! fixture of its own, and never measure how fast anything is.
//!
//! | topic | what its checks are about |
//! |---|---|
//! | [`message`] | sends and receives: sizes, kinds of memory, alignment, completions |
//! | [`onesided`] | puts, gets, chains, atomics, events |
//! | [`refusal`] | refusals when a descriptor is posted |
//! | [`fault`] | accepted descriptors that fail: keys, bounds, rights, absent peers |
//! | [`order`] | order |
//! | [`flow`] | flow control |
//! | [`batch`] | messages that are posted together |
//! | [`inbox`] | messages that a program takes in place |
//! | [`channel`] | channels |
//! | [`connection`] | connections |
//! | [`function`] | functions of a device |
//! | [`object`] | handles, limits, exhaustion |
//! | [`scale`] | thousands of queue pairs, hundreds of peers |
//! | [`waiting`] | wait modes and wake-ups |
//! | [`thread`] | several threads |
//! | [`fork`] | forked children |
//! | [`host`] | devices of one host: functions as configured, weights, counters of refusals |
//! | [`process`] | several processes |

pub mod batch;
pub mod bytes;
pub mod channel;
pub mod child;
pub mod connection;
pub mod fault;
pub mod flow;
pub mod fork;
pub mod function;
pub mod host;
pub mod inbox;
pub mod message;
pub mod object;
pub mod onesided;
pub mod order;
pub mod patience;
pub mod process;
pub mod refusal;
pub mod scale;
pub mod stage;
pub mod thread;
pub mod waiting;

pub use patience::Patience;
pub use stage::{Node, Stage};

use crate::loopback::{Fabric, FabricOptions};
use bellwire::{Buffer, Device, DeviceOptions, Function, FunctionOptions, Result};
use std::sync::atomic::{AtomicU32, Ordering};

/// Provides the nodes of a check: one network that nobody else uses.
pub trait Fixture: Sync {
    /// Opens a further node.
    fn open(&self, options: &DeviceOptions) -> Result<Device>;

    /// Opens function 0 of such a node.
    fn open_function(&self, device: &Device, options: &FunctionOptions) -> Result<Function> {
        device.open_function_with(0, options)
    }

    /// The name by which other processes open further nodes, if they can.
    fn name(&self) -> Option<&str> {
        None
    }

    /// Whether a sent message is in flight for a while before it is in the peer's memory.
    fn delivers_later(&self) -> bool {
        false
    }

    /// Panics if a device whose first function was just opened is not the one that this fixture
    /// tests, for instance after a silent fallback.
    fn assert_opened(&self, _: &Device) {}

    /// Panics if something went by another way than the one that this fixture tests. A node's
    /// counters tell. [`Stage`] asks for each of its nodes when it ends.
    fn assert_way(&self, _: &Node) {}
}

/// A device that is opened by name.
#[derive(Debug)]
pub struct Named(String);

impl Named {
    /// A network of this kind (`shm`) that no other test uses.
    pub fn new(kind: &str) -> Named {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only uniqueness matters.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Named(format!("{kind}:test-{}-{count}", std::process::id()))
    }
}

impl Fixture for Named {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        Device::open_with(&self.0, options)
    }

    fn name(&self) -> Option<&str> {
        Some(&self.0)
    }
}

/// The device inside one process.
pub struct Loopback {
    fabric: Fabric,
    nodes: AtomicU32,
}

impl Loopback {
    /// A fabric with as many queue pairs and regions as real devices have.
    pub fn new(options: FabricOptions) -> Loopback {
        let options = FabricOptions { queue_pairs: 16_384, regions: 4_096, ..options };
        Loopback { fabric: Fabric::new(options), nodes: AtomicU32::new(0) }
    }
}

impl Fixture for Loopback {
    fn open(&self, _: &DeviceOptions) -> Result<Device> {
        Ok(self.fabric.device(self.nodes.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Hands a list of topics and their checks to another macro. A check that is not in the lists fails
/// a test of this crate.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_checks {
    ($then:ident $fixture:ident) => {
        $crate::$then! { $fixture
            message: inline_data_of_every_size every_size_and_memory a_short_message_leaves_the_rest
                completions_tell_everything buffers_come_back_once unsignaled_sends_are_silent early_messages_wait
                shared_receives_serve_many_queue_pairs completion_queues_are_shared_or_split a_node_talks_to_itself;
            onesided: put_every_size_and_memory get_every_size_and_memory puts_can_be_inline_and_silent
                chains_are_cut_anew atomics_change_one_word atomics_from_many_nodes_add_up events_tell_of_puts
                connected_pairs_reach_memory_too memory_is_shared_both_ways regions_come_and_go
                polls_with_completions_look;
            refusal: unequal_sums bad_chains out_of_range too_long destinations full_queues foreign_memory
                destinations_of_channels;
            fault: wrong_keys stale_keys forged_lengths missing_rights a_chain_with_one_bad_part
                long_messages_are_truncated no_such_queue_pair nobody_there
                who_only_sends_hears_of_the_end;
            order: short_messages short_and_long_messages completions_of_short_sends puts_before_messages
                many_queue_pairs_interleaved;
            flow: a_receiver_that_does_not_receive a_slow_receiver a_stopped_queue_pair_holds_up_nobody_else
                many_senders_to_one_receiver a_full_completion_queue_loses_nothing operations_under_way_are_limited
                floods_both_ways;
            batch: messages_keep_their_order a_refusal_leaves_the_rest a_small_completion_queue_takes_what_fits;
            inbox: messages_keep_their_order other_queues_are_not_shown;
            channel: the_same_number_talks a_second_owner_is_refused one_wait_for_all_peers barriers_and_exchanges
                strangers_are_not_heard;
            connection: connect_talk_disconnect connect_waits rejections deadlines a_late_listener_is_found
                a_peer_that_goes_away a_target_that_goes_away destroying_gives_everything_back;
            function: eight_by_default closing_one_leaves_the_others functions_are_isolated counters_are_separate
                options_are_checked functions_can_be_reopened;
            object: stale_and_foreign_handles things_in_use_stay limits_are_clear_errors empty_regions
                numbers_are_not_reused anything_can_be_dropped;
            scale: thousands_of_queue_pairs hundreds_of_peers;
            waiting: sleepers_sleep no_wake_up_is_lost_blocking no_wake_up_is_lost_adapting everything_wakes
                a_sleeping_sender_goes_on a_polling_sender_goes_on the_descriptor_composes_with_poll an_armed_descriptor_is_silent;
            thread: devices_are_shared_and_functions_move two_functions_in_two_threads two_nodes_in_two_threads
                many_threads_to_one;
            fork: a_forked_child_is_refused;
        }
    };
}

/// Like `conformance_checks!`, for devices that the processes of a host open by name.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_host_checks {
    ($then:ident $fixture:ident) => {
        $crate::$then! { $fixture
            host: functions_as_configured weights_share_the_receiver equal_weights_share_equally
                wrong_keys_are_counted absurd_regions;
        }
    };
}

/// Like `conformance_checks!`, for devices that reach other processes.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_process_checks {
    ($then:ident $fixture:ident) => {
        $crate::$then! { $fixture
            process: messages memory many_processes_to_one sleepers_wake_each_other connections a_killed_peer a_silent_peer
                node_numbers_are_owned forked_children_open_their_own;
        }
    };
}

/// Makes a test of each check; `$fixture` names a function that returns a [`Fixture`].
#[macro_export]
macro_rules! conformance_tests {
    ($fixture:ident) => {
        $crate::conformance_checks! { conformance_test_functions $fixture }
    };
}

/// Makes a test of each check that needs several processes, or functions that share a host's
/// device.
#[macro_export]
macro_rules! conformance_host_tests {
    ($fixture:ident) => {
        $crate::conformance_host_checks! { conformance_test_functions $fixture }
        $crate::conformance_process_checks! { conformance_test_functions $fixture }
    };
}

/// For a device inside one process: makes a test of each check. For each check with several
/// processes it makes a test that prints that it is left out, and why.
#[macro_export]
macro_rules! conformance_tests_of_one_process {
    ($fixture:ident) => {
        $crate::conformance_checks! { conformance_test_functions $fixture }
        $crate::conformance_process_checks! { conformance_left_out $fixture }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_left_out {
    ($fixture:ident $($topic:ident: $($check:ident)*;)*) => {$(
        mod $topic {
            $(
                #[test]
                #[ignore = "the device exists inside one process, and this check starts another"]
                fn $check() {
                    $crate::conformance::run($crate::conformance::$topic::$check, &super::$fixture());
                }
            )*
        }
    )*};
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_test_functions {
    ($fixture:ident $($topic:ident: $($check:ident)*;)*) => {$(
        mod $topic {
            $(
                #[test]
                fn $check() {
                    $crate::conformance::run($crate::conformance::$topic::$check, &super::$fixture());
                }
            )*
        }
    )*};
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_check_table {
    (NONE $($topic:ident: $($check:ident)*;)*) => {
        &[$($((concat!(stringify!($topic), "::", stringify!($check)), $topic::$check as Check),)*)*]
    };
}

/// A check.
pub type Check = fn(&dyn Fixture);

/// The check of this name, `TOPIC::CHECK`.
pub fn find(name: &str) -> Option<Check> {
    const CHECKS: [&[(&str, Check)]; 3] = [
        crate::conformance_checks!(conformance_check_table NONE),
        crate::conformance_host_checks!(conformance_check_table NONE),
        crate::conformance_process_checks!(conformance_check_table NONE),
    ];
    CHECKS.into_iter().flatten().find(|(known, _)| *known == name).map(|(_, check)| *check)
}

/// Runs one check.
pub fn run(check: Check, fixture: &dyn Fixture) {
    #[cfg(feature = "canaries")]
    let _planted = crate::plant_from_environment();
    check(fixture);
}

#[cfg(test)]
mod tests {
    use super::find;

    /// Every public check is in the lists under its own topic, so that every device runs it.
    #[test]
    fn no_check_is_left_out() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance");
        let mut found = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let topic = path.file_stem().unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines().filter_map(|line| line.strip_prefix("pub fn ")) {
                if let Some((name, _)) = line.split_once("(fixture: &dyn Fixture)") {
                    let check = format!("{topic}::{name}");
                    assert!(find(&check).is_some(), "{check} is in none of the lists of mod.rs");
                    found += 1;
                }
            }
        }
        assert!(found > 80, "only {found} checks were found");
        assert!(find("inbox::a_refusal_leaves_the_rest").is_none(), "that is a check of batch");
    }
}
