"""Two machines with cocotbext-pcie's root complexes, and an interface of cHPP in gates in each.

All that software does are stores into the window that the root complex has given to the interface,
and reads of its own memory. The layouts stand here once more, by the README and by crates/wire.
"""

import random
import struct

import cocotb
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, FallingEdge, ReadOnly, RisingEdge
from cocotbext.pcie.core import Device, Endpoint, RootComplex
from cocotbext.pcie.core.tlp import Tlp, TlpType

LANES = 16
WINDOW = 1 << 16
NAP, PUT, GET = 5, 6, 7
# Of each machine: the function, the queue pair, and its key.
FUNCTION, PAIR, KEY = 5, 21, 0x77
# Places in a machine's memory, which is 64 KiB.
SENT, CAME, LIST, DESCRIPTOR, SOURCE, TARGET, SLOT = (
    0x1000, 0x2000, 0x3000, 0x4000, 0x5003, 0x6009, 0x8000)
ENTRIES = 4
EVENT_BYTES = 32


class HardBlock(Device):
    """What stands in for a hard block: configuration space, and the link's credits.

    It answers configuration requests with one function that has one window, and tells the
    interface bus, device and the window's address. All else goes through as raw TLPs.
    """

    def __init__(self, dut, name, stalls, turns):
        self.function = Endpoint()
        super().__init__(self.function)
        self.function.vendor_id, self.function.device_id = 0x1234, 0xc499
        self.function.configure_bar(0, WINDOW, ext=True, prefetch=True)
        self.clk = dut.clk
        self.port = {
            each: getattr(dut, f"{name}_{each}")
            for each in ("device", "base", "read_credit", "rx_valid", "rx_ready", "rx_last",
                         "rx_empty", "rx_data", "tx_valid", "tx_ready", "tx_last", "tx_empty",
                         "tx_data")
        }
        for each in ("device", "base", "rx_valid", "rx_last", "rx_empty", "rx_data"):
            self.port[each].value = 0
        self.port["read_credit"].value = 1
        self.port["tx_ready"].value = 1
        self.stalls, self.turns = stalls, turns
        self.down = Queue()
        cocotb.start_soon(self.send_down())
        cocotb.start_soon(self.send_up())
        if stalls:
            cocotb.start_soon(self.stall())

    async def stall(self):
        """The link waits at random, and the host has no room for reads at random."""
        while True:
            await FallingEdge(self.clk)
            self.port["tx_ready"].value = int(random.random() < 0.6)
            self.port["read_credit"].value = int(random.random() < 0.4)

    def base(self):
        """The window's address without the bits of its size."""
        return (self.function.bar[1] << 32 | self.function.bar[0]) // WINDOW

    async def upstream_recv(self, tlp):
        if tlp.fmt_type in {TlpType.CFG_READ_0, TlpType.CFG_WRITE_0}:
            await super().upstream_recv(tlp)
            self.port["device"].value = int(self.function.pcie_id) >> 3
            self.port["base"].value = self.base()
        else:
            tlp.release_fc()
            if self.turns and tlp.fmt_type == TlpType.CPL_DATA and len(tlp.data) > 64:
                tlp.data[20] ^= 1
            await self.down.put(bytes(tlp.pack()))

    async def send_down(self):
        """TLPs of the root complex go to the interface, beat by beat."""
        port = self.port
        while True:
            left = await self.down.get()
            while left:
                beat, left = left[:LANES], left[LANES:]
                await FallingEdge(self.clk)
                while self.stalls and random.random() < 0.3:
                    port["rx_valid"].value = 0
                    await FallingEdge(self.clk)
                port["rx_valid"].value = 1
                port["rx_last"].value = int(not left)
                port["rx_empty"].value = (LANES - len(beat)) // 4
                port["rx_data"].value = int.from_bytes(beat, "little")
                while True:
                    await ReadOnly()
                    is_taken = port["rx_ready"].value == 1
                    await RisingEdge(self.clk)
                    if is_taken:
                        break
                    await FallingEdge(self.clk)
            await FallingEdge(self.clk)
            port["rx_valid"].value = 0

    async def send_up(self):
        """TLPs of the interface go to the root complex."""
        port, came = self.port, b""
        while True:
            await FallingEdge(self.clk)
            await ReadOnly()
            if port["tx_valid"].value != 1 or port["tx_ready"].value != 1:
                continue
            count = LANES - 4 * int(port["tx_empty"].value)
            came += int(port["tx_data"].value).to_bytes(LANES, "little")[:count]
            if port["tx_last"].value == 1:
                tlp, came = Tlp.unpack(came), b""
                cocotb.start_soon(self.upstream_send(tlp))


