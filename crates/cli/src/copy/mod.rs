//! `bellwire copy`: files and folders from one process to another, on this host or between two, by
//! PUT.
//!
//! | module | what |
//! |---|---|
//! | `walk` | what is to be copied |
//! | `sender`, `receiver` | the two sides of one copy; `origin`: how a receiver knows its senders |
//! | `listen` | the receiving side that the user starts |
//! | `reception`, `turns` | all senders of a receiving side, and when each is served |
//! | `message` | the messages, and the hash of a tree; `nonsense`: arbitrary messages |
//! | `door`, `pairing` | who may send, and the exchange of a code |
//! | `link`, `keep_alive` | the connection between them |
//! | `place`, `part` | where the copy ends up, and where it is made |
//! | `beneath` | files and folders below a folder, whatever is swapped meanwhile |
//! | `names` | the memory that names take |
//! | `report` | the report at the end |

mod beneath;
mod canary;
mod door;
mod keep_alive;
mod link;
mod listen;
mod message;
mod names;
#[cfg(test)]
mod nonsense;
mod origin;
mod pairing;
mod part;
mod place;
mod receiver;
mod reception;
mod report;
mod sender;
mod turns;
mod walk;

use crate::child::{Child, follow_parent};
use crate::command::{Outcome, WrongUsage, printable};
use crate::host::node_of;
use anyhow::{Context, Result, ensure};
use bellwire::Device;
use bellwire_keys::Code;
use door::Door;
use indicatif::{ProgressBar, ProgressStyle};
use link::{ACQUAINTANCE, Link, RECEIVER, open_device, open_function};
use place::Destination;
use reception::Reception;
use report::Report;
use sender::{Sent, Source};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use walk::Tree;

/// Copies a file or folder through Bellwire, every byte compared
///
/// On one host, it starts a second process that writes the data that this one reads. Between hosts,
/// --listen on one waits for --connect on the other. The data goes by PUT into memory of the
/// writer. Both sides compute the BLAKE3 hash of each file and of the whole tree, and compare them.
/// Permissions are kept; symbolic links are copied as links.
///
/// The copy is made beside DEST as DEST.bellwire-part. It gets its name when it is complete and
/// compared. So there is never half a copy under that name, even if a side is killed. The same
/// command resumes the copy after comparing the part that is there. Other content of the part is
/// removed.
#[derive(clap::Args)]
#[command(after_help = "\
If DEST is a folder, the copy goes into it, under the name of SRC. A file or link that has the name is replaced; a folder is not.
Files that cannot be read, or that change while they are copied, are reported; the others are copied, and the exit code is 1.
Not copied: owners, times, hard links between files (each becomes a file), holes, named pipes, sockets and devices. All names
together may take 1 GiB, about five million files.

Between hosts --listen prints a code of one use, and CODE lets in one copy, encrypted. Each wrong code is counted and slows the next. A
copy that fails costs its code: the listener prints another. --key FILE on both sides takes the place of the code; a key in the
device's name or in BELLWIRE_KEY does the same. --plain asks for neither and encrypts nothing. shm needs none of them.

With --key, --plain and shm, --listen serves 8 senders at a time, 4 of one node. 64 others, 16 of one node, wait in the order in which they asked. It ends when a
copy is complete and those who asked before that have been served: with 1 if a sender could not read all of its copy. If a sender
gives up or dies, it waits for the next one. From other hosts no set-user-ID bits and no lone symbolic links are taken, and nothing is replaced but a DEST that is a
file.

A sender has 10 s to say what it sends. While others wait for its place, it loses the place when it sends less than 64 KiB in 10 s; a
file, folder or link counts as 4 KiB. When nobody waits, it has 600 s. What came stays, as NAME.MARK.bellwire-part with a mark of the
sender, and the same command goes on from there. Of such parts 16 are kept, the largest; all give way if there is no room left.

Examples:
  bellwire copy disk.img /mnt/backup/
  bellwire copy project /mnt/backup/project-today
  bellwire copy --json big.file copy | jq -r .blake3     (as b3sum prints it)
On two hosts, with the addresses 10.0.0.1 and 10.0.0.2:
  bellwire copy --listen /mnt/backup --device udp:10.0.0.1
  bellwire copy project --connect 10.0.0.1 7KQM-2XRD --device udp:10.0.0.2")]
