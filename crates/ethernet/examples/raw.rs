//! Raw frames, without any protocol: the limit that the devices are measured against.
//!
//! Two threads in two network namespaces of their own, joined by a veth pair; both spin. Needs root and iproute2.
//! `cargo run --release -p bellwire-ethernet --example raw [MTU]`

use bellwire_ethernet::frame_io::FrameIo;
use bellwire_ethernet::interface::Interface;
use bellwire_ethernet::link_header::Mac;
use bellwire_ethernet::packet::PacketIo;
use bellwire_ethernet::testing::{enter_new_namespace, ip, stay_on, thread_number};
use bellwire_ethernet::udp::UdpIo;
use bellwire_ethernet::xdp::{Mode, XdpIo};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Stands where the kernel's filter looks for it.
const FUNCTION: u8 = 1;
const ROUNDS: usize = 20_000;
const SIZES: [usize; 6] = [16, 128, 1196, 4096, 8192, 60_000];
const PATIENCE: Duration = Duration::from_secs(3);

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let mtu: usize = std::env::args().nth(1).map_or(Ok(1500), |text| text.parse())?;
    println!("raw frames over veth, MTU {mtu}; one way, both sides spinning");
    println!(
        "{:<22} {:>7} {:>10} {:>10} {:>12} {:>10}",
        "", "bytes", "median us", "p99 us", "frames/s", "MB/s"
    );
    for kind in ["packet", "xdp generic", "xdp native", "udp"] {
        if let Err(error) = measure(kind, mtu) {
            println!("{kind:<22} not to be had: {error}");
        }
    }
    Ok(())
}

fn measure(kind: &'static str, mtu: usize) -> Result<()> {
    let (tell_number, number) = channel();
    let (tell_path, path) = channel();
    let (tell_ready, ready) = channel::<()>();
    let far = std::thread::spawn(move || -> Result<()> {
        stay_on(1);
        enter_new_namespace()?;
        tell_number.send(thread_number())?;
        ready.recv()?;
        ip("addr add 10.9.0.2/24 dev far\nlink set far up")?;
        echo(kind, "far", "10.9.0.2:7000", move |told| drop(tell_path.send(told)))
    });
    let near = std::thread::spawn(move || -> Result<()> {
        stay_on(0);
        enter_new_namespace()?;
        let number: i32 = number.recv()?;
        ip(&format!(
            "link add near mtu {mtu} type veth peer name far mtu {mtu} netns {number}\n\
             addr add 10.9.0.1/24 dev near\nlink set near up"
        ))?;
        tell_ready.send(())?;
        let told = path.recv_timeout(PATIENCE)?;
        match told {
            Told::Ethernet(to) => ping_ethernet(kind, "near", to),
            Told::Udp(to) => ping(kind, UdpIo::open("10.9.0.1:7000".parse()?, mtu)?, to),
        }
    });
    let [near, far] = [near, far].map(|thread| thread.join().expect("no panic"));
    near.and(far)
}

enum Told {
    Ethernet(Mac),
    Udp(SocketAddr),
}

fn open_xdp(kind: &str, interface: &Interface) -> Result<XdpIo> {
    let mode = if kind == "xdp native" { Mode::Native } else { Mode::Generic };
    Ok(XdpIo::open(interface, FUNCTION, mode)?)
}

fn echo(kind: &str, name: &str, address: &str, tell: impl FnOnce(Told)) -> Result<()> {
    let interface = Interface::find(name)?;
    let own = Told::Ethernet(interface.mac);
    match kind {
        "udp" => {
            let address: SocketAddr = address.parse()?;
            let io = UdpIo::open(address, interface.mtu)?;
            tell(Told::Udp(address));
            bounce(io)
        }
        "packet" => {
            let io = PacketIo::open(&interface, FUNCTION)?;
            tell(own);
            bounce(io)
        }
        _ => {
            let io = open_xdp(kind, &interface)?;
            tell(own);
            bounce(io)
        }
    }
}

