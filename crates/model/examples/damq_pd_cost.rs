//! What the DAMQ-PD model costs: simulated cycles for each second of processor time, of the buffer alone and of the whole machine.

use std::time::Instant;

use bellwire_model::damq_pd::{
    Config, DescriptorBuffer, Load, Machine, Organisation, Way, Word, Write,
};
use bellwire_model::units::Time;

fn main() {
    const CYCLES: u64 = 50_000_000;
    let began = Instant::now();
    let mut buffer = DescriptorBuffer::new(Organisation::DamqPd, 64, 1024, 128);
    let mut left = 0;
    for cycle in 0..CYCLES {
        let port = (cycle / 4 * 37 % 64) as u8;
        let word = Word { bits: cycle, last: cycle % 4 == 3 };
        left += u64::from(buffer.cycle(Some(Write { port, way: Way::Pio, word }), true).is_some());
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "buffer, a word in and one out in each cycle ({left} out): {:.0} M cycles/s",
        CYCLES as f64 / seconds / 1e6
    );
    for ports in [1, 4, 64] {
        let mut config = Config::paper();
        config.nic.ports = ports;
        let mut machine = Machine::new(&config, &vec![Load::SATURATED; ports], 1)
            .expect("the paper's interface is sound");
        let began = Instant::now();
        machine.run(Time::from_ps(10_000_000_000)).expect("it does not stall");
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "machine of {ports} saturated ports ({} messages): {:.0} M cycles/s",
            machine.latencies_ns.len(),
            5.0 / seconds
        );
    }
}