pub struct Arguments {
    /// File, folder or symbolic link
    #[arg(value_name = "SRC", required_unless_present = "listen")]
    source: Option<PathBuf>,
    /// Its new name, or a folder to put it into. With --connect: the code that --listen prints;
    /// without it you are asked
    #[arg(value_name = "DEST|CODE", required_unless_present_any = ["listen", "connect"])]
    destination: Option<PathBuf>,
    /// Wait for --connect on other hosts or in other terminals, and write their copies to DEST
    #[arg(long, value_name = "DEST", conflicts_with_all = ["source", "destination", "connect"])]
    listen: Option<PathBuf>,
    /// Copy to the host where --listen waits: its name or address on eth and udp, or its node
    /// number
    #[arg(long, value_name = "HOST")]
    connect: Option<String>,
    /// Key file of both sides, in place of a code
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Neither code nor key: whoever reaches the listener can send, and who sees the traffic can
    /// read and alter it
    #[arg(long)]
    plain: bool,
    /// The device that carries the data [default: shm:copy-PID; with --listen or --connect
    /// shm:copy]
    #[arg(long)]
    device: Option<String>,
    /// One JSON object for each copy instead of text
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let Arguments { source, destination, listen, connect, key, plain, device, json } = arguments;
    if (key.is_some() || *plain) && listen.is_none() && connect.is_none() {
        return Err(WrongUsage::error("--key and --plain go with --listen or --connect"));
    }
    let device = device.clone().unwrap_or_else(|| match listen.is_some() || connect.is_some() {
        true => "shm:copy".into(),
        false => format!("shm:copy-{}", std::process::id()),
    });
    let door = || Door::find(&device, key.as_deref(), *plain);
    match (source, destination, listen, connect.as_deref()) {
        (_, _, Some(destination), _) => listen::listen(destination, &device, &door()?, *json),
        (Some(source), code, _, Some(host)) => {
            let door = door()?;
            let code = match &door {
                Door::Code => Some(code_of(code.as_deref())?),
                _ if code.is_some() => {
                    return Err(WrongUsage::error(
                        "a code goes neither with a key nor with --plain nor with shm: leave it out",
                    ));
                }
                _ => None,
            };
            send(source, &To::Host { host, door, code }, &device, *json)
        }
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
    /// To the host of this name; the receiver there knows the destination.
    Host { host: &'a str, door: Door, code: Option<Code> },
}

/// The code that the user gives: in the command, or when asked. A command can be seen by other
/// users of the host.
fn code_of(given: Option<&Path>) -> Result<Code> {
    let text = match given {
        Some(code) => code.to_string_lossy().into_owned(),
        None => {
            let mut line = String::new();
            eprint!("The code that --listen prints there: ");
            std::io::stdin().read_line(&mut line).context("cannot read the code")?;
            line
        }
    };
    Code::parse(text.trim()).ok_or_else(|| {
        WrongUsage::error("a code has eight letters and digits: `bellwire copy --listen` prints it")
    })
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
        To::Host { host, .. } => {
            report.host = Some(host.to_owned());
            // No set-user-ID and set-group-ID bits: their owner on this host has no rights on the
            // other.
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
    // The child lives until `_child` is dropped.
    let (link, _child) = match to {
        To::Host { host, door, code } => (find(name, host, door, code.as_ref())?, None),
        To::Place(destination) => {
            let device = open_device(name, None)?;
            let arguments: [OsString; 3] = ["write-copy".into(), name.into(), destination.into()];
            let mut child = Child::start(arguments)?;
            let said = child.line().context("the receiving side did not start")?;
            let address = address_of(&said);
            let address = address.with_context(|| format!("the receiving side said {said:?}"))?;
            let link =
                Link::connect(&device, address, "this host", &Door::Kernel, link::HELLO, |_| ())?;
            (link, Some(child))
        }
    };
    let bar = progress_bar(source.tree.bytes)?;
    let sent = sender::send(link, source, &bar);
    bar.finish_and_clear();
    sent
}

/// Connects to the receiver that listens on `host`, once it is our turn.
fn find(name: &str, host: &str, door: &Door, code: Option<&Code>) -> Result<Link> {
    if *door == Door::Open {
        door::warn_of_plain();
    }
    let device = door.open(name)?;
    let spinner = ProgressBar::new_spinner().with_message(format!("Looking for {host}"));
    spinner.enable_steady_tick(Duration::from_millis(200));
    let mut is_told = false;
    let mut waiting = |why: &str| {
        let why = printable(why);
        // Without a terminal, print the reason once.
        if spinner.is_hidden() && !is_told {
            eprintln!("bellwire: {why}");
        }
        is_told = true;
        spinner.set_message(why);
    };
    let found = match code {
        None => connect(&device, host, door, link::HELLO, &mut waiting),
        Some(code) => pairing::prove(&device, host, code, &mut waiting).and_then(|key| {
            let greeting = door::greeting(Some(&key));
            connect(&door::open_sealed(name, &key)?, host, door, &greeting, &mut waiting)
        }),
    };
    spinner.finish_and_clear();
    found
}

fn connect(
    device: &Device,
    host: &str,
    door: &Door,
    greeting: &[u8],
    waiting: &mut impl FnMut(&str),
) -> Result<Link> {
    let node = node_of(device, host, RECEIVER, ACQUAINTANCE, door.listener())?;
    Link::connect(device, (node, RECEIVER), host, door, greeting, waiting)
}

/// A bar that counts bytes; hidden if standard error is no terminal.
fn progress_bar(bytes: u64) -> Result<ProgressBar> {
    let template = "{bar:30} {percent:>3} %  {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
    Ok(ProgressBar::new(bytes).with_style(ProgressStyle::with_template(template)?))
}

/// Refuses a folder that is copied into itself, which would never end, and a file that is copied
/// onto itself.
fn refuse_into_itself(source: &Path, target: &Path) -> Result<()> {
    let parent = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // An unresolvable path does not exist; the receiver reports it.
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

/// Serves the process that started us and reads our address from standard output. Errors go to that
/// process, which reports them to the user.
pub fn write_copy(writer: &Writer) -> Result<Outcome> {
    follow_parent()?;
    let device = open_device(&writer.device, None)?;
    let function = open_function(&device, RECEIVER)?;
    let address = function.address();
    let destination = Destination::of_user(&writer.destination);
    let bar = || Ok(ProgressBar::hidden());
    let mut reception =
        Reception::open(function, turns::ALONE, destination, door::greeting(None), bar)?;
    println!("node {} function {}", address.node, address.function);
    let (started, mut outcome) = (Instant::now(), None);
    while outcome.is_none() || !reception.is_idle() {
        for ended in reception.round(ACQUAINTANCE)? {
            reception.close();
            outcome = Some(Outcome::done_if(ended.outcome.is_ok()));
        }
        let nobody = outcome.is_none() && reception.is_idle();
        ensure!(!nobody || started.elapsed() < ACQUAINTANCE, "the other side did not connect");
    }
    Ok(outcome.unwrap_or(Outcome::Failed))
}

/// Parses node and function as [`write_copy`] prints them.
fn address_of(said: &str) -> Option<(u32, u8)> {
    let (node, function) = said.strip_prefix("node ")?.split_once(" function ")?;
    Some((node.parse().ok()?, function.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args;

    /// The help states the limits that the code has.
    #[test]
    fn the_help_tells_the_limits() {
        let command = Arguments::augment_args(clap::Command::new("copy"));
        let help = command.get_after_help().expect("there is one").to_string().replace('\n', " ");
        let turns::Rules { places, places_of_node, line, line_of_node, silence, .. } =
            turns::LISTENER;
        for told in [
            format!("serves {places} senders at a time, {places_of_node} of one node"),
            format!("{line} others, {line_of_node} of one node, wait"),
            format!("has {} s to say what it sends", silence.as_secs()),
            format!("less than {} KiB in {} s;", turns::PACE_BYTES >> 10, silence.as_secs()),
            format!("counts as {} KiB", turns::ENTRY_BYTES >> 10),
            format!("it has {} s", reception::LONGEST_SILENCE.as_secs()),
            format!("parts {} are kept", part::Leftovers::MOST),
            format!("names together may take {} GiB", names::ONE_BYTES >> 30),
        ] {
            assert!(help.contains(&told), "{told}: {help}");
        }
    }
}
