use super::super::completer::REGISTERS;
use super::*;
use bellwire_wire::registers::COUNTS;

/// A store of one whole word.
fn store(store_address: u16, word: u64) -> In {
    let mut store_data = [0xa5a5_a5a5_a5a5_a5a5; BEAT_WORDS];
    store_data[usize::from(store_address) % LANES / 8] = word;
    In {
        store_valid: true,
        store_last: true,
        store_address,
        store_bytes: 8,
        store_data,
        ..In::default()
    }
}

/// What a store of this writes. It does not go on.
fn written(says: RegisterRepr) -> Out {
    let mut regs = HostRegs::new(32);
    let (address, word) = says.emit().expect("it fits");
    assert_eq!(regs.cycle(store(address, word)), Out::default());
    let out = regs.cycle(In::default());
    assert_eq!(regs.cycle(In::default()), Out::default(), "it is written once");
    out
}

/// Each kind of store is written to its block in the next cycle, as it was stored.
#[test]
fn each_store_is_written_to_its_block() {
    let out = Out::default();
    let window = Out {
        keys_valid: true,
        keys_window: true,
        keys_function: 5,
        keys_base: 0xabc_def0,
        keys_pages: 1 << 28,
        ..out
    };
    let says = RegisterRepr::Window { function: 5, base: 0xabc_def0, pages: 1 << 28 };
    assert_eq!(written(says), window);
    let key = Out { keys_valid: true, keys_pair: 21, keys_opens: true, keys_key: 0xc3, ..out };
    assert_eq!(written(RegisterRepr::Key { pair: 21, key: Some(0xc3) }), key);
    let none = Out { keys_valid: true, keys_pair: 22, ..out };
    assert_eq!(written(RegisterRepr::Key { pair: 22, key: None }), none);
    let ring = Out {
        rings_valid: true,
        rings_opens: true,
        rings_ring: 43,
        rings_base: 0x7_1234_5678,
        rings_count: 4096,
        ..out
    };
    let says = RegisterRepr::Ring { ring: 43, base: 0x7_1234_5678, entries: 4096 };
    assert_eq!(written(says), ring);
    let report = Out { rings_valid: true, rings_ring: 43, rings_count: 8191, ..out };
    assert_eq!(written(RegisterRepr::RingReport { ring: 43, count: 8191 }), report);
    let list = Out {
        slots_valid: true,
        slots_opens: true,
        slots_pair: 30,
        slots_page: 0xfed_cba9,
        slots_count: 256,
        ..out
    };
    let says = RegisterRepr::List { pair: 30, page: 0xfed_cba9, entries: 256 };
    assert_eq!(written(says), list);
    let report = Out { slots_valid: true, slots_pair: 30, slots_count: 511, ..out };
    assert_eq!(written(RegisterRepr::ListReport { pair: 30, count: 511 }), report);
}

/// Doorbells, and stores into pages that are nobody's, go on in the same cycle.
#[test]
fn other_stores_go_on() {
    let mut regs = HostRegs::new(32);
    for address in [0, 0x7000, 0x0008, 0x77f8, 0x9000, 0xf800] {
        assert!(regs.cycle(store(address, 0)).bell_valid, "{address:#x}");
    }
    assert_eq!(regs.cycle(In::default()), Out::default());
    // All beats of a store go where its first one does.
    let first = In { store_last: false, store_bytes: 32, ..store(0x7ff0, 1) };
    assert!(regs.cycle(In { store_address: 0x77f0, ..first }).bell_valid);
    assert!(regs.cycle(store(0x8700, 0)).bell_valid);
    assert!(!regs.cycle(first).bell_valid);
    assert!(!regs.cycle(In { store_last: false, ..store(0, 1) }).bell_valid);
    assert!(!regs.cycle(store(0, 1)).bell_valid);
    let out = regs.cycle(store(0, 1));
    assert!(out.bell_valid);
    assert_eq!(Out { bell_valid: false, ..out }, Out { dropped: 1, ..Out::default() });
}

/// What is no register, no whole word, or has bits that must be zero is dropped and counted, once.
#[test]
fn wrong_stores_are_dropped() {
    let mut regs = HostRegs::new(2);
    let (ring, word) = RegisterRepr::Ring { ring: 3, base: 1, entries: 2 }.emit().expect("it fits");
    let wrong = [
        store(0x8000, 0),
        store(0x8ff8, 0),
        store(0x0860, 0),
        store(0x7ff8, 0),
        store(ring, word | 1),
        store(ring + 4, word),
        In { store_bytes: 4, ..store(ring, word) },
        In { store_bytes: 16, ..store(ring, word) },
        In { store_bytes: 0, ..store(ring, word) },
    ];
    for (before, wrong) in wrong.into_iter().enumerate() {
        assert_eq!(regs.cycle(wrong).dropped, before as u32 % 4);
        let dropped = (before as u32 + 1) % 4;
        assert_eq!(regs.cycle(In::default()), Out { dropped, ..Out::default() }, "{wrong:?}");
    }
    // Nothing comes without `store_valid`, and nothing ends before the last beat.
    let quiet = In { store_valid: false, ..store(ring, word) };
    regs.cycle(quiet);
    regs.cycle(In { store_last: false, ..store(ring, word) });
    assert_eq!(regs.cycle(store(ring, word)), Out { dropped: 1, ..Out::default() });
    assert_eq!(regs.cycle(In::default()), Out { dropped: 2, ..Out::default() });
}