class Machine:
    """A root complex with memory, an interface behind it, and software."""

    def __init__(self, dut, name, cpu, stalls, turns):
        self.cpu = cpu
        self.rc = RootComplex()
        self.device = HardBlock(dut, name, stalls, turns)
        self.rc.make_port().connect(self.device)
        self.memory = self.rc.mem_pool.alloc_region(1 << 16)
        self.base = self.memory.get_absolute_address(0)
        self.read = [0, 0]

    async def open(self):
        """Set-up by the README: window, rings, list, key."""
        await self.rc.enumerate()
        found = self.rc.find_device(self.device.function.pcie_id)
        await found.enable_device()
        await found.set_master()
        self.window = self.device.base() << 16
        await self.write(SENT, bytes(0x3000))
        await self.write(LIST, struct.pack("<Q", self.base + SLOT))
        for place, word in [
            (0x8800 + 8 * FUNCTION, 16 << 32 | self.base >> 12),
            (0x8400 + 8 * (2 * PAIR), ENTRIES << 48 | self.base + SENT),
            (0x8400 + 8 * (2 * PAIR + 1), ENTRIES << 48 | self.base + CAME),
            (0x8600 + 8 * PAIR, 4 << 48 | self.base + LIST),
            (FUNCTION << 12 | 0x840 + 8 * (PAIR % 4), 1),
            (0x8700 + 8 * PAIR, 1 << 8 | KEY),
        ]:
            await self.store(place, word)
        assert await self.count(0) == 1, "the version of the map"
        assert await self.count(2) == 0, "nothing is refused"

    async def store(self, place, word):
        await self.rc.mem_write(self.window + place, struct.pack("<Q", word))

    async def count(self, number):
        data = await self.rc.mem_read(self.window + 0x8000 + 4 * number, 4, 10000, "ns")
        return struct.unpack("<L", data)[0]

    async def write(self, at, data):
        self.memory[at:at + len(data)] = data

    def bytes(self, at, length):
        return bytes(self.memory[at:at + length])

    async def send(self, kind, sources=(), destinations=(), data=b"", tail=b"tail"):
        """Describes an operation, and rings."""
        padded = lambda part: part + bytes(-len(part) % LANES)
        first = (
            len(destinations) << 56 | len(sources) << 48 | (1 - self.cpu) << 37 | PAIR << 32
            | (KEY << 24 if kind == GET else 0) | (PAIR % 4) << 20 | KEY << 8 | 1 << 5
            | (1 << 4 if kind == NAP and not sources else 0) | kind
        )
        lists = b"".join(struct.pack("<QQ", *entry) for entry in [*sources, *destinations])
        words = struct.pack("<QQ", first, len(tail) << 16 | len(data))
        descriptor = words + lists + padded(data) + padded(tail)
        await self.write(DESCRIPTOR, descriptor)
        await self.store(FUNCTION << 12, len(descriptor) << 48 | self.base + DESCRIPTOR)

    async def event(self, ring):
        """Waits for the next record of a ring: 0 is what was sent, and 1 what has come."""
        count = self.read[ring]
        at = [SENT, CAME][ring] + count % ENTRIES * EVENT_BYTES
        for _ in range(100):
            record = struct.unpack("<16sQQ", self.bytes(at, EVENT_BYTES))
            if record[2] >> 63 == 1 - count // ENTRIES % 2:
                break
            await ClockCycles(self.device.clk, 20)
        else:
            raise AssertionError("no event comes")
        self.read[ring] += 1
        await self.store(FUNCTION << 12 | 0x800 + 8 * ((2 * PAIR + ring) % 8), count + 1)
        tail, peer, says = record
        return {
            "tail": tail[:peer >> 40 & 0xff],
            "address": peer & (1 << 40) - 1,
            "length": says & (1 << 40) - 1,
            "kind": says >> 40 & 0xf,
            "status": says >> 48 & 0xff,
        }


async def put_nap_and_get(dut, stalls=False, turns=False):
    """A PUT, a NAP and a GET between two machines, by stores, memory and events only."""
    clock = cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start())
    dut.rst.value = 1
    machines = here, there = [
        Machine(dut, name, cpu, stalls, turns) for cpu, name in enumerate("ab")
    ]
    await ClockCycles(dut.clk, 4)
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    for machine in machines:
        await machine.open()
    source = bytes(range(200))
    await here.write(SOURCE, source)
    await there.write(SOURCE, source[::-1])

    await here.send(PUT, [(here.base + SOURCE, 200)], [(there.base + TARGET, 200)])
    assert (await here.event(0))["status"] == 0
    came = await there.event(1)
    assert (came["kind"], came["tail"]) == (PUT, b"tail")
    assert there.bytes(TARGET, 200) == source

    await here.send(NAP, data=b"in a slot")
    assert (await here.event(0))["status"] == 0
    came = await there.event(1)
    assert (came["kind"], came["address"], came["length"]) == (NAP, there.base + SLOT, 9)
    assert there.bytes(SLOT, 9) == b"in a slot"

    await here.send(GET, [(there.base + SOURCE, 200)], [(here.base + TARGET, 200)])
    assert (await here.event(0))["status"] == 0
    assert (await here.event(1))["kind"] == PUT
    assert here.bytes(TARGET, 200) == source[::-1]

    # A doorbell of a wrong form is dropped, and counted.
    await here.rc.mem_write(here.window + (FUNCTION << 12), bytes(4))
    for machine in machines:
        counts = [await machine.count(number) for number in range(10)]
        assert counts == [1, 0, 0, int(machine is here), 0, 0, 0, 0, 0, 0], counts
    clock.cancel()


@cocotb.test(timeout_time=100, timeout_unit="us")
async def hosts_move_data(dut):
    """Both hosts take and give all at once."""
    await put_nap_and_get(dut)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def hosts_that_wait_move_data(dut):
    """Both hosts wait at random, and have room for reads at random."""
    await put_nap_and_get(dut, stalls=True)


@cocotb.test(timeout_time=100, timeout_unit="us", expect_fail=True)
async def a_turned_bit_is_noticed(dut):
    """Canary: a bit of a completion is turned."""
    await put_nap_and_get(dut, turns=True)
