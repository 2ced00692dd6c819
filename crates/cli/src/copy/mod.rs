//! `bellwire copy`: files and folders from one process to another, on this host or between two, by PUT.
//!
//! | module | what |
//! |---|---|
//! | `walk` | what is to be copied |
//! | `sender`, `receiver` | the two sides |
//! | `listen` | the receiving side that the user starts |
//! | `message` | what they say to each other, and the hash of a tree; `nonsense`: what somebody else might say |
//! | `link`, `keep_alive` | the connection between them |
//! | `place` | where the copy is made, and where it ends up |
//! | `names` | the memory that names take |
//! | `report` | what is told at the end |

mod keep_alive;
mod link;
mod listen;
mod message;
mod names;
#[cfg(test)]
mod nonsense;
mod place;
mod receiver;
mod report;
mod sender;
mod walk;

use crate::child::{Child, follow_parent};
use crate::command::{Outcome, WrongUsage};
use crate::host::node_of;
use anyhow::{Context, Result};
use bellwire::Device;
use indicatif::{ProgressBar, ProgressStyle};
use link::{ACQUAINTANCE, Link, RECEIVER};
use receiver::Terms;
use report::Report;
use sender::{Sent, Source};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use walk::Tree;

/// Copies a file or folder through Bellwire, every byte compared
///
/// Here: starts a second process that writes what this one reads. Between hosts: --listen waits on the one for what --connect
/// brings from the other. The data goes by PUT into memory of the writer. Both sides compute the BLAKE3 hash of each file and of the
/// whole tree, and compare. Permissions are kept; symbolic links are copied as links.
///
/// The copy is made beside DEST as DEST.bellwire-part and gets its name when all of it is there and compared: whoever is killed,
/// there is never half a copy under that name. The same command again goes on where it ended, after comparing what is there.
#[derive(clap::Args)]
#[command(after_help = "\
If DEST is a folder, the copy goes into it, under the name of SRC. A file or link that has the name is replaced; a folder is not.
Files that cannot be read, or that change while they are copied, are reported; the others are copied, and the exit code is 1.
Not copied: owners, times, hard links between files (each becomes a file), holes, named pipes, sockets and devices. All names
together may take 1 GiB, about five million files.

--listen ends when a copy is complete, and with 1 if the sender could not read all of it; if a sender gives up or dies, it waits for
the next one. Whoever reaches the device can be that sender: nothing is encrypted, and nobody is asked for a password. From other
hosts no set-user-ID bits and no lone symbolic links are taken, and nothing is replaced but a DEST that is a file.

Examples:
  bellwire copy disk.img /mnt/backup/
  bellwire copy project /mnt/backup/project-today
  bellwire copy --json big.file copy | jq -r .blake3     (as b3sum prints it)
On two hosts, with the addresses 10.0.0.1 and 10.0.0.2:
  bellwire copy --listen /mnt/backup --device udp:10.0.0.1
  bellwire copy project --connect 10.0.0.1 --device udp:10.0.0.2")]
pub struct Arguments {
    /// File, folder or symbolic link
    #[arg(value_name = "SRC", required_unless_present = "listen")]
    source: Option<PathBuf>,
    /// Its new name, or a folder to put it into
    #[arg(
        value_name = "DEST",
        required_unless_present_any = ["listen", "connect"],
        conflicts_with = "connect"
    )]
    destination: Option<PathBuf>,
    /// Wait for a --connect on another host or in another terminal, and copy what it brings to DEST
    #[arg(long, value_name = "DEST", conflicts_with_all = ["source", "destination", "connect"])]
    listen: Option<PathBuf>,
    /// Copy to where --listen waits: its host's name or address on eth and udp, or its node number
    #[arg(long, value_name = "HOST")]
    connect: Option<String>,
    /// What carries the data [default: shm:copy-PID; with --listen or --connect shm:copy]
    #[arg(long)]
    device: Option<String>,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Copies, and tells what was copied.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let Arguments { source, destination, listen, connect, device, json } = arguments;
    let device = device.clone().unwrap_or_else(|| match listen.is_some() || connect.is_some() {
        true => "shm:copy".into(),
        false => format!("shm:copy-{}", std::process::id()),
    });
    match (source, destination, listen, connect) {
        (_, _, Some(destination), _) => listen::listen(destination, &device, *json),
        (Some(source), _, _, Some(host)) => send(source, &To::Host(host), &device, *json),
        (Some(source), Some(destination), ..) => {
            send(source, &To::Place(destination), &device, *json)
        }
        _ => Err(WrongUsage::error("it takes SRC and DEST, or SRC and --connect, or --listen")),
    }
}

