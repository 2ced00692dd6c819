//! Finds the project's source tree, from which the scoreboard is computed.

use std::path::{Path, PathBuf};

/// There is no checkout of Bellwire at the given place or above it.
#[derive(Debug, thiserror::Error)]
#[error(
    "no checkout of Bellwire at {start} or above it. The state of a row is computed from the sources and tests, which \
     an installed program does not carry. Change to a clone of the repository and run this again"
)]
pub struct NotACheckout {
    start: String,
}

/// The top folder of the checkout that holds `start`: the nearest ancestor with a Cargo workspace
/// and the rows.
pub fn find(start: &Path) -> Result<PathBuf, NotACheckout> {
    let failed = || NotACheckout { start: start.display().to_string() };
    let absolute = start.canonicalize().map_err(|_| failed())?;
    absolute.ancestors().find(|folder| is_top(folder)).map(Path::to_owned).ok_or_else(failed)
}

/// The rows must be there too, so that another project's workspace is not taken for ours.
fn is_top(folder: &Path) -> bool {
    let is_workspace = std::fs::read_to_string(folder.join("Cargo.toml"))
        .is_ok_and(|manifest| manifest.lines().any(|line| line.trim() == "[workspace]"));
    is_workspace && folder.join("crates/papers/rows.toml").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkout is found from inside it; the error for a missing one names the remedy.
    #[test]
    fn checkout_is_found_upwards_only() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let top = find(&here.join("src")).unwrap();
        assert_eq!(top, here.join("../..").canonicalize().unwrap());

        let message = find(Path::new("/")).unwrap_err().to_string();
        assert!(message.contains("clone of the repository"), "{message}");
        assert!(find(Path::new("/there/is/no/such/folder")).is_err());
    }
}
