//! What only tests need: a door for the fuzzers to what is private here, and what belongs to [namespaces](crate::namespace).

use crate::link_header::{self, Mac};
use bellwire_protocol::discovery::seek;

pub use crate::namespace::{enter_new_namespace, ip};

/// Gives bytes to what looks at frames of strangers before the protocol does: the Ethernet header, and questions and answers about the
/// places of nodes, whose check value is made right in a copy. What is understood must be understood again when it is written.
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
        if let Some((said, from)) = seek::parse(bytes) {
            let mut frame = [0; seek::FRAME_BYTES];
            seek::emit(said, from, bytes[2], &mut frame);
            assert_eq!(seek::parse(&frame), Some((said, from)));
        }
    }
}

/// The number of this thread, by which `ip link set X netns NUMBER` finds its namespace.
pub fn thread_number() -> i32 {
    // SAFETY: a system call that only answers.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}
