//! Mappings of this process, which tell whether bytes lie in memory of a device.

/// The line of proc(5), `maps`, of the mapping that an address lies in: its range, rights and file.
///
/// # Panics
/// There is none.
#[track_caller]
pub fn of(address: usize) -> String {
    of_all(&[address])
}

/// The line of the mapping that all of these addresses lie in. It reads the list once: the kernel
/// joins mappings of other threads with this one at any time, and then its line is another.
///
/// # Panics
/// There is none, or they lie in several.
#[track_caller]
pub fn of_all(addresses: &[usize]) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("this process's mappings");
    let holds = |line: &&str| {
        let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
        let ends = range.map(|(a, b)| [a, b].map(|end| usize::from_str_radix(end, 16)));
        let Some([Ok(start), Ok(end)]) = ends else { return false };
        addresses.iter().all(|address| (start..end).contains(address))
    };
    let found = maps.lines().find(holds);
    found.unwrap_or_else(|| panic!("{addresses:x?} lie in no mapping together")).to_owned()
}
