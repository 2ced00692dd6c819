//! Tests of the transmitter of TLPs, whose times and bytes are computed by hand.

use super::*;
use bellwire_wire::pcie::tlp::UNSUPPORTED;

/// A transmitter whose link takes everything.
struct Driven(PcieTx);

impl Driven {
    fn new() -> Driven {
        Driven(PcieTx::new(128, 128))
    }

    fn step(&mut self, input: In) -> Out {
        self.0.cycle(In { out_ready: true, device: 0x41, ..input })
    }

    /// The TLP that leaves next, as bytes, and the cycles until its first and its last beat.
    fn leaves(&mut self) -> Option<(Vec<u8>, [usize; 2])> {
        let (mut all, mut first) = (Vec::new(), None);
        for cycle in 0..20 {
            let out = self.step(In::default());
            if !out.out_valid {
                continue;
            }
            let lacks = usize::from(out.out_empty) * DW_BYTES;
            assert!(out.out_last || lacks == 0, "only the last beat lacks DWs");
            all.extend_from_slice(&bytes_of(out.out_data)[..LANES - lacks]);
            let first = *first.get_or_insert(cycle);
            if out.out_last {
                return Some((all, [first, cycle]));
            }
        }
        None
    }

    /// The TLP of a write of these bytes, whose values count from 1 on; none if it is refused.
    fn write(&mut self, address: u64, bytes: u16) -> Option<Vec<u8>> {
        let lead = address as usize % LANES;
        let mut lanes = vec![0; lead];
        lanes.extend((0..bytes).map(|at| (at + 1) as u8));
        lanes.resize(lanes.len().next_multiple_of(LANES).max(LANES), 0);
        let beats = lanes.len() / LANES;
        let (mut all, mut refused) = (Vec::new(), Vec::new());
        let mut note = |out: Out| {
            if out.out_valid {
                let lacks = usize::from(out.out_empty) * DW_BYTES;
                all.extend_from_slice(&bytes_of(out.out_data)[..LANES - lacks]);
            }
            refused.push(out.refused);
            out
        };
        let (chunks, _) = lanes.as_chunks::<LANES>();
        for (at, chunk) in chunks.iter().enumerate() {
            let write_data = Beat { bytes: *chunk, k: 0 }.words();
            let write = In {
                write_valid: true,
                write_last: at + 1 == beats,
                write_function: 5,
                write_address: address,
                write_bytes: bytes,
                write_data,
                ..In::default()
            };
            let out = note(self.step(write));
            assert!(out.write_ready && (at == 0 || !(out.read_ready || out.answer_ready)));
        }
        for _ in 0..3 {
            note(self.step(In::default()));
        }
        assert_eq!(refused.pop().map(|_| refused.len()), Some(beats + 2));
        let is_refused = refused.remove(beats);
        assert!(refused.iter().all(|&refused| !refused), "it is told once, in the next cycle");
        assert_eq!(all.is_empty(), is_refused);
        (!is_refused).then_some(all)
    }
}

fn read(read_address: u64, read_bytes: u16) -> In {
    In {
        read_valid: true,
        read_credit: true,
        read_function: 2,
        read_tag: 0x9c,
        read_address,
        read_bytes,
        ..In::default()
    }
}

/// Limits that no link has are refused, and the least and greatest ones are not.
#[test]
fn limits_are_those_of_links() {
    let builds = |reads, writes| std::panic::catch_unwind(|| PcieTx::new(reads, writes)).is_ok();
    assert!(builds(128, 4096) && builds(4096, 128));
    for wrong in [64, 192, 8192] {
        assert!(!builds(wrong, 128) && !builds(128, wrong));
    }
}

