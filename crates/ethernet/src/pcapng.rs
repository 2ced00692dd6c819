//! Files that Wireshark reads: what a device sent and received, with directions and timestamps in
//! nanoseconds.
//!
//! The format is that of `bellwire_wire::pcapng`: a section header, one interface, then a block for
//! each frame.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bellwire_wire::pcapng::{self, Resolution};

pub use bellwire_wire::pcapng::{Direction, LinkType};

/// A file that is being written, shared by the functions of a device.
pub struct Capture(Mutex<BufWriter<File>>);

impl Capture {
    /// Creates or truncates the file and writes its section header. `interface` is a name for
    /// people.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(path: &Path, link: LinkType, interface: &str) -> io::Result<Capture> {
        let mut file = BufWriter::new(File::create(path)?);
        let mut beginning = Vec::new();
        pcapng::section(&mut beginning, "Bellwire");
        pcapng::interface(&mut beginning, link, interface, Resolution::Nanoseconds);
        file.write_all(&beginning)?;
        Ok(Capture(Mutex::new(file)))
    }

    /// Adds a frame: `header`, which the device made up or knows, and the frame itself. A full disk
    /// ends the capture, not the device.
    pub fn frame(&self, direction: Direction, header: &[u8], frame: &[u8]) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut block = Vec::with_capacity(44 + header.len() + frame.len());
        let at = (0, now.as_nanos() as u64);
        pcapng::packet(&mut block, at, Some(direction), (header, frame));
        let _ = self.file().write_all(&block);
    }

    /// Flushes the buffer to the file.
    pub fn flush(&self) {
        let _ = self.file().flush();
    }

    fn file(&self) -> std::sync::MutexGuard<'_, BufWriter<File>> {
        // A panic elsewhere truncates one block at most, and readers report that.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two length fields of each block agree. Frames are stored whole, with their headers.
    #[test]
    fn blocks_add_up() {
        let path = std::env::temp_dir().join(format!("bellwire-{}.pcapng", std::process::id()));
        let capture = Capture::create(&path, LinkType::Ethernet, "veth0").unwrap();
        for length in 0..9 {
            capture.frame(Direction::Sent, &[0xaa; 14], &vec![0x55; length]);
        }
        capture.flush();
        let file = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let (mut at, mut kinds) = (0, Vec::new());
        while at < file.len() {
            let length = word(at + 4) as usize;
            assert_eq!(word(at + length - 4) as usize, length);
            kinds.push(word(at));
            if word(at) == 6 {
                let frame = &file[at + 28..][..word(at + 20) as usize];
                assert_eq!(frame[..14], [0xaa; 14]);
                assert!(frame[14..].iter().all(|&byte| byte == 0x55));
                assert_eq!(frame.len() - 14, kinds.len() - 3);
            }
            at += length;
        }
        assert_eq!(kinds[..2], [0x0a0d_0d0a, 1]);
        assert_eq!(kinds[2..], [6; 9]);
    }
}
