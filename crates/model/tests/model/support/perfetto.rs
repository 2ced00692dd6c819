//! Reads a Perfetto trace strictly: every field must be in Perfetto's published schema
//! (protos/perfetto/trace, of 2026) with its wire type.
//!
//! The package registries do not offer Perfetto's own parser, the trace processor, so the tests use
//! this one. `tools/perfetto.sh` reads a trace with the schema that Perfetto ships in its Python
//! package.

use std::collections::{BTreeMap, HashMap};

/// The content of a field.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Holds {
    Number,
    Text,
    Fixed64,
    Message(&'static str),
}

/// The part of the schema in use: message, field, its name, its content.
const SCHEMA: &[(&str, u64, &str, Holds)] = &[
    ("Trace", 1, "packet", Holds::Message("TracePacket")),
    ("TracePacket", 8, "timestamp", Holds::Number),
    ("TracePacket", 10, "trusted_packet_sequence_id", Holds::Number),
    ("TracePacket", 11, "track_event", Holds::Message("TrackEvent")),
    ("TracePacket", 60, "track_descriptor", Holds::Message("TrackDescriptor")),
    ("TrackDescriptor", 1, "uuid", Holds::Number),
    ("TrackDescriptor", 2, "name", Holds::Text),
    ("TrackDescriptor", 5, "parent_uuid", Holds::Number),
    ("TrackDescriptor", 8, "counter", Holds::Message("CounterDescriptor")),
    ("TrackDescriptor", 11, "child_ordering", Holds::Number),
    ("TrackDescriptor", 12, "sibling_order_rank", Holds::Number),
    ("CounterDescriptor", 3, "unit", Holds::Number),
    ("TrackEvent", 4, "debug_annotations", Holds::Message("DebugAnnotation")),
    ("TrackEvent", 9, "type", Holds::Number),
    ("TrackEvent", 11, "track_uuid", Holds::Number),
    ("TrackEvent", 22, "categories", Holds::Text),
    ("TrackEvent", 23, "name", Holds::Text),
    ("TrackEvent", 30, "counter_value", Holds::Number),
    ("TrackEvent", 47, "flow_ids", Holds::Fixed64),
    ("DebugAnnotation", 3, "uint_value", Holds::Number),
    ("DebugAnnotation", 10, "name", Holds::Text),
];

