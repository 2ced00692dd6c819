//! Files for other programs: independent readers read each back here.

use std::collections::HashMap;

use crate::support::perfetto::{Event, Trace};
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{Single, single_on};
use bellwire_model::chpp::record::perfetto;
use bellwire_model::chpp::record::signals::Kind as SignalKind;
use bellwire_model::chpp::record::vcd::waveforms;
use bellwire_model::chpp::{Config, Machine};

/// One operation on a machine that records everything.
fn noted(kind: Kind, bytes: u64) -> (Single, Machine) {
    single_on(&Config::prototype(), kind, bytes, |machine| {
        machine.open_journal();
        machine.watch_signals();
        machine.capture_frames();
    })
    .unwrap()
}

/// A trace follows Perfetto's published schema, and its slices nest. Every block that the operation
/// passed has a track under its node. The steps of the packet that ended the operation add up
/// exactly to the end-to-end time.
#[test]
fn traces_follow_the_schema_and_add_up() {
    for (kind, bytes) in
        [(Kind::NapImmediate, 1), (Kind::NapIndirect, 2000), (Kind::Put, 4096), (Kind::Get, 777)]
    {
        let (single, machine) = noted(kind, bytes);
        let trace = Trace::read(&perfetto::trace(&machine)).unwrap();
        trace.check().unwrap();

        let mut on_the_way: Vec<(u64, u64)> = Vec::new();
        for event in &trace.events {
            if let Event::Begin { flow: Some(1), arguments, .. } = event {
                on_the_way.push((arguments["begins_ps"], arguments["length_ps"]));
            }
        }
        on_the_way.sort_unstable();
        let mut at = 0;
        for (begins, length) in on_the_way {
            assert_eq!(begins, at, "{kind:?}: the steps of the last packet meet");
            at += length;
        }
        let latency = single.latency.ps();
        // A send event may come later; the packets of a GET are those of the far side.
        assert!(at == latency, "{kind:?}: {at} ps on the way, {latency} ps end to end");

        for interval in &single.explanation.intervals {
            let name = interval.stage.to_string();
            let track = trace.tracks.values().find(|track| track.name == name);
            let parent = track.and_then(|track| track.parent).expect("a block has a track");
            assert!(trace.tracks[&parent].name.starts_with("node "));
        }
        let counters = trace.tracks.values().filter(|track| track.is_counter);
        assert!(counters.clone().any(|track| track.name == "port tags"));
        assert!(counters.count() > 40);
    }
}

