//! For tests only: access for the fuzzers to private parsers, and helpers for
//! [namespaces](crate::namespace).

use crate::agent::{AgentClient, Request, Want};
use crate::interface::Interface;
use crate::link_header::{self, Mac};
use bellwire_device::Error;
use bellwire_protocol::discovery::seek;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

pub use crate::namespace::{enter_new_namespace, ip};

/// The agent at `path`, for programs that follow no rule of the device.
pub struct AskedAgent(pub PathBuf);

impl AskedAgent {
    /// Asks once for a socket of `function` on the interface called `name`, without its name.
    ///
    /// # Errors
    /// Why there is none.
    pub fn packet_socket(&self, name: &str, function: u8) -> Result<OwnedFd, Error> {
        let interface = Interface::find(name)
            .map_err(|cause| Error::System { what: "find an interface", cause })?;
        let client = AgentClient { path: self.0.clone() };
        client
            .ask_for_packet(&interface, function)
            .map_err(|trouble| trouble.into_error("eth", function))
    }

    /// The request for it, as it is sent.
    pub fn request(name: &str, index: u32, function: u8) -> Vec<u8> {
        let interface = name.to_owned();
        Request { want: Want::Packet, function, index, interface }.to_bytes().to_vec()
    }
}

/// Feeds bytes to the parsers that see frames of strangers before the protocol does. These parse
/// the Ethernet header, and questions and answers about nodes' places, whose check value is
/// corrected in a copy. What is understood must be understood again when it is written.
pub fn parse_strangers(bytes: &[u8]) {
    if let Some((to, from, payload)) = link_header::parse(bytes) {
        let mut frame = bytes.to_vec();
        link_header::emit(&mut frame, to, from);
        assert_eq!(frame, bytes);
        assert_eq!(Mac::parse(&to.to_string()), Some(to));
        assert_eq!(payload.len() + link_header::LINK_HEADER_BYTES, bytes.len());
    }
    let mut sealed = bytes.to_vec();
    if let Some(frame) = sealed.get_mut(..seek::FRAME_BYTES) {
        bellwire_wire::frame::check::seal(frame).expect("room for the check value");
    }
    for bytes in [bytes, &sealed] {
        if let Some((what, from)) = seek::parse(bytes) {
            let mut frame = [0; seek::FRAME_BYTES];
            seek::emit(what, from, bytes[2], &mut frame);
            assert_eq!(seek::parse(&frame), Some((what, from)));
        }
    }
}

/// Runs a test that a fault may make endless, and fails if it has not ended after some seconds.
#[cfg(test)]
pub(crate) fn within_limit(test: impl FnOnce() + Send + 'static) {
    let (told, ends) = std::sync::mpsc::channel();
    let running = std::thread::spawn(move || {
        test();
        let _ = told.send(());
    });
    // The channel is also closed by a test that fails.
    let ended = ends.recv_timeout(std::time::Duration::from_secs(8));
    assert_ne!(ended, Err(std::sync::mpsc::RecvTimeoutError::Timeout), "it does not end");
    running.join().expect("the test passes");
}

/// The id of this thread, by which `ip link set X netns NUMBER` finds its namespace.
pub fn thread_number() -> i32 {
    // SAFETY: a query without side effects.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}
