//! What a file is that is to be run: whether its loader takes the libraries that it is given.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program, as its loader sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Executable {
    /// A script, or nothing that can be read.
    Other,
    /// It has all its libraries inside.
    Static,
    /// It gets other rights when it starts, and its loader ignores the user's libraries.
    Privileged,
    /// A program of 32 bits, or for another processor.
    OtherMachine,
    /// A program whose loader looks for libraries.
    Dynamic {
        /// It names one of those that were asked for; others may be loaded later.
        links: bool,
    },
}

/// Program headers, and bytes of a table, that are read at most.
const HEADERS: u16 = 256;
const TABLE_BYTES: u64 = 1 << 20;

/// The file of a program, where the shell would find it.
pub fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 || program.is_absolute() {
        return program.exists().then(|| program.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|file| file.is_file())
}

impl Executable {
    /// Looks at a file. `libraries` are the names that it may link.
    pub fn of(file: &Path, libraries: &[&str]) -> Executable {
        /// Bits of a mode: set-user-ID and set-group-ID.
        const SETS_IDENTITY: u32 = 0o6000;
        let Ok(mut open) = File::open(file) else { return Executable::Other };
        let mode = open.metadata().map_or(0, |known| known.permissions().mode());
        let found = read(&mut open, libraries).unwrap_or(Executable::Other);
        match found {
            Executable::Dynamic { .. } if mode & SETS_IDENTITY != 0 => Executable::Privileged,
            found => found,
        }
    }
}

/// Reads `length` bytes at `offset`.
fn part(file: &mut File, offset: u64, length: u64) -> Option<Vec<u8>> {
    if length > TABLE_BYTES {
        return None;
    }
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = vec![0; length as usize];
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut word = [0; 8];
    word[..N].copy_from_slice(bytes.get(at..at + N)?);
    Some(u64::from_le_bytes(word))
}

/// Reads the headers of an ELF file of x86-64 (System V ABI, gABI chapters 4 and 5).
fn read(file: &mut File, libraries: &[&str]) -> Option<Executable> {
    const X86_64: u64 = 62;
    const HEADER_BYTES: usize = 56;
    let (load, dynamic, interpreter) = (1, 2, 3);
    let head = part(file, 0, 64)?;
    if head[..4] != *b"\x7fELF" {
        return None;
    }
    // 64 bits, little-endian.
    if head[4..6] != [2, 1] || word::<2>(&head, 18)? != X86_64 {
        return Some(Executable::OtherMachine);
    }
    let (start, count) = (word::<8>(&head, 32)?, word::<2>(&head, 56)? as u16);
    if count > HEADERS || word::<2>(&head, 54)? != HEADER_BYTES as u64 {
        return None;
    }
    let table = part(file, start, u64::from(count) * HEADER_BYTES as u64)?;
    let headers: Vec<&[u8]> = table.chunks_exact(HEADER_BYTES).collect();
    let of = |kind| headers.iter().find(move |header| word::<4>(header, 0) == Some(kind));
    if of(interpreter).is_none() {
        return Some(Executable::Static);
    }
    let links = of(dynamic).and_then(|header| {
        let entries = part(file, word::<8>(header, 8)?, word::<8>(header, 32)?)?;
        let entries =
            entries.chunks_exact(16).map(|entry| (word::<8>(entry, 0), word::<8>(entry, 8)));
        let entries: Vec<(u64, u64)> = entries.filter_map(|(tag, value)| tag.zip(value)).collect();
        let (needed, strings, bytes) = (1, 5, 10);
        let value =
            |wanted| entries.iter().find(|(tag, _)| *tag == wanted).map(|(_, value)| *value);
        let address = value(strings)?;
        // Where the address lies in the file.
        let loaded = headers.iter().filter(|header| word::<4>(header, 0) == Some(load));
        let offset = loaded.filter_map(|header| {
            let (offset, base) = (word::<8>(header, 8)?, word::<8>(header, 16)?);
            let inside = address.checked_sub(base)?;
            (inside < word::<8>(header, 32)?).then(|| offset.checked_add(inside)).flatten()
        });
        let names = part(file, { offset }.next()?, value(bytes)?)?;
        let mut wanted = entries.iter().filter(|(tag, _)| *tag == needed);
        Some(wanted.any(|(_, at)| {
            let name = names.get(*at as usize..).unwrap_or(&[]).split(|byte| *byte == 0).next();
            libraries.iter().any(|library| name == Some(library.as_bytes()))
        }))
    });
    Some(Executable::Dynamic { links: links.unwrap_or(false) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test program is dynamic, and says which libraries it links.
    #[test]
    fn a_dynamic_program_is_read() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(Executable::of(&own, &["libc.so.6"]), Executable::Dynamic { links: true });
        assert_eq!(Executable::of(&own, &["libc.so.7"]), Executable::Dynamic { links: false });
    }

    /// Copies of it that are altered are what their headers say, and cut ones are read without
    /// harm.
    #[test]
    fn altered_programs_are_read() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = std::env::temp_dir().join(format!("bellwire-elf-{}", std::process::id()));
        let kind = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            Executable::of(&file, &["libc.so.6"])
        };
        let start = u64::from_le_bytes(own[32..40].try_into().unwrap()) as usize;
        let count = usize::from(u16::from_le_bytes([own[56], own[57]]));
        let mut without_loader = own[..4096.max(start + count * 56)].to_vec();
        for header in without_loader[start..][..count * 56].chunks_exact_mut(56) {
            if header[0] == 3 {
                header[0] = 0;
            }
        }
        assert_eq!(kind(&without_loader), Executable::Static);
        let mut other = without_loader.clone();
        other[18] = 183;
        assert_eq!(kind(&other), Executable::OtherMachine);
        other[..4].copy_from_slice(b"#!/b");
        assert_eq!(kind(&other), Executable::Other);
        for length in [0, 3, 63, 64, start + 10] {
            assert_eq!(kind(&own[..length]), Executable::Other, "{length} bytes");
        }
        assert_eq!(kind(&own[..start + count * 56]), Executable::Dynamic { links: false });
        std::fs::remove_file(&file).unwrap();
        assert_eq!(Executable::of(&file, &[]), Executable::Other);
    }

    /// A program is found where the shell finds it.
    #[test]
    fn programs_are_found() {
        assert!(find(Path::new("sh")).is_some_and(|file| file.ends_with("sh")));
        assert_eq!(find(Path::new("/bin/sh")), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find(Path::new("no-such-program-of-bellwire")), None);
        assert_eq!(find(Path::new("./no-such-program-of-bellwire")), None);
    }
}
