use super::*;

/// A beat of the upload module.
fn upload(last: bool, address: u64) -> In {
    In {
        upload_valid: true,
        upload_last: last,
        upload_function: 5,
        upload_address: address,
        upload_bytes: 77,
        upload_data: [address, address + 1],
        out_ready: true,
        ..In::default()
    }
}

/// A record.
fn event(address: u64) -> In {
    let event_record = std::array::from_fn(|word| address + word as u64);
    In {
        event_valid: true,
        event_function: 3,
        event_address: address,
        event_record,
        out_ready: true,
        ..In::default()
    }
}

fn both(upload: In, event: In) -> In {
    let In { event_valid, event_function, event_address, event_record, .. } = event;
    In { event_valid, event_function, event_address, event_record, ..upload }
}

/// Whether a beat and a record are taken, and the address and the first word that are offered.
fn seen(out: Out) -> (bool, bool, Option<(u64, u64)>) {
    let offered = out.out_valid.then_some((out.out_address, out.out_data[0]));
    (out.upload_ready, out.event_ready, offered)
}

const IDLE: In = In {
    upload_valid: false,
    upload_last: false,
    upload_function: 0,
    upload_address: 0,
    upload_bytes: 0,
    upload_data: [0; BEAT_WORDS],
    event_valid: false,
    event_function: 0,
    event_address: 0,
    event_record: [0; EVENT_WORDS],
    out_ready: true,
};

/// A beat leaves in the next cycle as it came, and stays until it is taken. Without one, all is
/// zero.
#[test]
fn a_beat_leaves_as_it_came() {
    let mut arb = WriteArb::default();
    assert_eq!(arb.cycle(upload(true, 0x1234)), Out { upload_ready: true, ..Out::default() });
    let expected = Out {
        upload_ready: false,
        event_ready: false,
        out_valid: true,
        out_last: true,
        out_function: 5,
        out_address: 0x1234,
        out_bytes: 77,
        out_data: [0x1234, 0x1235],
    };
    for _ in 0..3 {
        assert_eq!(arb.cycle(In { out_ready: false, ..upload(false, 0x99) }), expected);
    }
    assert_eq!(arb.cycle(IDLE), Out { upload_ready: true, ..expected });
    assert_eq!(arb.cycle(IDLE), Out { upload_ready: true, ..Out::default() });
}

/// A record leaves as two beats of one write of 32 bytes, and is taken with the second one.
#[test]
fn a_record_leaves_as_two_beats() {
    let mut arb = WriteArb::default();
    assert_eq!(seen(arb.cycle(event(0x40))), (true, false, None));
    let first = Out {
        upload_ready: false,
        event_ready: false,
        out_valid: true,
        out_last: false,
        out_function: 3,
        out_address: 0x40,
        out_bytes: 32,
        out_data: [0x40, 0x41],
    };
    assert_eq!(arb.cycle(In { out_ready: false, ..event(0x40) }), first);
    assert_eq!(arb.cycle(event(0x40)), Out { event_ready: true, ..first });
    let second = Out { out_last: true, out_data: [0x42, 0x43], ..first };
    assert_eq!(arb.cycle(In { out_ready: false, ..event(0x60) }), second);
    // The next one follows without a pause.
    assert_eq!(arb.cycle(event(0x60)), Out { upload_ready: true, ..second });
    assert_eq!(seen(arb.cycle(event(0x60))), (false, true, Some((0x60, 0x60))));
    assert_eq!(seen(arb.cycle(IDLE)), (true, false, Some((0x60, 0x62))));
}

/// A write is whole, however long its next beat takes: nothing stands between its beats.
#[test]
fn a_write_is_whole() {
    let mut arb = WriteArb::default();
    let waits = event(0x40);
    arb.cycle(upload(false, 0x100));
    assert_eq!(seen(arb.cycle(waits)), (true, false, Some((0x100, 0x100))));
    for _ in 0..4 {
        assert_eq!(seen(arb.cycle(waits)), (true, false, None));
    }
    assert_eq!(seen(arb.cycle(both(upload(false, 0x100), waits))), (true, false, None));
    assert!(!seen(arb.cycle(both(upload(true, 0x100), waits))).1);
    // Then the record goes, and the next write waits for both of its beats.
    let next = both(upload(true, 0x200), waits);
    assert_eq!(seen(arb.cycle(next)), (false, false, Some((0x100, 0x100))));
    assert_eq!(seen(arb.cycle(next)), (false, true, Some((0x40, 0x40))));
    assert_eq!(seen(arb.cycle(upload(true, 0x200))), (true, false, Some((0x40, 0x42))));
    // A record waits for its second beat, and nothing goes before that.
    arb.cycle(waits);
    assert_eq!(seen(arb.cycle(upload(true, 0x300))), (false, true, Some((0x40, 0x40))));
    assert_eq!(seen(arb.cycle(upload(true, 0x300))), (false, true, None));
    assert_eq!(seen(arb.cycle(waits)), (false, true, None));
}

/// Whole writes take turns if both wait; the upload module goes first after reset. One that is
/// alone goes at once, and has then had its turn.
#[test]
fn writes_take_turns() {
    let mut arb = WriteArb::default();
    let waits = both(upload(true, 0x100), event(0x40));
    let mut firsts = (0..13).map(|_| arb.cycle(waits)).map(|out| out.out_address);
    assert_eq!(firsts.next(), Some(0));
    let rest: Vec<u64> = firsts.collect();
    assert_eq!(rest, [[0x100, 0x40, 0x40]; 4].concat());
    // The upload module was served last: alone it goes again, and then the record does.
    let mut arb = WriteArb::default();
    for _ in 0..2 {
        assert!(arb.cycle(upload(true, 0x100)).upload_ready);
    }
    assert!(!arb.cycle(waits).upload_ready);
    assert!(arb.cycle(waits).event_ready);
    // A record alone goes again, too.
    let mut arb = WriteArb::default();
    for _ in 0..2 {
        assert!(!arb.cycle(event(0x40)).event_ready);
        assert!(arb.cycle(event(0x40)).event_ready);
    }
    assert!(arb.cycle(waits).upload_ready);
}