/// A PUT is sent at node 0 and received at node 1. A GET is requested at node 0, read at node 1 and
/// received at node 0.
#[test]
fn blocks_stand_under_their_nodes() {
    let nodes_of = |kind, block: &str| {
        let (_, machine) = noted(kind, 512);
        let trace = Trace::read(&perfetto::trace(&machine)).unwrap();
        let tracks = trace.tracks.values().filter(|track| track.name == block && !track.is_counter);
        let mut nodes: Vec<String> =
            tracks.map(|track| trace.tracks[&track.parent.unwrap()].name.clone()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    };
    assert_eq!(nodes_of(Kind::Put, "data-memory"), ["node 0"]);
    assert_eq!(nodes_of(Kind::Put, "data-write"), ["node 1"]);
    assert_eq!(nodes_of(Kind::Get, "data-memory"), ["node 1"]);
    assert_eq!(nodes_of(Kind::Get, "data-write"), ["node 0"]);
    assert_eq!(nodes_of(Kind::Get, "descriptor-extract"), ["node 0", "node 1"]);
}

/// Canary: a trace is refused if it is truncated or has a field outside the schema. So is one with
/// a slice that has no end or lies on a counter's track.
#[test]
fn wrong_traces_are_refused() {
    let (_, machine) = noted(Kind::Put, 256);
    let right = perfetto::trace(&machine);
    Trace::read(&right).unwrap().check().unwrap();

    assert!(Trace::read(&right[..right.len() - 1]).is_err());
    // A packet with field 7, which that type does not have.
    let unknown = [&right[..], &[0x0a, 2, 7 << 3, 1]].concat();
    assert!(
        Trace::read(&unknown).unwrap_err().contains("field 7"),
        "{:?}",
        Trace::read(&unknown).err()
    );

    let mut endless = Trace::read(&right).unwrap();
    let end = endless.events.iter().position(|event| matches!(event, Event::End { .. })).unwrap();
    endless.events.remove(end);
    assert!(endless.check().is_err());

    let mut mixed = Trace::read(&right).unwrap();
    let counter = *mixed.tracks.iter().find(|(_, track)| track.is_counter).unwrap().0;
    for event in &mut mixed.events {
        if let Event::Begin { track, .. } = event {
            *track = counter;
        }
    }
    assert!(mixed.check().unwrap_err().contains("counter"));
}

/// A waveform reader's view: names, and then times, signals and their values.
type Waveforms = (Vec<String>, Vec<(u64, usize, u64)>);

fn read_waveforms(text: &str) -> Result<Waveforms, String> {
    let mut parser = vcd::Parser::new(text.as_bytes());
    let header = parser.parse_header().map_err(|error| error.to_string())?;
    if header.timescale != Some((1, vcd::TimescaleUnit::PS)) {
        return Err(format!("the unit of time is {:?}", header.timescale));
    }
    let (mut names, mut widths) = (Vec::new(), Vec::new());
    let mut numbers = HashMap::new();
    for node in header.items.iter().filter_map(scope) {
        for block in node.items.iter().filter_map(scope) {
            for item in &block.items {
                let vcd::ScopeItem::Var(variable) = item else { continue };
                let name =
                    format!("{}.{}.{}", node.identifier, block.identifier, variable.reference);
                if numbers.insert(variable.code, names.len()).is_some() {
                    return Err(format!("{name} has the code of another signal"));
                }
                names.push(name);
                widths.push(variable.size as usize);
            }
        }
    }
    let (mut now, mut changes) = (None, Vec::new());
    for command in parser {
        let (code, bits) = match command.map_err(|error| error.to_string())? {
            vcd::Command::Timestamp(time) => {
                if now.is_some_and(|now| now >= time) {
                    return Err(format!("time goes back to {time}"));
                }
                now = Some(time);
                continue;
            }
            vcd::Command::ChangeScalar(code, value) => (code, vec![value]),
            vcd::Command::ChangeVector(code, value) => (code, value.iter().collect()),
            vcd::Command::Begin(vcd::SimulationCommand::Dumpvars) | vcd::Command::End(_) => {
                continue;
            }
            other => return Err(format!("{other:?} does not belong here")),
        };
        let at = *numbers.get(&code).ok_or("a change of no signal")?;
        if bits.len() > widths[at] {
            return Err(format!("{} is wider than declared", names[at]));
        }
        let mut value = 0;
        for bit in bits {
            value = value << 1
                | match bit {
                    vcd::Value::V0 => 0,
                    vcd::Value::V1 => 1,
                    other => return Err(format!("{} is {other:?}", names[at])),
                };
        }
        changes.push((now.ok_or("a change before any time")?, at, value));
    }
    Ok((names, changes))
}

fn scope(item: &vcd::ScopeItem) -> Option<&vcd::Scope> {
    match item {
        vcd::ScopeItem::Scope(scope) => Some(scope),
        _ => None,
    }
}

/// Waveforms, read by an independent parser, match the machine's record change for change. They are
/// plausible: all queues are empty at the end, and tags were in use before.
#[test]
fn waveforms_are_what_was_noted() {
    let (_, machine) = noted(Kind::Put, 4096);
    let (names, changes) = read_waveforms(&waveforms(&machine)).unwrap();
    let signals = machine.signals().unwrap();
    let noted: Vec<(u64, usize, u64)> = signals
        .changes
        .iter()
        .map(|change| (change.time.ps(), change.signal as usize, change.value))
        .collect();
    assert_eq!(names.len(), signals.signals.len());
    assert_eq!(changes, noted);

    let mut last = vec![0; names.len()];
    let mut most = vec![0; names.len()];
    for (_, at, value) in changes {
        last[at] = value;
        most[at] = value.max(most[at]);
    }
    for (at, signal) in signals.signals.iter().enumerate() {
        let is_queue = signal.kind == SignalKind::Depth && !signal.name.contains("places");
        assert!(!is_queue || last[at] == 0, "{} holds {} at the end", names[at], last[at]);
    }
    let tags = names.iter().position(|name| name == "node_0.port.tags").unwrap();
    assert_eq!(most[tags], 32, "a PUT of 32 packets takes all tags");
    let refused = names.iter().position(|name| name == "node_0.doorbell.valid").unwrap();
    assert!(last[refused] == 0 && names.contains(&"node_1.upload.ready".to_owned()));
}

/// Canary: waveforms are refused if time goes back, values are too wide, or a signal is not
/// declared.
#[test]
fn wrong_waveforms_are_refused() {
    let (_, machine) = noted(Kind::Put, 256);
    let right = waveforms(&machine);
    read_waveforms(&right).unwrap();
    assert!(read_waveforms(&format!("{right}#5\n")).unwrap_err().contains("goes back"));
    assert!(
        read_waveforms(&format!("{right}#999999999\nb11111111111111111 \"\n"))
            .unwrap_err()
            .contains("wider")
    );
    assert!(
        read_waveforms(&format!("{right}#999999999\n1~~~~\n")).unwrap_err().contains("no signal")
    );
    assert!(read_waveforms(&right.replace("1 ps", "1 ns")).unwrap_err().contains("unit of time"));
}

/// A capture reader's view of a frame: the interface's name and link type, picoseconds, bytes.
pub type Captured = (String, i32, u64, Vec<u8>);

/// Reads a capture with an independent parser.
pub fn read_capture(bytes: &[u8]) -> Result<Vec<Captured>, String> {
    use pcap_parser::{Block, PcapNGOption, parse_block_le};
    let (mut left, mut interfaces, mut frames) = (bytes, Vec::new(), Vec::new());
    while !left.is_empty() {
        let (rest, block) = parse_block_le(left).map_err(|error| format!("{error:?}"))?;
        left = rest;
        match block {
            Block::SectionHeader(_) => {}
            Block::InterfaceDescription(interface) => {
                if interface.if_tsresol != 12 {
                    return Err("times are not in picoseconds".to_owned());
                }
                let name = interface.options.iter().find(|option| option.code.0 == 2);
                let name = name.and_then(|option: &PcapNGOption| option.as_str().ok());
                let name = name.ok_or("an interface without name")?;
                interfaces.push((name.to_owned(), interface.linktype.0));
            }
            Block::EnhancedPacket(packet) => {
                let (name, link) =
                    interfaces.get(packet.if_id as usize).ok_or("a frame of no interface")?;
                let time = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let data = packet.data.get(..packet.caplen as usize).ok_or("a frame is cut")?;
                frames.push((name.clone(), *link, time, data.to_vec()));
            }
            other => return Err(format!("{other:?} does not belong here")),
        }
    }
    Ok(frames)
}

/// Captures, read by an independent parser, hold every packet of every link. Network packets parse
/// and carry the sent data. Completions answer every read in full, with byte counts down to zero.
/// The data written into the receiver's memory is the sent data.
#[test]
fn captures_hold_what_went_over_the_links() {
    crate::limit::limited(|| {
        let bytes = 1000;
        let (_, machine) =
            single_on(&Config::prototype(), Kind::Put, bytes, Machine::capture_frames).unwrap();
        let frames =
            read_capture(&bellwire_model::chpp::record::frames::capture(&machine)).unwrap();
        assert!(frames.windows(2).all(|pair| pair[0].2 <= pair[1].2), "in the order of time");
        let sent: Vec<u8> =
            (0..bytes as usize).map(bellwire_model::chpp::experiments::single::pattern).collect();

        for wire in ["interface 0 to controller", "controller to interface 1"] {
            let mut carried = Vec::new();
            for (_, link, _, bytes) in frames.iter().filter(|frame| frame.0 == wire) {
                assert_eq!(*link, 147);
                let packet = bellwire_wire::packet::PacketRepr::parse(bytes).unwrap();
                carried.extend_from_slice(packet.payload);
            }
            assert_eq!(carried, sent, "{wire}");
        }
        // Reads that interface 0 sent: tag, and number of DWs.
        let dwords = |frame: &[u8]| (usize::from(frame[2]) & 3) << 8 | usize::from(frame[3]);
        let mut asked = std::collections::VecDeque::new();
        for (wire, _, _, frame) in &frames {
            if wire == "interface 0 to host" && frame[0] == 0x20 {
                assert_eq!(frame.len(), 16);
                asked.push_back((frame[6], dwords(frame)));
            }
        }
        assert_eq!(asked.len(), 1 + 8, "the descriptor, and 1000 B in pieces of 128");
        let mut left: HashMap<u8, usize> = asked.iter().copied().collect();
        for (wire, _, _, frame) in &frames {
            if wire == "host 0 to interface" && frame[0] == 0x4a {
                let tag = frame[10];
                assert_eq!(frame.len(), 12 + 4 * dwords(frame));
                let count = usize::from(frame[6]) << 8 | usize::from(frame[7]);
                assert_eq!(
                    count.div_ceil(4),
                    left[&tag],
                    "bytes of this and all later completions"
                );
                *left.get_mut(&tag).unwrap() -= dwords(frame);
            }
        }
        assert!(left.values().all(|dwords| *dwords == 0), "{left:?}");
        // Writes of interface 1: data, and the event of 32 B.
        let mut written = Vec::new();
        for (wire, _, _, frame) in &frames {
            if wire == "interface 1 to host" && frame[0] == 0x60 {
                written.extend_from_slice(&frame[16..]);
            }
        }
        assert_eq!(written[..sent.len()], sent[..]);
        assert_eq!(written.len(), sent.len() + 32);
        // The doorbell: a store into the window of function 0 of node 0.
        let doorbell = frames.iter().find(|frame| frame.3[0] == 0x60).unwrap();
        assert_eq!(
            (doorbell.0.as_str(), &doorbell.3[8..16]),
            ("host 0 to interface", &[0, 0, 1, 0, 0, 0, 0, 0][..])
        );
    });
}

/// Canary: a capture is refused if it is truncated or its frames name an undeclared interface.
#[test]
fn wrong_captures_are_refused() {
    crate::limit::limited(|| {
        let (_, machine) =
            single_on(&Config::prototype(), Kind::Put, 64, Machine::capture_frames).unwrap();
        let right = bellwire_model::chpp::record::frames::capture(&machine);
        read_capture(&right).unwrap();
        assert!(read_capture(&right[..right.len() - 3]).is_err());
        let mut stray = right.clone();
        let frame = bellwire_wire::pcapng::packet;
        frame(&mut stray, (99, 0), None, (&[], &[1, 2, 3]));
        assert!(read_capture(&stray).unwrap_err().contains("no interface"));
    });
}

/// Recording does not change the history.
#[test]
fn watching_changes_nothing() {
    let (watched, machine) = noted(Kind::Get, 5000);
    let (alone, other) = single_on(&Config::prototype(), Kind::Get, 5000, |_| {}).unwrap();
    assert_eq!(watched.latency, alone.latency);
    assert_eq!(machine.trace_hash(), other.trace_hash());
}
