//! Mappings of this process, which tell whether bytes lie in memory of a device.

/// The line of proc(5), `maps`, of the mapping that an address lies in: its range, rights and file.
///
/// # Panics
/// There is none.
#[track_caller]
pub fn of(address: usize) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("this process's mappings");
    let holds = |line: &&str| {
        let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
        let ends = range.map(|(a, b)| [a, b].map(|end| usize::from_str_radix(end, 16)));
        matches!(ends, Some([Ok(start), Ok(end)]) if (start..end).contains(&address))
    };
    maps.lines().find(holds).unwrap_or_else(|| panic!("{address:#x} is not mapped")).to_owned()
}
