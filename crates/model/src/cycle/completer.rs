//! `completer`: answers requests of the host (C-32, C-39; cHPP sections 3.4 and 4.1), as
//! `hardware/completer` builds it.
//!
//! A read of a register gets its value. Any other request is told to be unsupported, so no host
//! waits for ever.

use bellwire_wire::pcie::tlp::{SUCCESS, UNSUPPORTED};

use super::bell_decode::WINDOW_BITS;
use super::key_window::PAGE_SHIFT;
use super::pcie_rx::LOWER_BITS;
use super::pcie_tx::DW_BYTES;

/// Registers, at most.
pub const REGISTERS: usize = 16;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// By register: its value.
        value: [u32; REGISTERS] = 32 * REGISTERS,
        /// A request is offered.
        request_valid: bool = 1,
        /// It reads a DW of the window.
        request_is_read: bool = 1,
        /// Where in the window.
        request_address: u16 = WINDOW_BITS,
        /// Who asks.
        request_requester: u16 = 16,
        /// The request's tag.
        request_tag: u8 = 8,
        /// Its traffic class.
        request_class: u8 = 3,
        /// Its attributes.
        request_attributes: u8 = 3,
        /// Bytes that it wants; zero stands for 4096.
        request_count: u16 = 12,
        /// The low bits of the address of its first byte.
        request_lower: u8 = LOWER_BITS,
        /// The answer is taken, if one is offered.
        answer_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The request is taken.
        request_ready: bool = 1,
        /// An answer is offered; all below is zero without one.
        answer_valid: bool = 1,
        /// Who asked.
        answer_requester: u16 = 16,
        /// The tag of the request.
        answer_tag: u8 = 8,
        /// Its traffic class.
        answer_class: u8 = 3,
        /// Its attributes.
        answer_attributes: u8 = 3,
        /// What became of it.
        answer_status: u8 = 3,
        /// Bytes that it wanted.
        answer_count: u16 = 12,
        /// The low bits of the address of its first byte.
        answer_lower: u8 = LOWER_BITS,
        /// The answer has the value of a register.
        answer_has_data: bool = 1,
        /// That value; zero without one.
        answer_data: u32 = 32,
    }
}

/// The completer. A request that is taken in cycle `t` is answered from `t + 1` on, with the value
/// that its register had in `t`.
#[derive(Clone, Debug)]
pub struct Completer {
    registers: usize,
    /// The page of the window that has the registers.
    page: u16,
    /// The output's register.
    output: Out,
}

impl Completer {
    /// A completer with this many registers, in this page of the window.
    ///
    /// # Panics
    /// Unless there are 1 to 16 registers, and the window has that page.
    pub fn new(registers: usize, page: u16) -> Completer {
        assert!((1..=REGISTERS).contains(&registers), "1 to {REGISTERS} registers");
        assert!(page < 1 << (WINDOW_BITS - PAGE_SHIFT), "a page of the window");
        Completer { registers, page, output: Out::default() }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let request_ready = !self.output.answer_valid || input.answer_ready;
        let out = Out { request_ready, ..self.output };
        if request_ready {
            self.output = if input.request_valid { self.answer(&input) } else { Out::default() };
        }
        out
    }

    /// The answer to a request.
    fn answer(&self, input: &In) -> Out {
        let register = input.request_address % (1 << PAGE_SHIFT) / DW_BYTES as u16;
        let is_there = input.request_is_read
            && input.request_address >> PAGE_SHIFT == self.page
            && usize::from(register) < self.registers;
        Out {
            answer_valid: true,
            answer_requester: input.request_requester,
            answer_tag: input.request_tag,
            answer_class: input.request_class,
            answer_attributes: input.request_attributes,
            answer_status: if is_there { SUCCESS } else { UNSUPPORTED },
            answer_count: input.request_count,
            answer_lower: input.request_lower,
            answer_has_data: is_there,
            answer_data: if is_there { input.value[usize::from(register)] } else { 0 },
            ..Out::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKS: In = In {
        value: [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25],
        request_valid: true,
        request_is_read: true,
        request_address: 0x8000,
        request_requester: 0x1234,
        request_tag: 0x56,
        request_class: 5,
        request_attributes: 6,
        request_count: 3,
        request_lower: 0x41,
        answer_ready: true,
    };

    /// The answer to a request.
    fn answer(completer: &mut Completer, asks: In) -> Out {
        assert!(completer.cycle(asks).request_ready);
        let out = completer.cycle(In { request_valid: false, ..ASKS });
        assert!(out.answer_valid && out.request_ready);
        out
    }

    /// Sizes that gates cannot have are refused, and the least and greatest ones are not.
    #[test]
    fn sizes_are_bounded() {
        let builds = |count, page| std::panic::catch_unwind(|| Completer::new(count, page)).is_ok();
        assert!(builds(1, 0) && builds(16, 15));
        assert!(!builds(0, 8) && !builds(17, 8) && !builds(4, 16));
    }

    /// A read of a register gets its value, and the answer says whose it is.
    #[test]
    fn a_register_is_read() {
        let mut completer = Completer::new(16, 8);
        for register in 0..16 {
            let asks = In { request_address: 0x8000 + 4 * register, ..ASKS };
            let expected = Out {
                request_ready: true,
                answer_valid: true,
                answer_requester: 0x1234,
                answer_tag: 0x56,
                answer_class: 5,
                answer_attributes: 6,
                answer_status: SUCCESS,
                answer_count: 3,
                answer_lower: 0x41,
                answer_has_data: true,
                answer_data: 10 + u32::from(register),
            };
            assert_eq!(answer(&mut completer, asks), expected);
        }
        assert_eq!(completer.cycle(In::default()), Out { request_ready: true, ..Out::default() });
    }

    /// What is no read, and a read where there is no register, is unsupported.
    #[test]
    fn other_requests_are_unsupported() {
        let mut completer = Completer::new(5, 8);
        for asks in [
            In { request_is_read: false, ..ASKS },
            In { request_address: 0x8014, ..ASKS },
            In { request_address: 0x8ffc, ..ASKS },
            In { request_address: 0x7000, ..ASKS },
            In { request_address: 0x9000, ..ASKS },
            In { request_address: 0, ..ASKS },
        ] {
            let out = answer(&mut completer, asks);
            let told = (out.answer_status, out.answer_has_data, out.answer_data);
            assert_eq!(told, (UNSUPPORTED, false, 0), "{asks:?}");
            assert_eq!((out.answer_tag, out.answer_requester), (0x56, 0x1234));
        }
        let last = In { request_address: 0x8010, ..ASKS };
        assert_eq!(answer(&mut completer, last).answer_data, 14);
    }

    /// An answer stays until it is taken, as it was when its request was taken, and nothing else is
    /// taken meanwhile. One is taken in every cycle.
    #[test]
    fn an_answer_stays_until_it_is_taken() {
        let mut completer = Completer::new(8, 8);
        completer.cycle(ASKS);
        let changed = In { value: [99; 16], answer_ready: false, request_tag: 7, ..ASKS };
        for _ in 0..3 {
            let out = completer.cycle(changed);
            assert!(!out.request_ready && out.answer_valid);
            assert_eq!((out.answer_data, out.answer_tag), (10, 0x56));
        }
        let out = completer.cycle(In { answer_ready: true, ..changed });
        assert!(out.request_ready && out.answer_data == 10);
        let out = completer.cycle(ASKS);
        assert!(out.request_ready && (out.answer_data, out.answer_tag) == (99, 7));
    }
}
