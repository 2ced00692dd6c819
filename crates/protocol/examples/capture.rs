//! Writes a capture of frames of every kind, as Ethernet and as UDP, and prints what a dissector
//! should show for each. `cargo run -p bellwire-protocol --example capture -- OUT.pcapng >
//! expected.tsv`; tools/dissector.sh compares.

use std::fmt::Write as _;
use std::process::ExitCode;

use bellwire_protocol::Secret;
use bellwire_protocol::reliable::{
    Channel, Config, Endpoint, FunctionId, GateState, PathId, PeerId, Verdict,
};
use bellwire_wire::frame::challenge::ChallengeBody;
use bellwire_wire::frame::check::{is_sound, seal};
use bellwire_wire::frame::header::{FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::open::OpenBody;
use bellwire_wire::frame::record::{NEWS_BYTES, News, PacketWords};
use bellwire_wire::frame::section::{FLAG_CONTINUES, Section, SectionKind};
use bellwire_wire::frame::seek::SeekBody;
use bellwire_wire::frame::{ETHERTYPE, UDP_PORT_BASE};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("capture: name the file to write, for instance /tmp/bellwire.pcapng");
        return ExitCode::FAILURE;
    };
    let frames = conversation();
    let mut file = Vec::new();
    begin(&mut file);
    for frame in &frames {
        add(&mut file, &ethernet(frame));
        println!("{}", expectation(frame));
        add(&mut file, &udp(frame));
        println!("{}", expectation(frame));
    }
    match std::fs::write(&path, file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("capture: {path} cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Two endpoints and a third with another version; one frame is lost, one damaged, one comes in
/// parts.
fn conversation() -> Vec<Vec<u8>> {
    let address = |node| FunctionId { node, function: node as u8 };
    let config = Config::new(1500);
    let mut ends = [
        Endpoint::new(config, address(0), 5, Secret::from_seed(1)).expect("the settings are sound"),
        Endpoint::new(config, address(1), 6, Secret::from_seed(2)).expect("the settings are sound"),
        Endpoint::new(Config { versions: [7, 9], ..config }, address(2), 7, Secret::from_seed(3))
            .expect("the settings are sound"),
    ];
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let mut now_ns = 1;
    let mut turn = |ends: &mut [Endpoint; 3], now_ns: u64, lose: usize| {
        let mut buffer = [0; 1500];
        let mut sent = 0;
        loop {
            let mut is_idle = true;
            for from in 0..3 {
                while let Some(transmit) = ends[from].poll_transmit(now_ns, &mut buffer) {
                    is_idle = false;
                    sent += 1;
                    frames.push(buffer[..transmit.length].to_vec());
                    if sent != lose {
                        let mut sink =
                            |_: PeerId, _: Channel, _: [u64; 3], _: &[u8]| Verdict::Taken;
                        ends[transmit.path.0 as usize].handle_frame(
                            PathId(from as u64),
                            &buffer[..transmit.length],
                            now_ns,
                            &mut sink,
                        );
                    }
                }
            }
            if is_idle {
                break;
            }
        }
    };
    let peer = ends[0].connect(address(1), PathId(1), 1_000_000_000, now_ns).expect("a link");
    ends[0].connect(address(2), PathId(2), 1_000_000_000, now_ns).expect("a link");
    turn(&mut ends, now_ns, 0);
    ends[1].set_gate(9, GateState::Open);
    ends[0].gate(peer, 9);
    now_ns += 50_000;
    turn(&mut ends, now_ns, 0);
    for (number, length) in [0usize, 8, 8, 300, 4000, 8, 1400].into_iter().enumerate() {
        let channel = if number % 3 == 1 { Channel::Response } else { Channel::Request };
        let payload = vec![number as u8; length];
        let words = [(1 + number as u64) | ((number as u64) << 8), 3 | 9 << 32, 1 << (9 * number)];
        ends[0].send(peer, channel, words, &[], &payload[..]).expect("room for it");
    }
    // The first frame is lost; the others cause a selective acknowledgement.
    now_ns += 50_000;
    turn(&mut ends, now_ns, 1);
    ends[0].send(peer, Channel::Request, [6, 0x12345, 0], &[], &[0xee; 1300]).expect("room for it");
    now_ns += 50_000;
    turn(&mut ends, now_ns, 1);
    ends[0].set_frame_bytes(512);
    now_ns += 50_000_000;
    turn(&mut ends, now_ns, 0);
    ends[0].close(peer, now_ns);
    now_ns += 50_000;
    turn(&mut ends, now_ns, 0);
    // A frame of a forgotten link, and frames that devices exchange.
    let last = frames.iter().rfind(|frame| frame[1] & 0xf == FrameKind::Data as u8).cloned();
    let last = last.expect("there was data");
    let mut sink = |_: PeerId, _: Channel, _: [u64; 3], _: &[u8]| Verdict::Taken;
    ends[1].handle_frame(PathId(0), &last, now_ns, &mut sink);
    let mut buffer = [0; 1500];
    if let Some(transmit) = ends[1].poll_transmit(now_ns, &mut buffer) {
        frames.push(buffer[..transmit.length].to_vec());
    }
    for kind in [FrameKind::Seek, FrameKind::Here] {
        let body = SeekBody { from: 1, to: 0xfeed, frame_bytes: 1500, nonce: 0x7e57 }.emit();
        let mut frame = vec![0; HEADER_BYTES + body.len() + 4];
        let header = FrameHeader { length: frame.len() as u16, ..FrameHeader::new(kind, 2, 3, 0) };
        header.emit(&mut frame).expect("room for it");
        frame[HEADER_BYTES..HEADER_BYTES + body.len()].copy_from_slice(&body);
        seal(&mut frame).expect("room for it");
        frames.push(frame);
    }
    let mut damaged = last;
    damaged[20] ^= 4;
    frames.push(damaged);
    frames
}

/// The values that tools/dissector.sh reads, in its order, separated by tabs; several values of one
/// name by commas.
fn expectation(frame: &[u8]) -> String {
    let header = FrameHeader::parse(frame).expect("only sound headers are captured");
    let body = &frame[HEADER_BYTES..header.length as usize - 4];
    let [mut kinds, mut lengths, mut news, mut bitmap, mut incarnation] =
        [const { String::new() }; 5];
    let join = |text: &mut String, value: u64| {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{value}");
    };
    let [mut nonce, mut cookie] = [const { String::new() }; 2];
    let mut sections = String::new();
    match header.kind {
        FrameKind::Seek | FrameKind::Here => {
            nonce = format!("{:#018x}", SeekBody::parse(body).expect("our own").nonce);
        }
        FrameKind::Challenge => {
            cookie = format!("{:#018x}", ChallengeBody::parse(body).expect("our own").cookie);
        }
        FrameKind::Open | FrameKind::Accept => {
            let open = OpenBody::parse(body).expect("our own");
            incarnation = open.incarnation.to_string();
        }
        FrameKind::Data | FrameKind::Acknowledge => {
            let mut rest = body;
            while let Ok(Some((section, behind))) = Section::split(rest) {
                rest = behind;
                join(&mut sections, section.kind as u64);
                match section.kind {
                    SectionKind::Requests | SectionKind::Responses => {
                        let mut at = 0;
                        // A section that begins inside a packet cannot be read without the frame
                        // before.
                        let is_readable = section.flags & FLAG_CONTINUES == 0;
                        while let Some(bytes) = section.bytes.get(at..).filter(|_| is_readable) {
                            let Ok(Some((words, header))) = PacketWords::parse(bytes) else {
                                break;
                            };
                            let length = words.payload_bytes();
                            at += header + length as usize;
                            if at > section.bytes.len() {
                                break;
                            }
                            join(&mut kinds, words.0[0] & 0xff);
                            join(&mut lengths, length as u64);
                        }
                    }
                    SectionKind::News => {
                        for record in section.bytes.as_chunks::<NEWS_BYTES>().0 {
                            let (News::Gate { queue_pair, .. } | News::Ask { queue_pair }) =
                                News::parse(*record).expect("our own");
                            join(&mut news, queue_pair as u64);
                        }
                    }
                    SectionKind::Received => {
                        for byte in &section.bytes[4..] {
                            let _ = write!(bitmap, "{byte:02x}");
                        }
                    }
                    SectionKind::Part => {}
                }
            }
        }
        _ => {}
    }
    let status = is_sound(&frame[..header.length as usize]) as u8;
    format!(
        "{}\t{}\t{}\t{}\t{:#018x}\t{}\t{}\t{}\t{status}\t{sections}\t{kinds}\t{lengths}\t{news}\t{bitmap}\t{incarnation}\t{nonce}\t{cookie}",
        header.kind as u8,
        header.function,
        header.from,
        header.length,
        header.token,
        header.sequence,
        header.acknowledged,
        header.credit[0],
    )
}

fn ethernet(frame: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    bytes.extend(ETHERTYPE.to_be_bytes());
    bytes.extend(frame);
    // Padded to the shortest Ethernet frame, as interfaces do.
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

fn udp(frame: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let total = frame.len() as u16 + 28;
    bytes.extend([0x45, 0]);
    bytes.extend(total.to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
    bytes.extend((UDP_PORT_BASE + frame[3] as u16).to_be_bytes());
    bytes.extend((UDP_PORT_BASE + frame[2] as u16).to_be_bytes());
    bytes.extend((total - 20).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(frame);
    bytes
}

/// Section header and interface description (pcapng, draft-ietf-opsawg-pcapng, 4.1 and 4.2):
/// Ethernet, little-endian.
fn begin(file: &mut Vec<u8>) {
    block(
        file,
        0x0a0d_0d0a,
        &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255],
    );
    block(file, 1, &[1, 0, 0, 0, 0, 0, 0, 0]);
}

/// Enhanced packet block (4.3), at time 0.
fn add(file: &mut Vec<u8>, bytes: &[u8]) {
    let mut content = vec![0; 12];
    content.extend((bytes.len() as u32).to_le_bytes());
    content.extend((bytes.len() as u32).to_le_bytes());
    content.extend(bytes);
    content.resize(content.len().next_multiple_of(4), 0);
    block(file, 6, &content);
}

fn block(file: &mut Vec<u8>, kind: u32, content: &[u8]) {
    let length = content.len() as u32 + 12;
    file.extend(kind.to_le_bytes());
    file.extend(length.to_le_bytes());
    file.extend(content);
    file.extend(length.to_le_bytes());
}
