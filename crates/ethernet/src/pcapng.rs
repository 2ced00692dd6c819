//! Files that Wireshark reads: what a device sent and received, with nanoseconds and directions.
//!
//! The format is pcapng (IETF draft-ietf-opsawg-pcapng, sections 4.1 to 4.3): a section header, one interface, then a block for
//! each frame.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// What the frames of a file begin with (tcpdump.org/linktypes.html).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum LinkType {
    /// An Ethernet header.
    Ethernet = 1,
    /// An IP header of either version.
    Ip = 101,
}

/// Which way a frame went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To us.
    Received = 1,
    /// From us.
    Sent = 2,
}

/// A file that is being written, shared by the functions of a device.
pub struct Capture(Mutex<BufWriter<File>>);

impl Capture {
    /// Creates the file, or empties it, and writes its beginning. `interface` is a name for people.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(path: &Path, link: LinkType, interface: &str) -> io::Result<Capture> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&beginning(link, interface))?;
        Ok(Capture(Mutex::new(file)))
    }

    /// Adds a frame: `header`, which the device made up or knows, and the frame itself. A full disk ends the capture, not the
    /// device.
    pub fn frame(&self, direction: Direction, header: &[u8], frame: &[u8]) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let block = frame_block(now.as_nanos() as u64, direction, header, frame);
        let _ = self.file().write_all(&block);
    }

    /// Writes what is still in memory to the file.
    pub fn flush(&self) {
        let _ = self.file().flush();
    }

    fn file(&self) -> std::sync::MutexGuard<'_, BufWriter<File>> {
        // A panic elsewhere leaves at most a block cut off, which readers report.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A block: type, length, body in multiples of four bytes, length again.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = 12 + body.len().next_multiple_of(4);
    let mut block = Vec::with_capacity(length);
    block.extend(kind.to_le_bytes());
    block.extend((length as u32).to_le_bytes());
    block.extend(body);
    block.resize(length - 4, 0);
    block.extend((length as u32).to_le_bytes());
    block
}

/// An option of a block: code, length, value in multiples of four bytes.
fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = [code.to_le_bytes(), (value.len() as u16).to_le_bytes()].concat();
    option.extend(value);
    option.resize(option.len().next_multiple_of(4), 0);
    option
}

fn beginning(link: LinkType, interface: &str) -> Vec<u8> {
    const SECTION: u32 = 0x0a0d_0d0a;
    const BYTE_ORDER: u32 = 0x1a2b_3c4d;
    const INTERFACE: u32 = 1;
    let mut section = BYTE_ORDER.to_le_bytes().to_vec();
    // Version 1.0, length of the section not known.
    section.extend([1, 0, 0, 0]);
    section.extend(u64::MAX.to_le_bytes());
    section.extend(option(4, b"Bellwire"));
    section.extend(option(0, &[]));
    let mut description = (link as u16).to_le_bytes().to_vec();
    // Reserved; no limit to a frame's length.
    description.extend([0; 6]);
    description.extend(option(2, interface.as_bytes()));
    // Times in units of 10^-9 s.
    description.extend(option(9, &[9]));
    description.extend(option(0, &[]));
    [block(SECTION, &section), block(INTERFACE, &description)].concat()
}

fn frame_block(time_ns: u64, direction: Direction, header: &[u8], frame: &[u8]) -> Vec<u8> {
    const ENHANCED_PACKET: u32 = 6;
    let length = (header.len() + frame.len()) as u32;
    let mut body = Vec::with_capacity(40 + length as usize);
    for word in [0, (time_ns >> 32) as u32, time_ns as u32, length, length] {
        body.extend(word.to_le_bytes());
    }
    body.extend(header);
    body.extend(frame);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(option(2, &(direction as u32).to_le_bytes()));
    body.extend(option(0, &[]));
    block(ENHANCED_PACKET, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file consists of blocks whose lengths agree at both ends, and frames stand in it with their headers, whole.
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
