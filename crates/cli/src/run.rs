//! Running a program of RDMA over Bellwire: `bellwire run -- ib_send_lat peer`.

use crate::command::Outcome;
use crate::executable::{self, Executable};
use anyhow::{Context, Result, anyhow};
use bellwire_rdma::HostDevice;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

/// Run a program of RDMA or of sockets over Bellwire: without a card, a kernel module or
/// privileges.
///
/// The program finds Bellwire's libibverbs.so.1 and librdmacm.so.1 in place of the system's. It
/// sees a device for each address of this host: bellwire0, bellwire1, and so on. With --sockets the
/// TCP connections of an ordinary program run over Bellwire, if the other side does the same.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  bellwire run -- ibv_devinfo
  bellwire run -- ib_send_lat                on one side
  bellwire run -- ib_send_lat 10.0.0.1       on the other
  bellwire run -v --device udp:10.0.0.1 -- ibv_rc_pingpong -g 0
  bellwire run --sysfs -- ucx_perftest       a program that reads /sys/class/infiniband
  bellwire run --sockets -- python3 -m http.server
  bellwire run --sockets -- curl http://10.0.0.1:8000/")]
pub struct Arguments {
    /// The only device that the program sees, for instance udp:10.0.0.1 [default: auto:udp:ADDRESS
    /// for each address of this host]
    #[arg(long)]
    device: Option<String>,
    /// Show the program files in /sys/class/infiniband, for one that reads them itself
    #[arg(long)]
    sysfs: bool,
    /// Carry the program's TCP connections of IPv4, to programs that run in the same way; others
    /// stay the kernel's, and the program's standard error says so with -v
    #[arg(long)]
    sockets: bool,
    /// Say what is set for the program
    #[arg(short, long)]
    verbose: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// The names under which programs look for the library: it is both, and loaded once.
pub const NAMES: [&str; 2] = ["libibverbs.so.1", "librdmacm.so.1"];
/// Where programs look for libraries first.
const SEARCH_PATH: &str = "LD_LIBRARY_PATH";
/// The device of the library.
const DEVICE: &str = "BELLWIRE_DEVICE";
/// The folder with what stands for /sys/class/infiniband, and the library that sees to it.
const SYSFS: &str = "BELLWIRE_SYSFS";
const PRELOAD: &str = "LD_PRELOAD";
const SHIM: &str = "libbellwire_sysfs.so";
/// The library that carries sockets, and the variable by which it says what it does.
const SOCKETS: &str = "libbellwire_sockets.so";
const LOG: &str = "BELLWIRE_LOG";

/// Becomes the program. Returns only if that fails.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    // The library would say so only when the program opens it.
    if let Some(device) = &arguments.device {
        bellwire::Device::check_settings(device)?;
    }
    let own = std::env::current_exe().context("finding the place of this command")?;
    let folder = library_folder(&own)?;
    let (program, rest) = arguments.program.split_first().expect("clap requires a program");
    let mut command = std::process::Command::new(program);
    command.args(rest);
    let mut set = vec![(SEARCH_PATH, before_others(&folder, SEARCH_PATH))];
    set.extend(arguments.device.as_ref().map(|device| (DEVICE, OsString::from(device))));
    let mut preloaded = Vec::new();
    if arguments.sysfs {
        let devices = match &arguments.device {
            Some(device) => vec![HostDevice::named(device)],
            None => HostDevice::all(),
        };
        preloaded.push(to_preload(&folder, SHIM, "--sysfs", "bellwire-sysfs")?);
        set.push((SYSFS, files_of(&devices)?.into()));
    }
    if arguments.sockets {
        preloaded.push(to_preload(&folder, SOCKETS, "--sockets", "bellwire-sockets")?);
        if arguments.verbose {
            set.push((LOG, "1".into()));
        }
    }
    if !preloaded.is_empty() {
        set.push((PRELOAD, before_others(Path::new(&preloaded.join(":")), PRELOAD)));
    }
    for (name, value) in set {
        if arguments.verbose {
            eprintln!("bellwire: {name}={}", value.to_string_lossy());
        }
        command.env(name, value);
    }
    let found = executable::find(Path::new(program));
    // Programs of sockets need no library of RDMA.
    let verbose = arguments.verbose && !arguments.sockets;
    if let Some(warning) = found.as_deref().and_then(|file| warning(file, verbose)) {
        eprintln!("bellwire: {warning}");
    }
    // Ignored signals stay ignored in the program, and it does not expect that.
    // SAFETY: the action is the system's own.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
    let error = command.exec();
    Err(anyhow!(why_not(program, found.as_deref(), &error)))
}

/// What keeps a program from loading the library. It may start others that do, so it is run.
fn warning(file: &Path, verbose: bool) -> Option<String> {
    let why = match Executable::of(file, &NAMES) {
        Executable::Static => "is linked statically, so it does not load Bellwire's library",
        Executable::Privileged => "changes its user (setuid), so it ignores Bellwire's library",
        Executable::OtherMachine => {
            "is not a program of x86-64 with 64 bits, so it cannot load Bellwire's library"
        }
        Executable::Dynamic { links: false } if verbose => {
            "is itself not linked with libibverbs or librdmacm; what it loads or starts may be"
        }
        _ => return None,
    };
    Some(format!("{} {why}", file.display()))
}

