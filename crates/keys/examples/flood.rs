//! `flood`: what a frame of a flood costs a function with a key, in nanoseconds. A flood has no
//! key, or repeats what it has recorded. It may begin no session and take no place.

use std::hint::black_box;
use std::time::Instant;

use bellwire_keys::{Counters, KEY_BYTES, Key, Keys, Limits, Sessions, public_of};
use bellwire_wire::frame::header::MAGIC;
use bellwire_wire::frame::keyed::{KEYED_HEADER_BYTES, SEALED_OVERHEAD_BYTES};

/// Frames of one measurement, and measurements of a median.
const FRAMES: u32 = 100_000;
const TIMES: usize = 9;
const NOW_NS: u64 = 1 << 34;
/// Peers of the longer list.
const LISTED: u8 = 64;

type Side = Sessions<u32>;

fn side(keys: Keys, seed: u64) -> Side {
    let mut state = seed;
    let entropy = Box::new(move |bytes: &mut [u8]| {
        bytes.fill_with(|| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 56) as u8
        });
    });
    Sessions::new(keys, Limits::default(), true, entropy)
}

/// A sealed frame for the other function; without a session this asks for one instead.
fn seal(side: &mut Side) -> Option<Vec<u8>> {
    let mut buffer = [0; 60 + SEALED_OVERHEAD_BYTES];
    buffer[KEYED_HEADER_BYTES..][..2].copy_from_slice(&[MAGIC, 4]);
    side.seal(1, &mut buffer, 60, &[], NOW_NS).map(|length| buffer[..length].to_vec())
}

/// The frames by which `near` asks `far` for a session, and its first sealed frame: a Knock, a
/// Hello, a sealed frame.
fn recorded(near: &mut Side, far: &mut Side) -> Option<[Vec<u8>; 3]> {
    let mut asked = Vec::new();
    for _ in 0..3 {
        if let Some(sealed) = seal(near) {
            let [knock, hello, ..] = &asked[..] else { return None };
            return Some([knock, hello, &sealed].map(Vec::clone));
        }
        while let Some((_, frame)) = near.poll_transmit() {
            far.open(0, &frame, NOW_NS);
            asked.push(frame);
            while let Some((_, answer)) = far.poll_transmit() {
                near.open(1, &answer, NOW_NS);
            }
        }
    }
    None
}

/// The median time of a frame from places of its own. Whatever is to be sent is taken away, as a
/// device does.
fn time(victim: &mut Side, frame: &[u8]) -> f64 {
    let mut times: Vec<f64> = (0..TIMES as u32)
        .map(|round| {
            let begin = Instant::now();
            for at in 0..FRAMES {
                let from = 2 + round * FRAMES + at;
                black_box(victim.open(from, black_box(frame), NOW_NS));
                while black_box(victim.poll_transmit()).is_some() {}
            }
            begin.elapsed().as_nanos() as f64 / f64::from(FRAMES)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[TIMES / 2]
}

/// Floods a function, and says what each kind of frame costs.
fn flood(name: &str, near: Keys, far: Keys) -> Result<(), String> {
    let (mut near, mut far) = (side(near, 3), side(far, 5));
    let [knock, hello, sealed] = recorded(&mut near, &mut far).ok_or("no session begins")?;
    let altered = |frame: &[u8]| {
        let mut frame = frame.to_vec();
        if let Some(last) = frame.last_mut() {
            *last ^= 1;
        }
        frame
    };
    let kinds = [
        ("a plain frame", vec![MAGIC; 60]),
        ("a Knock without a key", knock_of(side(Keys::shared(&[99; KEY_BYTES]), 7))?),
        ("a Knock that was recorded", knock),
        ("a Hello that was recorded, from elsewhere", hello),
        ("a sealed frame of 60 bytes, altered", altered(&sealed)),
    ];
    let before = (far.peer_count(), begun(far.counters()));
    for (kind, frame) in kinds {
        println!("{name}: {kind}: {:.0} ns", time(&mut far, &frame));
    }
    match (far.peer_count(), begun(far.counters())) {
        after if after == before => Ok(()),
        after => Err(format!("(peers, sessions, frames opened) were {before:?}, are {after:?}")),
    }
}

/// The first frame of a function that has another key.
fn knock_of(mut stranger: Side) -> Result<Vec<u8>, String> {
    let _ = seal(&mut stranger);
    stranger.poll_transmit().map(|(_, frame)| frame).ok_or_else(|| "no Knock".to_owned())
}

fn begun(counters: Counters) -> (u64, u64) {
    (counters.sessions_answered + counters.sessions_asked, counters.frames_opened)
}

fn main() -> Result<(), String> {
    let key: Key = [7; KEY_BYTES];
    flood("a shared key", Keys::shared(&key), Keys::shared(&key))?;
    let private = |number: u8| -> Key { [number; KEY_BYTES] };
    let all = || (1..=LISTED).map(|number| public_of(&private(number))).collect::<Vec<Key>>();
    let wrong = |_| "a public key is none".to_owned();
    let near = Keys::listed(&private(LISTED), &[public_of(&private(100))]).map_err(wrong)?;
    let far = Keys::listed(&private(100), &all()).map_err(wrong)?;
    flood("64 listed keys", near, far)
}