fn ping_ethernet(kind: &str, name: &str, to: Mac) -> Result<()> {
    let interface = Interface::find(name)?;
    match kind {
        "packet" => ping(kind, PacketIo::open(&interface, FUNCTION)?, to),
        _ => ping(kind, open_xdp(kind, &interface)?, to),
    }
}

/// First byte 0: return it. 1: count it. 2: tell the count. 3: end.
fn bounce<Io: FrameIo>(mut io: Io) -> Result<()> {
    let (mut count, mut bytes, mut since) = (0u64, 0u64, Instant::now());
    loop {
        let mut answer = None;
        let mut end = false;
        let got = io.receive(64, |from, frame| match frame[0] {
            0 => answer = Some((from, frame.to_vec())),
            1 => {
                count += 1;
                bytes += frame.len() as u64;
            }
            2 => {
                let mut told = vec![2; 64];
                told[2] = FUNCTION;
                told[8..16].copy_from_slice(&count.to_le_bytes());
                answer = Some((from, told));
                count = 0;
            }
            _ => end = true,
        });
        if let Some((to, frame)) = answer {
            io.room().ok_or("no room")?[..frame.len()].copy_from_slice(&frame);
            io.stage(to, frame.len());
            io.flush();
        }
        if got > 0 {
            since = Instant::now();
        }
        if end || since.elapsed() > PATIENCE {
            return Ok(());
        }
    }
}

fn ping<Io: FrameIo>(kind: &str, mut io: Io, to: Io::Path) -> Result<()> {
    for bytes in SIZES {
        if bytes > io.frame_bytes() {
            continue;
        }
        let mut times = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let since = Instant::now();
            io.room().ok_or("no room")?[..3].copy_from_slice(&[0, 0, FUNCTION]);
            io.stage(to, bytes);
            io.flush();
            let mut again = Instant::now();
            while io.receive(1, |_, _| {}) == 0 {
                if again.elapsed() > Duration::from_millis(200) {
                    // Lost: the first frames may be, until the neighbour is known.
                    io.room().ok_or("no room")?[..3].copy_from_slice(&[0, 0, FUNCTION]);
                    io.stage(to, bytes);
                    io.flush();
                    again = Instant::now();
                    if since.elapsed() > PATIENCE {
                        return Err("no answer".into());
                    }
                }
            }
            times.push(since.elapsed().as_nanos() as f64 / 2e3);
        }
        times.sort_by(f64::total_cmp);
        let (rate, volume) = rate(&mut io, to, bytes)?;
        println!(
            "{kind:<22} {bytes:>7} {:>10.2} {:>10.2} {rate:>12.0} {volume:>10.1}",
            times[ROUNDS / 2],
            times[ROUNDS * 99 / 100],
        );
    }
    io.room().ok_or("no room")?[..3].copy_from_slice(&[3, 0, FUNCTION]);
    io.stage(to, 16);
    io.flush();
    Ok(())
}

/// Frames and megabytes per second that arrive, of those sent as fast as it goes for a quarter of a second.
fn rate<Io: FrameIo>(io: &mut Io, to: Io::Path, bytes: usize) -> Result<(f64, f64)> {
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(250) {
        for _ in 0..32 {
            if let Some(room) = io.room() {
                room[..3].copy_from_slice(&[1, 0, FUNCTION]);
                io.stage(to, bytes);
            }
        }
        io.flush();
    }
    while !io.flush() {}
    let took = since.elapsed().as_secs_f64();
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..20 {
        io.room().ok_or("no room")?[..3].copy_from_slice(&[2, 0, FUNCTION]);
        io.stage(to, 64);
        io.flush();
        let asked = Instant::now();
        let mut count = None;
        while count.is_none() && asked.elapsed() < Duration::from_millis(100) {
            io.receive(1, |_, frame| {
                if frame[0] == 2 {
                    count = Some(u64::from_le_bytes(frame[8..16].try_into().expect("eight")));
                }
            });
        }
        if let Some(count) = count {
            let rate = count as f64 / took;
            return Ok((rate, rate * bytes as f64 / 1e6));
        }
    }
    Err("no count".into())
}
