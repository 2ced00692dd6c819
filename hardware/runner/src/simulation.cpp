// Runs a verilated bench cycle by cycle for a parent process.
//
// The parent writes a count of cycles as 32 bits and as many records of inputs. This program then
// writes as many records of outputs, each as it stands before the clock edge that ends its cycle.
// It ends when its input ends. An argument selects a mutant, if the bench has some.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include BENCH_HEADER
#include "verilated.h"

double sc_time_stamp() { return 0; }

int main(int count, char** arguments) {
    // Registers begin with random values, so that a missing reset shows.
    VerilatedContext context;
    context.randReset(2);
    context.randSeed(1);
    BENCH bench{&context};
#ifdef MUTANTS
    bench.mutant = count > 1 ? std::atoi(arguments[1]) : 0;
#else
    (void)count, (void)arguments;
#endif
    constexpr size_t in_bytes = sizeof bench.in, out_bytes = sizeof bench.out;

    const auto edge = [&](bool reset) {
        bench.rst = reset;
        bench.clk = 0;
        bench.eval();
    };
    std::memset(&bench.in, 0, in_bytes);
    for (int cycle = 0; cycle < 4; ++cycle) {
        edge(true);
        bench.clk = 1;
        bench.eval();
    }

    std::vector<char> inputs, outputs;
    uint32_t cycles;
    while (std::fread(&cycles, sizeof cycles, 1, stdin) == 1) {
        inputs.resize(cycles * in_bytes);
        outputs.resize(cycles * out_bytes);
        if (std::fread(inputs.data(), in_bytes, cycles, stdin) != cycles) return 1;
        for (uint32_t cycle = 0; cycle < cycles; ++cycle) {
            std::memcpy(&bench.in, &inputs[cycle * in_bytes], in_bytes);
            edge(false);
            std::memcpy(&outputs[cycle * out_bytes], &bench.out, out_bytes);
            bench.clk = 1;
            bench.eval();
        }
        if (std::fwrite(outputs.data(), out_bytes, cycles, stdout) != cycles) return 1;
        std::fflush(stdout);
    }
    return 0;
}
