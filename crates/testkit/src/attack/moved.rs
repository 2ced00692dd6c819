//! Honest nodes with unusual numbers: what is believed of them, and what they are told.

use super::assault::Assault;
use super::frames::{Claim, refusal};
use super::ground::{Ground, PEER, SPARE, VICTIM};
use super::station::From;
use super::witness::{Witness, exchange, greet};
use crate::conformance::Patience;
use crate::network::Carrier;
use bellwire::{Address, Device, DeviceOptions, Error, Message, Status};
use bellwire_wire::frame::finish::RefuseReason;
use std::fmt::Debug;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// A peer with a chosen number closes at one place and opens at another. It is believed after its
/// old place did not answer.
pub fn a_node_that_moves(carrier: Carrier) {
    let ground = Ground::new(carrier);
    let number = Some(ground.chosen(0));
    let mut stage = ground.stage([ground.open(VICTIM, None), ground.open(PEER, number)]);
    let witness = Witness::of(&stage.nodes[VICTIM]);
    greet(&mut stage, [PEER, VICTIM]);
    exchange(&mut stage, [VICTIM, PEER]);
    for place in [SPARE, PEER] {
        drop(stage.nodes.remove(1));
        let [before] = witness.now(&mut stage, ["frames_elsewhere"]);
        stage.nodes.push(ground.open(place, number));
        greet(&mut stage, [1, VICTIM]);
        exchange(&mut stage, [VICTIM, 1]);
        let [after] = witness.now(&mut stage, ["frames_elsewhere"]);
        assert!(after > before, "the old place was asked");
    }
}

/// A number that is another host's address is refused when a device is opened with it, and when it
/// comes over the wire.
pub fn a_number_of_another_host() {
    let ground = Ground::new(Carrier::Udp);
    let foreign = ground.natural(SPARE);
    let error = ground.try_open(PEER, Some(foreign)).expect_err("it is another host's");
    let told = error.to_string();
    assert!(matches!(error, Error::BadDeviceName { .. }), "{told}");
    let whose = Ipv4Addr::from(foreign).to_string();
    assert!(told.contains(&whose) && told.contains("choose one below 2^24"), "{told}");
    let options = DeviceOptions::default().node(foreign);
    let name = format!("udp:{}", ground.ip(PEER));
    let error = Device::open_with(&name, &options).expect_err("the same by option");
    assert!(matches!(error, Error::BadDeviceName { .. }), "{error}");

    let mut stage = ground.stage([ground.open(VICTIM, None)]);
    let claim = Claim::latest(foreign, stage.nodes[VICTIM].device.node());
    let (mut station, mut assault) = (ground.hostile(), Assault::new(claim, From::Own));
    let mut patience = Patience::new();
    while assault.answers.refusals.is_empty() {
        assault.step(&mut station);
        stage.turn();
        patience.spend(|| format!("{:?}; {}", assault.answers, stage.story()));
    }
    assert_eq!(assault.answers.refusals[0], RefuseReason::Elsewhere);
    assert_eq!(assault.answers.accepts, 0);
}

/// A node that is refused because of its number ends its sends, and warns of what to do.
pub fn a_refused_number_is_told() {
    let ground = Ground::new(Carrier::Udp);
    let mut stage = ground.stage([ground.open(VICTIM, None)]);
    let socket = UdpSocket::bind((ground.ip(PEER), ground.port())).expect("a free port");
    socket.set_nonblocking(true).expect("an option");
    let to = Address::new(ground.natural(PEER), 0, 1);
    let warnings = Warnings::default();
    let heard = warnings.clone();
    let status = tracing::subscriber::with_default(warnings, || {
        let node = &mut stage.nodes[VICTIM];
        node.send(Message::inline(b"x").to(to));
        let (mut frame, mut patience) = ([0; 2_048], Patience::new());
        loop {
            if let Some(done) = node.poll() {
                return done.status;
            }
            if let Ok((length, source)) = socket.recv_from(&mut frame) {
                let refusal = refusal(&frame[..length], RefuseReason::Elsewhere);
                socket.send_to(&refusal, source).expect("it is there");
            }
            patience.spend(|| "the send never ends".into());
        }
    });
    assert_eq!(status, Status::Unreachable);
    let told = heard.0.lock().expect("no panic").join("; ");
    assert!(told.contains("refused the link") && told.contains("?node="), "{told}");
}

/// Keeps warnings of this thread.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().expect("no panic").push(line.0);
    }

    // Spans are not looked at.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// All fields of a warning.
#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        self.0 += &format!("{value:?} ");
    }
}
