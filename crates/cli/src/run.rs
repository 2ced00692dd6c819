//! Running a program of RDMA over Bellwire: `bellwire run -- ib_send_lat peer`.

use crate::command::Outcome;
use anyhow::{Context, Result, anyhow};
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

/// Run a program of RDMA over Bellwire: without a card, a kernel module or privileges.
///
/// The program finds Bellwire's libibverbs.so.1 and librdmacm.so.1 in place of the system's. It
/// sees a device for each address of this host: bellwire0, bellwire1, and so on.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  bellwire run -- ibv_devinfo
  bellwire run -- ib_send_lat                on one side
  bellwire run -- ib_send_lat 10.0.0.1       on the other
  bellwire run -v --device udp:10.0.0.1 -- ibv_rc_pingpong -g 0")]
pub struct Arguments {
    /// The only device that the program sees, for instance udp:10.0.0.1 [default: auto:udp:ADDRESS
    /// for each address of this host]
    #[arg(long)]
    device: Option<String>,
    /// Say what is set for the program
    #[arg(short, long)]
    verbose: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// The names under which programs look for the library: it is both, and loaded once.
const NAMES: [&str; 2] = ["libibverbs.so.1", "librdmacm.so.1"];
/// Where programs look for libraries first.
const SEARCH_PATH: &str = "LD_LIBRARY_PATH";
/// The device of the library.
const DEVICE: &str = "BELLWIRE_DEVICE";

/// Becomes the program. Returns only if that fails.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let own = std::env::current_exe().context("finding the place of this command")?;
    let folder = library_folder(&own)?;
    let (program, rest) = arguments.program.split_first().expect("clap requires a program");
    let mut command = std::process::Command::new(program);
    command.args(rest);
    let mut path = OsString::from(&folder);
    if let Some(before) = std::env::var_os(SEARCH_PATH).filter(|before| !before.is_empty()) {
        path.push(":");
        path.push(before);
    }
    let mut set = vec![(SEARCH_PATH, path)];
    set.extend(arguments.device.as_ref().map(|device| (DEVICE, OsString::from(device))));
    for (name, value) in set {
        if arguments.verbose {
            eprintln!("bellwire: {name}={}", value.to_string_lossy());
        }
        command.env(name, value);
    }
    // Ignored signals stay ignored in the program, and it does not expect that.
    // SAFETY: the action is the system's own.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
    let error = command.exec();
    Err(anyhow!(error).context(format!("cannot run {}", program.to_string_lossy())))
}

/// The folder that holds the library: beside an installed command, or in the folder of a build.
fn library_folder(own: &Path) -> Result<PathBuf> {
    let bin = own.parent().unwrap_or(Path::new("/"));
    let installed = bin.join("../lib/bellwire");
    if NAMES.iter().all(|name| installed.join(name).exists()) {
        return installed.canonicalize().context("finding the installed library");
    }
    // `cargo build` puts it beside the command, and `cargo test` into `deps`.
    let built = ["libibverbs.so", "deps/libibverbs.so"];
    let Some(built) = built.into_iter().find(|built| bin.join(built).exists()) else {
        return Err(anyhow!(
            "{} is neither in {} nor in {}: install it by `make install`, or build it by `cargo build -p bellwire-verbs`",
            NAMES[0],
            installed.display(),
            bin.display(),
        ));
    };
    // cargo gives a library no version in its name, and programs look for one.
    let folder = bin.join("verbs");
    let target = Path::new("..").join(built);
    for link in NAMES.map(|name| folder.join(name)) {
        if std::fs::read_link(&link).ok().as_deref() != Some(target.as_path()) {
            // Or there is none.
            let _ = std::fs::remove_file(&link);
            std::fs::create_dir_all(&folder)
                .and_then(|()| symlink(&target, &link))
                .with_context(|| format!("cannot make {}", link.display()))?;
        }
    }
    Ok(folder)
}