/// A read is one beat, in the next cycle. Its DWs and byte enables cover exactly its bytes, and an
/// address from 4 GiB on has a header of 4 DW.
#[test]
fn a_read_is_one_beat() {
    for (address, bytes, expected) in [
        (0x1000, 4, "00000001 020a9c0f 00001000"),
        (0x1003, 6, "00000003 020a9c18 00001000"),
        (0x1fff, 1, "00000001 020a9c08 00001ffc"),
        (0xffff_ff80, 128, "00000020 020a9cff ffffff80"),
        (0x1_0000_0002, 2, "20000001 020a9c0c 00000001 00000000"),
        (0xfe_dcba_9876, 127, "20000021 020a9c1c 000000fe dcba9874"),
    ] {
        let mut driven = Driven::new();
        let out = driven.step(read(address, bytes));
        assert!(out.read_ready && !out.out_valid);
        let (bytes, times) = driven.leaves().unwrap();
        assert_eq!(times, [0, 0]);
        let dwords = bytes.chunks(4).map(|dword| dword.iter().map(|byte| format!("{byte:02x}")));
        let text: Vec<String> = dwords.map(Iterator::collect).collect();
        assert_eq!(text.join(" "), expected);
        assert_eq!(driven.leaves(), None);
    }
}

/// A write has its bytes behind the header, whatever lanes they come on: each address in a beat,
/// each length, with both headers.
#[test]
fn a_write_has_its_bytes_behind_the_header() {
    let mut driven = Driven::new();
    for high in [0, 0x12_0000_0000] {
        for lane in 0..16 {
            for bytes in 1..=128 {
                let address = high + 0x2000 + lane;
                let tlp = driven.write(address, bytes).unwrap();
                let Ok(Header::Request(request)) = Header::parse(&tlp) else { panic!("{tlp:?}") };
                let expected = ByteSpan::new(address, bytes.into()).unwrap().to_dwords();
                let dwords = usize::from(expected.length_dw);
                assert!(request.is_write && !request.is_poisoned);
                assert_eq!((request.requester, request.tag), (0x41 << 3 | 5, 0));
                assert_eq!((request.class, request.attributes), (0, 0));
                let span = DwordSpan {
                    address: request.address,
                    length_dw: request.dwords,
                    first_enables: request.first,
                    last_enables: request.last,
                };
                assert_eq!(span, expected);
                let header = if high == 0 { 12 } else { 16 };
                assert_eq!(tlp.len(), header + 4 * dwords);
                let payload: Vec<u8> = (1..=bytes as u8).collect();
                let from = header + lane as usize % 4;
                assert_eq!(tlp[from..from + usize::from(bytes)], payload);
            }
        }
    }
}

/// What has no bytes, too many, or crosses a page makes no TLP, and is told. The next one leaves.
#[test]
fn what_cannot_be_a_tlp_makes_none() {
    let mut driven = Driven::new();
    for (address, bytes) in [(0x1000, 0), (0x1000, 129), (0x1ff0, 17), (0x1fff, 2)] {
        assert_eq!(driven.write(address, bytes), None);
        driven.step(read(address, bytes));
        assert!(driven.step(In::default()).refused);
        let out = driven.step(In::default());
        assert!(!out.refused && !out.out_valid);
        assert_eq!(driven.leaves(), None);
    }
    assert!(driven.write(0x1f80, 128).is_some() && driven.write(0x1fff, 1).is_some());
    // The limits of reads and of writes are apart.
    let mut apart = Driven(PcieTx::new(512, 256));
    assert!(apart.write(0x1000, 256).is_some() && apart.write(0x1000, 257).is_none());
    apart.step(read(0x1000, 512));
    assert!(apart.leaves().is_some());
    apart.step(read(0x1000, 513));
    assert_eq!(apart.leaves(), None);
}