#[derive(Debug)]
enum Value {
    Number(u64),
    Text(String),
    Message(Vec<(&'static str, Value)>),
}

impl Value {
    fn fields(&self) -> &[(&'static str, Value)] {
        if let Value::Message(fields) = self { fields } else { &[] }
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.fields().iter().find_map(|(field, value)| match value {
            Value::Number(number) if *field == name => Some(*number),
            _ => None,
        })
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.fields().iter().find_map(|(field, value)| match value {
            Value::Text(text) if *field == name => Some(text.as_str()),
            _ => None,
        })
    }

    fn message(&self, name: &str) -> Option<&Value> {
        self.fields().iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }
}

/// Reads a message of a type.
fn message(of: &str, bytes: &[u8]) -> Result<Value, String> {
    let mut left = bytes;
    let mut fields = Vec::new();
    while !left.is_empty() {
        let tag = varint(&mut left)?;
        let (field, wire) = (tag >> 3, tag & 7);
        let &(_, _, name, holds) = SCHEMA
            .iter()
            .find(|entry| entry.0 == of && entry.1 == field)
            .ok_or(format!("{of} has no field {field}"))?;
        let value = match (holds, wire) {
            (Holds::Number, 0) => Value::Number(varint(&mut left)?),
            (Holds::Fixed64, 1) => {
                let (bytes, rest) = left.split_first_chunk().ok_or("cut off")?;
                left = rest;
                Value::Number(u64::from_le_bytes(*bytes))
            }
            (Holds::Text, 2) => {
                let text = String::from_utf8(delimited(&mut left)?.to_vec());
                Value::Text(text.map_err(|_| "a text is not UTF-8")?)
            }
            (Holds::Message(inner), 2) => message(inner, delimited(&mut left)?)?,
            _ => return Err(format!("{of}.{name} has wire type {wire}")),
        };
        fields.push((name, value));
    }
    Ok(Value::Message(fields))
}

fn delimited<'a>(left: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let length = varint(left)? as usize;
    let (bytes, rest) = left.split_at_checked(length).ok_or("cut off")?;
    *left = rest;
    Ok(bytes)
}

fn varint(left: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = left.split_first().ok_or("cut off")?;
        *left = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a number is too long".to_owned())
}

/// A track.
#[derive(Debug)]
pub struct Track {
    /// Its name.
    pub name: String,
    /// Its parent track.
    pub parent: Option<u64>,
    /// Whether it has values instead of slices.
    pub is_counter: bool,
}

/// An event, in the order of the file.
#[derive(Debug)]
pub enum Event {
    /// A slice begins: its track, nanoseconds, the flow that it belongs to, and its debug
    /// annotations.
    Begin { track: u64, time: u64, flow: Option<u64>, arguments: HashMap<String, u64> },
    /// The innermost slice of the track ends.
    End { track: u64, time: u64 },
    /// A counter has another value.
    Count { track: u64, time: u64 },
}

/// A whole trace.
#[derive(Debug)]
pub struct Trace {
    /// Tracks by their number.
    pub tracks: BTreeMap<u64, Track>,
    /// Events.
    pub events: Vec<Event>,
}

impl Trace {
    /// Reads a file.
    pub fn read(bytes: &[u8]) -> Result<Trace, String> {
        let mut trace = Trace { tracks: BTreeMap::new(), events: Vec::new() };
        for (_, packet) in message("Trace", bytes)?.fields() {
            if packet.number("trusted_packet_sequence_id").is_none_or(|sequence| sequence == 0) {
                return Err("a packet of no sequence".to_owned());
            }
            if let Some(descriptor) = packet.message("track_descriptor") {
                trace.describe(descriptor)?;
            } else if let Some(event) = packet.message("track_event") {
                let time = packet.number("timestamp").ok_or("an event without time")?;
                trace.events.push(read_event(event, time)?);
            } else {
                return Err("a packet without content".to_owned());
            }
        }
        Ok(trace)
    }

    fn describe(&mut self, descriptor: &Value) -> Result<(), String> {
        let uuid =
            descriptor.number("uuid").filter(|uuid| *uuid != 0).ok_or("a track without number")?;
        let parent = descriptor.number("parent_uuid");
        if parent.is_some_and(|parent| !self.tracks.contains_key(&parent)) {
            return Err(format!("track {uuid} comes before its parent"));
        }
        let track = Track {
            name: descriptor.text("name").ok_or("a track without name")?.to_owned(),
            parent,
            is_counter: descriptor.message("counter").is_some(),
        };
        if self.tracks.insert(uuid, track).is_some() {
            return Err(format!("two tracks are number {uuid}"));
        }
        Ok(())
    }

    /// Checks rules beyond the schema: times do not go back, events lie on tracks of their kind,
    /// slices begin before they end, and slices nest.
    pub fn check(&self) -> Result<(), String> {
        let mut open: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut now = 0;
        for event in &self.events {
            let (track, time, counts) = match *event {
                Event::Begin { track, time, .. } | Event::End { track, time } => {
                    (track, time, false)
                }
                Event::Count { track, time } => (track, time, true),
            };
            if time < now {
                return Err(format!("time goes back from {now} to {time}"));
            }
            now = time;
            let known = self.tracks.get(&track).ok_or(format!("no track {track}"))?;
            if known.is_counter != counts {
                return Err(format!("{} mixes slices and counter values", known.name));
            }
            let slices = open.entry(track).or_default();
            match event {
                Event::Begin { .. } if !slices.is_empty() => {
                    return Err(format!("slices of {} overlap at {time}", known.name));
                }
                Event::Begin { .. } => slices.push(time),
                Event::End { .. } => {
                    slices.pop().ok_or(format!("nothing ends on {} at {time}", known.name))?;
                }
                Event::Count { .. } => {}
            }
        }
        match open.iter().find(|(_, slices)| !slices.is_empty()) {
            Some((track, _)) => Err(format!("a slice of {} does not end", self.tracks[track].name)),
            None => Ok(()),
        }
    }
}

fn read_event(event: &Value, time: u64) -> Result<Event, String> {
    let track = event.number("track_uuid").ok_or("an event on no track")?;
    // SLICE_BEGIN, SLICE_END, COUNTER.
    match event.number("type") {
        Some(1) => {
            event.text("name").ok_or("a slice without name")?;
            let annotations = event.fields().iter().filter(|field| field.0 == "debug_annotations");
            let argument = |(_, value): &(&str, Value)| {
                Some((value.text("name")?.to_owned(), value.number("uint_value")?))
            };
            let arguments = annotations.filter_map(argument).collect();
            Ok(Event::Begin { track, time, flow: event.number("flow_ids"), arguments })
        }
        Some(2) => Ok(Event::End { track, time }),
        Some(4) if event.number("counter_value").is_some() => Ok(Event::Count { track, time }),
        other => Err(format!("an event of type {other:?}")),
    }
}
