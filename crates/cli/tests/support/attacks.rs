//! Strangers' attacks on a listener; an honest sender must still be served. Each check returns the
//! violation. It takes the name of a planted fault, so that `canaries.rs` can show that the check
//! notices it.

use super::copying::{Listener, Stranger, chunk};
use super::{Folder, Running, bellwire, unique};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Interval in which a sender must make progress to keep its place ([`silent_senders`] lets one
/// send 64 KiB ten times a second).
const SILENCE: Duration = Duration::from_secs(10);

/// Starts an honest sender.
fn honest(device: &str, source: &Path) -> Running {
    let mut command = bellwire();
    Running::start(
        command.args(["copy", "--json", "--device", device, "--connect", "0"]).arg(source),
    )
}

/// Runs `meanwhile` until a sender has ended.
fn served(
    mut sender: Running,
    patience: Duration,
    mut meanwhile: impl FnMut(),
) -> Result<String, String> {
    let started = Instant::now();
    loop {
        if let Some(status) = sender.0.try_wait().expect("a child") {
            let mut output = String::new();
            let mut pipe = sender.0.stdout.take().expect("piped");
            std::io::Read::read_to_string(&mut pipe, &mut output).expect("a pipe");
            return if status.success() {
                Ok(output)
            } else {
                Err(format!("it ended with {status}"))
            };
        }
        if started.elapsed() > patience {
            return Err(format!("it is not served within {patience:?}"));
        }
        meanwhile();
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Strangers take all eight places. They are silent from the start, are silent after they announce
/// their copy, or send a byte now and then. One makes progress.
pub fn silent_senders(fault: Option<&str>, patience: Duration) -> Result<(), String> {
    let place = Folder::new("silent");
    let source = place.path().join("honest");
    fs::write(&source, "honest").expect("a file");
    let into = place.path().join("into");
    fs::create_dir(&into).expect("a folder");
    let device = format!("shm:{}", unique("silent"));
    let listener = Listener::start_with(&device, &into, fault);

    let mut worker = Stranger::accepted(&device);
    worker.begin_file("progress", false, 1 << 40)?;
    let (mut last, mut gap, mut cut_off) = (Instant::now(), Duration::ZERO, None);
    let mut strangers: Vec<Stranger> = (1..8).map(|_| Stranger::accepted(&device)).collect();
    for (number, stranger) in strangers.iter_mut().enumerate().skip(2) {
        stranger.origin = number as u8;
        stranger.begin_file("silent", false, 1 << 40)?;
    }
    let honest = honest(&device, &source);
    let mut round = 0_u32;
    let outcome = served(honest, patience, || {
        if round.is_multiple_of(10) && cut_off.is_none() {
            gap = gap.max(last.elapsed());
            last = Instant::now();
            worker.say(&chunk(0, 64 << 10).to_string());
        }
        while let (None, Ok(Some(heard))) = (&cut_off, worker.look()) {
            if heard["Credit"].is_null() {
                cut_off = Some(heard.to_string());
            }
        }
        // Four of them trickle while they are connected.
        for stranger in &mut strangers[3..] {
            while let Ok(Some(_)) = stranger.look() {}
            if round.is_multiple_of(50) {
                stranger.try_to_say(&chunk(0, 1).to_string());
            }
        }
        round += 1;
    });
    outcome?;
    if let Some(heard) = cut_off
        && gap < SILENCE / 2
    {
        return Err(format!("a sender that makes progress hears {heard}"));
    }
    if fs::read(into.join("honest")).ok().as_deref() != Some(b"honest") {
        return Err("the honest copy is not there".into());
    }
    drop((worker, strangers));
    match listener.end() {
        (0, reports, _) if reports.len() == 1 => Ok(()),
        (code, reports, complaints) => Err(format!("{code} {reports:?} {complaints:?}")),
    }
}

/// Strangers leave parts of either kind under the names of honest copies, or hold them. Then honest
/// senders come.
pub fn leftovers(fault: Option<&str>) -> Result<(), String> {
    let place = Folder::new("leftovers");
    let into = place.path().join("into");
    fs::create_dir(&into).expect("a folder");
    let (tree, single) = (place.path().join("tree"), place.path().join("single"));
    fs::create_dir(&tree).expect("a folder");
    fs::write(tree.join("inside"), "inside").expect("a file");
    fs::write(&single, "single").expect("a file");

    for (name, source) in [("tree", &tree), ("single", &single)] {
        let device = format!("shm:{}", unique("leftovers"));
        let listener = Listener::start_with(&device, &into, fault);
        // A file with data and a folder with a file; then both again, by senders that stay
        // connected.
        let mut staying = Vec::new();
        for stays in [false, true] {
            for is_folder in [false, true] {
                let mut stranger = Stranger::accepted(&device);
                stranger.begin_file(name, is_folder, 5)?;
                stranger.say(&chunk(0, 3).to_string());
                stranger.try_to_hear()?;
                if stays {
                    staying.push(stranger);
                }
            }
        }
        served(honest(&device, source), super::DEADLINE, || ())
            .map_err(|why| format!("{name}: {why}"))?;
        drop(staying);
        let (code, reports, complaints) = listener.end();
        if (code, reports.len()) != (0, 1) {
            return Err(format!("{name}: {code} {complaints:?}"));
        }
    }
    let tree = fs::read_dir(into.join("tree")).expect("it is there").count();
    let single = fs::read(into.join("single")).expect("it is there");
    if tree != 1 || single != b"single" {
        return Err(format!("{tree} files, {single:?}"));
    }
    let left = fs::read_dir(&into).expect("ours").count() - 2;
    // The second sender has the first one's origin and reuses its part.
    if left > 16 { Err(format!("{left} are left")) } else { Ok(()) }
}

/// A stranger fills a small file system and leaves. An honest copy still finds room.
pub fn full_of_leftovers(fault: Option<&str>) -> Result<(), String> {
    let place = Folder::new("full-of-leftovers");
    let small = place.path().join("small");
    fs::create_dir(&small).expect("a folder");
    mount("tmpfs", &small, "tmpfs", MountFlags::empty(), c"size=4m")
        .expect("NOT RUN: a small file system needs root");
    let source = place.path().join("honest");
    fs::write(&source, vec![5; 3 << 20]).expect("a file");
    let device = format!("shm:{}", unique("full-of-leftovers"));
    let listener = Listener::start_with(&device, &small, fault);
    let mut stranger = Stranger::accepted(&device);
    stranger.begin_file("large", false, 1 << 40)?;
    let why = stranger.turned_away(&vec![chunk(0, 256 << 10); 20]);
    drop(stranger);
    let served = served(honest(&device, &source), super::DEADLINE, || ());
    let is_there = fs::read(small.join("honest")).is_ok_and(|bytes| bytes == vec![5; 3 << 20]);
    if served.is_ok() {
        listener.end();
    } else {
        listener.running.kill();
    }
    unmount(&small, UnmountFlags::DETACH).expect("mounted above");
    match served {
        _ if !why.contains("no room left") => Err(why),
        Ok(_) if is_there => Ok(()),
        served => Err(format!("{served:?}")),
    }
}

/// A sender whose copy failed has data in flight. Its puts succeed until it leaves, so the first
/// thing that it gets is the reason.
pub fn puts_of_a_failed_copy(fault: Option<&str>) -> Result<(), String> {
    let place = Folder::new("under-way");
    let device = format!("shm:{}", unique("under-way"));
    let listener = Listener::start_with(&device, place.path(), fault);
    let mut sender = Stranger::accepted(&device);
    sender.begin_file("file", false, 5)?;
    let why = sender.turned_away(&[chunk(0, 6)]);
    let put = sender.put(b"data");
    listener.running.kill();
    match put {
        Ok(()) if why.contains("more data came") => Ok(()),
        put => Err(format!("{put:?}, {why}")),
    }
}