/// Each count counts its own, and there is a register for each value that software reads.
#[test]
fn counts_are_apart() {
    let mut regs = HostRegs::new(32);
    for refused in [[true, false, false], [false, true, false], [false, false, true]] {
        regs.cycle(In { refused, ..In::default() });
    }
    regs.cycle(In { tlp_dropped: true, ..In::default() });
    regs.cycle(In { tlp_dropped: true, tlp_refused: true, ..In::default() });
    let expected = Out { refusals: 3, tlps_dropped: 2, tlps_refused: 1, ..Out::default() };
    assert_eq!(regs.cycle(In::default()), expected);
    assert!(COUNTS.len() <= REGISTERS);
}

/// A host that opens all by stores alone: the window, the ring and the list are those that it
/// named. What cannot be is refused by its block, and counted here.
#[test]
fn blocks_behind_open_what_was_stored() {
    use super::super::event_ring::EventRing;
    use super::super::key_window::{self, KeyWindow};
    use super::super::slot_cache::SlotCache;

    let mut regs = HostRegs::new(32);
    let mut keys = KeyWindow::new(8, 32, 32);
    let mut rings = EventRing::new(64, event_ring::COUNT_BITS);
    let mut slots = SlotCache::new(32, 32, 16, slot_cache::COUNT_BITS);
    let mut refused = [false; 3];
    let mut counted = 0;
    let stores = [
        RegisterRepr::Window { function: 2, base: 5, pages: 3 },
        RegisterRepr::Window { function: 3, base: u32::MAX >> 4, pages: 2 },
        RegisterRepr::Ring { ring: 17, base: 64, entries: 8 },
        RegisterRepr::RingReport { ring: 17, count: 1 },
        RegisterRepr::List { pair: 9, page: 7, entries: 16 },
        RegisterRepr::ListReport { pair: 9, count: 4 },
        RegisterRepr::ListReport { pair: 10, count: 4 },
    ];
    for says in stores.into_iter().map(Some).chain([None; 4]) {
        let input = says.map(|says| says.emit().expect("it fits"));
        let input = input.map_or(In::default(), |(address, word)| store(address, word));
        let out = regs.cycle(In { refused, ..input });
        counted = out.refusals;
        refused[0] = keys
            .cycle(key_window::In {
                host_valid: out.keys_valid,
                host_window: out.keys_window,
                host_function: out.keys_function,
                host_base: out.keys_base,
                host_pages: out.keys_pages,
                host_pair: out.keys_pair,
                host_opens: out.keys_opens,
                host_key: out.keys_key,
                ..Default::default()
            })
            .refused;
        refused[1] = rings
            .cycle(event_ring::In {
                host_valid: out.rings_valid,
                host_opens: out.rings_opens,
                host_ring: out.rings_ring,
                host_base: out.rings_base,
                host_count: out.rings_count,
                ..Default::default()
            })
            .refused;
        refused[2] = slots
            .cycle(slot_cache::In {
                host_valid: out.slots_valid,
                host_opens: out.slots_opens,
                host_pair: out.slots_pair,
                host_page: out.slots_page,
                host_count: out.slots_count,
                ..Default::default()
            })
            .refused;
    }
    // A window behind the last page, a report of a record that was never written, and one of a
    // list that is closed.
    assert_eq!(counted, 3);
    let asks = |target_address| key_window::In {
        target_valid: true,
        target_function: 2,
        target_address,
        target_length: 1,
        ..Default::default()
    };
    keys.cycle(asks(0x7fff));
    assert!(keys.cycle(asks(0x8000)).target_fits);
    assert!(!keys.cycle(key_window::In::default()).target_fits);
    let ring = |in_ring| event_ring::In { in_ring, ..Default::default() };
    assert!(rings.cycle(ring(17)).in_ready && rings.cycle(ring(16)).lacks_ring);
    let list = |take_pair| slot_cache::In { take_pair, ..Default::default() };
    assert!(!slots.cycle(list(9)).lacks_list && slots.cycle(list(10)).lacks_list);
}