/// An answer has the identity of the request, and a DW of data or none.
#[test]
fn an_answer_tells_whose_it_is() {
    let answer = In {
        answer_valid: true,
        answer_function: 1,
        answer_requester: 0x1234,
        answer_tag: 0x77,
        answer_class: 5,
        answer_attributes: 6,
        answer_status: UNSUPPORTED,
        answer_count: 3,
        answer_lower: 0x5d,
        answer_data: 0x4433_2211,
        ..In::default()
    };
    let expected = Completion {
        is_poisoned: false,
        class: 5,
        attributes: 6,
        completer: 0x41 << 3 | 1,
        status: UNSUPPORTED,
        byte_count: 3,
        requester: 0x1234,
        tag: 0x77,
        lower: 0x5d,
        dwords: 0,
    };
    let mut driven = Driven::new();
    assert!(driven.step(answer).answer_ready);
    let (bytes, _) = driven.leaves().unwrap();
    assert_eq!((bytes.len(), Header::parse(&bytes)), (12, Ok(Header::Completion(expected))));
    driven.step(In { answer_has_data: true, answer_count: 0, answer_status: 0, ..answer });
    let (bytes, _) = driven.leaves().unwrap();
    let expected = Completion { status: 0, byte_count: 4096, dwords: 1, ..expected };
    assert_eq!(Header::parse(&bytes), Ok(Header::Completion(expected)));
    assert_eq!(bytes[12..], [0x11, 0x22, 0x33, 0x44]);
}

/// Senders take turns, reads first after reset, and each is ready whether it asks or not. Without
/// room for reads the others go on.
#[test]
fn senders_take_turns() {
    let all = In {
        write_valid: true,
        write_last: true,
        write_address: 0x40,
        write_bytes: 4,
        answer_valid: true,
        ..read(0, 4)
    };
    let ready = |out: Out| [out.read_ready, out.write_ready, out.answer_ready];
    let mut driven = Driven::new();
    let order: Vec<_> = (0..4).map(|_| ready(driven.step(all))).collect();
    let [reads, writes, answers] = [[true, false, false], [false, true, false], [false; 3]];
    let answers = [answers[0], false, true];
    assert_eq!(order, [reads, writes, answers, reads]);
    let others = In { read_credit: false, ..all };
    let order: Vec<_> = (0..4).map(|_| ready(driven.step(others))).collect();
    assert_eq!(order, [writes, answers, writes, answers]);
    assert_eq!(ready(driven.step(In { read_credit: true, ..In::default() })), [true; 3]);
    // A write that asks does not keep those behind it from the turn of those before.
    let writing = In { read_valid: false, answer_valid: false, ..all };
    assert_eq!(ready(driven.step(writing)), [true, true, false]);
    assert_eq!(ready(driven.step(writing)), [true, true, true]);
}

/// A beat waits for the link, and nothing is taken meanwhile. A write whose header pushes it into
/// one beat more needs a cycle, and beats of others do not stand between its own.
#[test]
fn beats_wait_for_the_link() {
    let mut driven = Driven::new();
    driven.step(read(0x1000, 4));
    let stalled = In { out_ready: false, ..read(0x2000, 4) };
    for _ in 0..3 {
        let out = driven.0.cycle(stalled);
        assert!(out.out_valid && !out.read_ready && !out.write_ready && !out.answer_ready);
        assert_eq!(out.out_data[1], 0x10_0000);
    }
    assert!(driven.leaves().is_some());
    let write = In {
        write_valid: true,
        write_last: true,
        write_address: 0x1_0000_0000,
        write_bytes: 16,
        write_data: [7, 8],
        ..read(0, 4)
    };
    driven.step(In { read_valid: false, ..write });
    let out = driven.step(write);
    assert!(out.out_valid && !out.out_last && !out.read_ready && !out.write_ready);
    let stalled = driven.0.cycle(In { out_ready: false, ..write });
    assert!(stalled.out_last && stalled.out_data == [7, 8] && !stalled.read_ready);
    let out = driven.step(write);
    assert_eq!((out.out_valid, out.out_last, out.out_data, out.out_empty), (true, true, [7, 8], 0));
    assert!(out.read_ready);
}
