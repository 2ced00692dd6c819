//! Resources of a process and its host that a crash could leave behind.

use std::fs;

/// A count of resources that must be the same before and after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Residue {
    /// Open descriptors of this process: what each refers to, and the shared memory behind it, in
    /// 512-byte blocks.
    pub descriptors: Vec<(String, u64)>,
    /// Mappings of shared memory in this process: the name of each, and its bytes.
    pub mappings: Vec<(String, usize)>,
    /// Names in `/dev/shm` that could be ours, and Unix sockets with our job's name.
    pub names: Vec<String>,
}

impl Residue {
    /// Counts now. `job` is part of the names of our sockets.
    pub fn count(job: &str) -> Residue {
        let maps = fs::read_to_string("/proc/self/maps").expect("procfs");
        let mut mappings: Vec<_> = maps.lines().filter_map(shared_mapping).collect();
        mappings.sort();
        let sockets = fs::read_to_string("/proc/net/unix").expect("procfs");
        let sockets = sockets.lines().filter(|line| names(line, job)).map(str::to_owned);
        let files = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let files = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let files = files.filter(|name| name.contains("bellwire") || names(name, job));
        Residue { descriptors: descriptors(), mappings, names: sockets.chain(files).collect() }
    }
}

fn descriptors() -> Vec<(String, u64)> {
    use std::os::linux::fs::MetadataExt;
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/self/fd").expect("procfs").flatten() {
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        // Without the socket's inode number, which always differs.
        let target = target.to_string_lossy();
        let kind = target.split('[').next().unwrap_or_default().to_owned();
        // Other files, such as a log of all output, grow by what other processes write.
        let is_memory = kind.starts_with("/memfd:") || kind.starts_with("/dev/shm/");
        let blocks = match fs::metadata(entry.path()) {
            Ok(file) if is_memory => file.st_blocks(),
            _ => 0,
        };
        // The descriptor of this listing does not count.
        if !kind.starts_with("/proc/") {
            found.push((kind, blocks));
        }
    }
    found.sort();
    found
}

/// Name and bytes of a mapping, if it is of shared memory.
fn shared_mapping(line: &str) -> Option<(String, usize)> {
    let (_, name) = line.split_once("/memfd:")?;
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let [start, end] = [start, end].map(|number| usize::from_str_radix(number, 16).ok());
    Some((name.to_owned(), end? - start?))
}

/// Whether `line` names `job`, and not another job with the same beginning.
fn names(line: &str, job: &str) -> bool {
    line.match_indices(job).any(|(at, _)| {
        let next = line[at + job.len()..].chars().next();
        next.is_none_or(|next| !next.is_alphanumeric())
    })
}
