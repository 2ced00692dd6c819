//! `bellwire key`: makes, shows and changes key files.

mod support;

use std::os::unix::fs::PermissionsExt;
use support::{Folder, bellwire, run};

/// Two hosts make keys, list each other and see it. The files are private, and the secret is never
/// printed.
#[test]
fn hosts_list_each_other() {
    let place = Folder::new("key");
    let path = |name: &str| place.path().join(name);
    let [near, far] = ["near", "far"].map(|name| {
        let made = run(bellwire().args(["key", "new", "--json"]).arg(path(name)));
        assert_eq!(made.code, 0, "{}", made.stderr);
        let mode = path(name).metadata().expect("it was made").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let told: serde_json::Value = serde_json::from_str(&made.stdout).expect("JSON");
        told["public"].as_str().expect("a key").to_owned()
    });
    assert_ne!(near, far);
    for (name, other) in [("near", &far), ("far", &near)] {
        for peer in ["old name", "other"] {
            let listed =
                run(bellwire().args(["key", "authorize"]).arg(path(name)).args([other, peer]));
            assert_eq!((listed.code, &*listed.stderr), (0, ""));
        }
        let shown = run(bellwire().args(["key", "show"]).arg(path(name)));
        assert!(shown.stdout.contains(&format!("{other} other")), "{}", shown.stdout);
        assert!(!shown.stdout.contains("old name"), "{}", shown.stdout);
        let text = std::fs::read_to_string(path(name)).expect("it is ours");
        let secret = text.lines().find_map(|line| line.strip_prefix("private ")).expect("a key");
        assert!(!shown.stdout.contains(secret));
    }
}

/// Each mistake is refused with a reason, and leaves the files as they were.
#[test]
fn mistakes_are_refused() {
    let place = Folder::new("key-mistakes");
    let (own, shared) = (place.path().join("own"), place.path().join("shared"));
    assert_eq!(run(bellwire().args(["key", "new"]).arg(&own)).code, 0);
    assert_eq!(run(bellwire().args(["key", "new", "--shared"]).arg(&shared)).code, 0);
    let before = [&own, &shared].map(|file| std::fs::read(file).expect("it is ours"));
    let zeros = "0".repeat(64);
    let public = run(bellwire().args(["key", "show", "--json"]).arg(&own)).stdout;
    let public: serde_json::Value = serde_json::from_str(&public).expect("JSON");
    let public = public["public"].as_str().expect("a key");
    for (code, reason, arguments) in [
        (1, "exists", vec!["new", own.to_str().expect("text")]),
        (2, "64 hexadecimal digits", vec!["authorize", own.to_str().expect("text"), "abc"]),
        (1, "no public key", vec!["authorize", own.to_str().expect("text"), &zeros]),
        (1, "our own", vec!["authorize", own.to_str().expect("text"), public]),
        (2, "lists no peers", vec!["authorize", shared.to_str().expect("text"), public]),
        (1, "cannot be read", vec!["show", "/no/such/file"]),
    ] {
        let told = run(bellwire().arg("key").args(&arguments));
        assert_eq!(told.code, code, "{arguments:?}: {}", told.stderr);
        assert!(told.stderr.contains(reason), "{arguments:?}: {}", told.stderr);
    }
    assert_eq!([&own, &shared].map(|file| std::fs::read(file).expect("it is ours")), before);
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o604)).expect("it is ours");
    let told = run(bellwire().args(["key", "show"]).arg(&own));
    assert!(told.code == 1 && told.stderr.contains("chmod 600"), "{}", told.stderr);
}
