// A verilated bench as a library, for the device `rtl:chpp` (crates/rtl/src/library.rs). Ports are
// packed, in words of 64 bits with the lowest one first.
#include <cstdint>
#include <cstring>
#include <new>

#include BENCH_HEADER
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace {
struct Interface {
    VerilatedContext context;
    BENCH bench{&context};

    // What stands at the outputs in this cycle, which the next clock edge ends.
    void settle(bool reset) {
        bench.rst = reset;
        bench.clk = 0;
        bench.eval();
    }

    void edge() {
        bench.clk = 1;
        bench.eval();
    }
};
}  // namespace

extern "C" {
uint64_t bellwire_rtl_layout() { return LAYOUT; }

void* bellwire_rtl_open() {
    auto* const interface = new (std::nothrow) Interface;
    if (interface == nullptr) return nullptr;
    std::memset(&interface->bench.in, 0, sizeof interface->bench.in);
    for (int cycle = 0; cycle < 4; ++cycle) {
        interface->settle(true);
        interface->edge();
    }
    return interface;
}

void bellwire_rtl_cycle(void* of, const uint64_t* in, uint64_t* out, uint64_t* taps) {
    auto* const interface = static_cast<Interface*>(of);
    std::memcpy(&interface->bench.in, in, sizeof interface->bench.in);
    interface->settle(false);
    std::memcpy(out, &interface->bench.out, sizeof interface->bench.out);
    std::memcpy(taps, &interface->bench.taps, sizeof interface->bench.taps);
    interface->edge();
}

void bellwire_rtl_close(void* of) { delete static_cast<Interface*>(of); }
}