/// Where a copy goes.
enum To<'a> {
    /// On this host.
    Place(&'a Path),
    /// To the host of this name, which knows where it belongs.
    Host(&'a str),
}

fn send(source: &Path, to: &To<'_>, device: &str, json: bool) -> Result<Outcome> {
    let name = place::name_of(source)?;
    let tree = Tree::walk(source)?;
    let mut report = Report { source: Some(source.to_owned()), ..Report::of(device) };
    let mut modes = 0o7777;
    match *to {
        To::Place(destination) => {
            let target = place::target(destination, &name);
            refuse_into_itself(source, &target)?;
            report.destination = Some(target);
        }
        To::Host(host) => {
            report.host = Some(host.to_owned());
            // What runs with its owner's rights on this host has nothing to say on the other.
            modes = 0o777;
        }
    }
    let start = Instant::now();
    let source = Source { path: source, name, tree, modes };
    let Sent { counts, failures, hash } = transfer(source, to, device)?;
    let report = Report { failures, ..report.measured(counts, hash, start.elapsed()) };
    report.tell(json)?;
    Ok(Outcome::done_if(report.failures.is_empty()))
}

fn transfer(source: Source<'_>, to: &To<'_>, name: &str) -> Result<Sent> {
    let device = Device::open(name)?;
    // The child lives as long as this.
    let (link, _child) = match *to {
        To::Host(host) => (find(&device, host)?, None),
        To::Place(destination) => {
            let arguments: [OsString; 3] = ["write-copy".into(), name.into(), destination.into()];
            let mut child = Child::start(arguments)?;
            let said = child.line().context("the receiving side did not start")?;
            let node = said.strip_prefix("node ").and_then(|number| number.parse().ok());
            let node = node.with_context(|| format!("the receiving side said {said:?}"))?;
            (Link::connect(&device, node, "this host")?, Some(child))
        }
    };
    let bar = progress_bar(source.tree.bytes)?;
    let sent = sender::send(link, source, &bar);
    bar.finish_and_clear();
    sent
}

/// Connects to whoever listens on `host`.
fn find(device: &Device, host: &str) -> Result<Link> {
    let spinner = ProgressBar::new_spinner().with_message(format!("Looking for {host}"));
    spinner.enable_steady_tick(Duration::from_millis(200));
    let found = node_of(device, host, RECEIVER, ACQUAINTANCE, "`bellwire copy --listen`")
        .and_then(|node| Link::connect(device, node, host));
    spinner.finish_and_clear();
    found
}

/// A bar that counts bytes; hidden by itself if standard error is no terminal.
fn progress_bar(bytes: u64) -> Result<ProgressBar> {
    let template = "{bar:30} {percent:>3} %  {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
    Ok(ProgressBar::new(bytes).with_style(ProgressStyle::with_template(template)?))
}

/// A folder that is copied into itself would never end; a file that is copied onto itself gains nothing.
fn refuse_into_itself(source: &Path, target: &Path) -> Result<()> {
    let parent = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // What cannot be resolved does not exist, and is reported by the receiver.
    let (Ok(source_real), Ok(parent)) = (source.canonicalize(), parent.canonicalize()) else {
        return Ok(());
    };
    let target_real = target.file_name().map_or(parent.clone(), |name| parent.join(name));
    let is_link = source.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    if !is_link && target_real.starts_with(&source_real) {
        let (source, target) = (source.display(), target.display());
        return Err(WrongUsage::error(format!(
            "cannot copy {source} into itself ({target}): choose another place"
        )));
    }
    Ok(())
}

/// The receiving process of a copy
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Writer {
    device: String,
    destination: PathBuf,
}

/// Serves the process that started us, which then knows our node. It is told of what goes wrong, and tells the user.
pub fn write_copy(writer: &Writer) -> Result<Outcome> {
    follow_parent()?;
    let device = Device::open(&writer.device)?;
    let mut link = Link::listen(&device)?;
    println!("node {}", device.node());
    link.accept(Some(ACQUAINTANCE))?;
    let bar = ProgressBar::hidden();
    let terms = Terms { destination: &writer.destination, is_stranger: false, bar: &bar };
    Ok(Outcome::done_if(receiver::serve(&mut link, &terms).is_ok()))
}
