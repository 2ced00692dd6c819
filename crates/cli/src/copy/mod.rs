//! `bellwire copy`: files and folders from one process to another, by PUT.
//!
//! | module | what |
//! |---|---|
//! | `walk` | what is to be copied |
//! | `sender`, `receiver` | the two sides |
//! | `message` | what they say to each other, and the hash of a tree |
//! | `link` | the connection between them |
//! | `place` | where the copy is made, and where it ends up |

mod link;
mod message;
mod place;
mod receiver;
mod sender;
mod walk;

use crate::child::{Child, follow_parent};
use crate::command::{Outcome, WrongUsage, print_json};
use crate::units;
use anyhow::{Context, Result};
use bellwire::Device;
use indicatif::{ProgressBar, ProgressStyle};
use link::Link;
use message::Kind;
use sender::{Sender, Sent};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use walk::{Failure, Tree};

/// Copies a file or folder through Bellwire, every byte compared
///
/// Starts a second process that writes what this one reads: the data goes by PUT into memory of the writer. Both compute the
/// BLAKE3 hash of each file and of the whole tree, and compare. Permissions are kept; symbolic links are copied as links.
///
/// The copy is made beside DEST as DEST.bellwire-part and gets its name when all of it is there and compared: whoever is killed,
/// there is never half a copy under that name. The same command again goes on where it ended, after comparing what is there.
#[derive(clap::Args)]
#[command(after_help = "\
If DEST is a folder, the copy goes into it, under the name of SRC. A file or link that has the name is replaced; a folder is not.
Files that cannot be read, or that change while they are copied, are reported; the others are copied, and the exit code is 1.
Not copied: owners, times, hard links between files (each becomes a file), holes, named pipes, sockets and devices.

Examples:
  bellwire copy disk.img /mnt/backup/
  bellwire copy project /mnt/backup/project-today
  bellwire copy --json big.file copy | jq -r .blake3     (as b3sum prints it)")]
pub struct Arguments {
    /// File, folder or symbolic link
    source: PathBuf,
    /// Its new name, or a folder to put it into
    #[arg(value_name = "DEST")]
    destination: PathBuf,
    /// What carries the data [default: shm:copy-PID]
    #[arg(long)]
    device: Option<String>,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Copies, and tells what was copied.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let Arguments { source, destination, device, json } = arguments;
    let device = device.clone().unwrap_or_else(|| format!("shm:copy-{}", std::process::id()));
    let name = place::name_of(source)?;
    let tree = Tree::walk(source)?;
    refuse_into_itself(source, &place::target(destination, &name))?;

    let start = Instant::now();
    let sent = send(source, destination, name.clone(), tree, &device)?;
    let report =
        Report::new(source, &place::target(destination, &name), device, sent, start.elapsed());
    if *json {
        print_json(&report)?;
    } else {
        report.print();
    }
    Ok(Outcome::done_if(report.failures.is_empty()))
}

fn send(
    source: &Path,
    destination: &Path,
    name: OsString,
    tree: Tree,
    device: &str,
) -> Result<Sent> {
    let opened = Device::open(device)?;
    let arguments: [OsString; 3] = ["write-copy".into(), device.into(), destination.into()];
    let mut child = Child::start(arguments)?;
    let said = child.line().context("the receiving side did not start")?;
    let node = said.strip_prefix("node ").and_then(|number| number.parse().ok());
    let node = node.with_context(|| format!("the receiving side said {said:?}"))?;

    let folder = matches!(tree.entries[0].kind, Kind::Folder);
    let bar = progress_bar(tree.bytes)?;
    let link = Link::connect(&opened, node)?;
    let sent = Sender::begin(link, source, name, folder, &bar)?.send(tree).with_context(|| {
        format!("the copy is not complete (what is there stays in a {} beside it, and the same command goes on from there)", place::SUFFIX)
    });
    bar.finish_and_clear();
    sent
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
    println!("node {}", device.node());
    let link = Link::accept(&device)?;
    Ok(Outcome::done_if(receiver::serve(link, &writer.destination).is_ok()))
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    #[serde(serialize_with = "walk::as_text")]
    source: PathBuf,
    /// Under its last name.
    #[serde(serialize_with = "walk::as_text")]
    destination: PathBuf,
    device: String,
    files: u64,
    folders: u64,
    links: u64,
    bytes: u64,
    /// That an earlier attempt had copied.
    resumed_bytes: u64,
    seconds: f64,
    /// Of what was copied now.
    bytes_per_s: f64,
    /// Of the file, or of the tree; nothing if nothing was copied.
    blake3: Option<String>,
    failures: Vec<Failure>,
}

impl Report {
    fn new(source: &Path, target: &Path, device: String, sent: Sent, took: Duration) -> Report {
        let Sent { files, folders, links, bytes, resumed_bytes, failures, hash } = sent;
        let seconds = took.as_secs_f64();
        Report {
            source: source.to_owned(),
            destination: target.to_owned(),
            device,
            files,
            folders,
            links,
            bytes,
            resumed_bytes,
            seconds,
            bytes_per_s: (bytes - resumed_bytes) as f64 / seconds.max(1e-9),
            blake3: hash.map(|hash| blake3::Hash::from_bytes(hash).to_hex().to_string()),
            failures,
        }
    }

    fn print(&self) {
        let Report { files, folders, links, bytes, resumed_bytes, seconds, .. } = self;
        if let Some(hash) = &self.blake3 {
            println!(
                "Copied {}, {}, in {} ({}).",
                counted(&[(*files, "file"), (*folders, "folder"), (*links, "link")]),
                units::bytes(*bytes),
                units::time(seconds * 1e9),
                units::bandwidth(self.bytes_per_s)
            );
            if *resumed_bytes > 0 {
                println!("{} of it were there already.", units::bytes(*resumed_bytes));
            }
            println!("Every byte was compared: BLAKE3 {hash}");
        }
        for Failure { path, why } in &self.failures {
            eprintln!("bellwire: not copied: {}: {why}", path.display());
        }
    }
}

/// `2 files, 1 folder`: what there is of each.
fn counted(counts: &[(u64, &str)]) -> String {
    let words = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    });
    words.collect::<Vec<_>>().join(", ")
}