/// Why a program cannot be run.
fn why_not(program: &OsStr, found: Option<&Path>, error: &std::io::Error) -> String {
    let name = program.to_string_lossy();
    let why = match (found, error.kind()) {
        (None, ErrorKind::NotFound) if name.contains('/') => "there is no such file".to_owned(),
        (None, ErrorKind::NotFound) => "no folder of PATH has it: is it installed?".to_owned(),
        (Some(file), ErrorKind::NotFound) => {
            format!(
                "{} is there, but the loader or interpreter that it names is not",
                file.display()
            )
        }
        (_, ErrorKind::PermissionDenied) => {
            "it is not executable, or a folder on the way to it is closed".to_owned()
        }
        (_, _) if error.raw_os_error() == Some(libc::ENOEXEC) => {
            "it is neither a program for this processor nor a script that begins with #!".to_owned()
        }
        _ => error.to_string(),
    };
    format!("cannot run {name}: {why}")
}

/// A library of the folder, for an option.
fn to_preload(folder: &Path, library: &str, option: &str, package: &str) -> Result<String> {
    let path = folder.join(library);
    if !path.exists() {
        return Err(anyhow!(
            "{option} needs {}: install it by `make install`, or build it by `cargo build -p {package}`",
            path.display(),
        ));
    }
    path.into_os_string().into_string().map_err(|path| anyhow!("{path:?} is not a path of text"))
}

/// A variable's list of paths with one more at its beginning.
fn before_others(first: &Path, variable: &str) -> OsString {
    let mut paths = OsString::from(first);
    if let Some(others) = std::env::var_os(variable).filter(|others| !others.is_empty()) {
        paths.push(":");
        paths.push(others);
    }
    paths
}

/// A folder with the files of the devices. It belongs to the user, and stays for other programs
/// that see the same devices.
fn files_of(devices: &[HostDevice]) -> Result<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|runtime| !runtime.is_empty());
    let runtime = runtime.map_or_else(std::env::temp_dir, PathBuf::from);
    // SAFETY: it takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    let own = runtime.join(format!("bellwire-sysfs-{user}"));
    let cannot = || {
        format!(
            "cannot write the files for --sysfs to {}: set XDG_RUNTIME_DIR to a folder that you may write",
            own.display()
        )
    };
    match DirBuilder::new().mode(0o700).create(&own) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => made.with_context(cannot)?,
    }
    // In a folder of all users another one may have been first.
    let found = own.symlink_metadata().with_context(cannot)?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
        return Err(anyhow!(
            "{} belongs to somebody else, or others may write there: remove it, or set XDG_RUNTIME_DIR",
            own.display(),
        ));
    }
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), devices).hash(&mut hasher);
    let folder = own.join(format!("{:016x}", hasher.finish()));
    let new = own.join(format!("new-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&new);
    std::fs::create_dir(&new).with_context(cannot)?;
    devices.iter().try_for_each(|device| device.write(&new)).with_context(cannot)?;
    // If it is there already, it has the same files.
    if std::fs::rename(&new, &folder).is_err() {
        std::fs::remove_dir_all(&new).with_context(cannot)?;
    }
    Ok(folder)
}

/// The folder that holds the library: beside an installed command, or in the folder of a build.
pub fn library_folder(own: &Path) -> Result<PathBuf> {
    let bin = own.parent().unwrap_or(Path::new("/"));
    let installed = bin.join("../lib/bellwire");
    if NAMES.iter().all(|name| installed.join(name).exists()) {
        return installed.canonicalize().context("finding the installed library");
    }
    // `cargo build` puts it beside the command, and `cargo test` into `deps`.
    let built = |name: &str| {
        let places = [name.to_owned(), format!("deps/{name}")];
        let found = places.into_iter().find(|place| bin.join(place).exists());
        found.map(|place| Path::new("..").join(place))
    };
    let Some(library) = built("libibverbs.so") else {
        return Err(anyhow!(
            "{} is neither in {} nor in {}: install it by `make install`, or build it by `cargo build -p bellwire-verbs`",
            NAMES[0],
            installed.display(),
            bin.display(),
        ));
    };
    // cargo gives a library no version in its name, and programs look for one.
    let folder = bin.join("verbs");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let mut links = NAMES.map(|name| (name, library.clone())).to_vec();
    for shim in [SHIM, SOCKETS] {
        links.extend(built(shim).map(|built| (shim, built)));
    }
    for (name, target) in links {
        let link = folder.join(name);
        if std::fs::read_link(&link).ok().as_deref() != Some(target.as_path()) {
            // Or there is none.
            let _ = std::fs::remove_file(&link);
            symlink(&target, &link).with_context(|| format!("cannot make {}", link.display()))?;
        }
    }
    Ok(folder)
}
