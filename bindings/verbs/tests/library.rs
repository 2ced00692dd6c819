//! The library that programs load.

/// It has the name under which programs look for it, and all version nodes of the list.
#[test]
fn it_has_its_name_and_its_versions() {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let library = std::fs::read(folder.join("libibverbs.so")).expect("cargo built it");
    let holds = |word: &str| {
        let word = [word.as_bytes(), b"\0"].concat();
        library.windows(word.len()).any(|part| part == word)
    };
    assert!(holds("libibverbs.so.1"));
    assert!(!holds("libibverbs.so.2"), "the look can fail");
    let nodes: std::collections::BTreeSet<&str> = include_str!("../exports.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(nodes.contains("IBVERBS_1.1"), "{nodes:?}");
    for node in nodes {
        assert!(holds(node), "{node}");
    }
}
