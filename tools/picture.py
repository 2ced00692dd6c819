#!/usr/bin/env python3
"""Usage: tools/picture.py [--check]

Draws docs/performance.svg, the picture of README.md, from the tables of docs/performance.md, which
`make bench` writes. --check fails if the picture is another one.
"""

import re
import sys
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SOURCE, PICTURE = HERE / "docs/performance.md", HERE / "docs/performance.svg"

# A panel: its title, the unit, the table, and the rows with the name that each gets.
HOST = [("bellwire", "Bellwire"), ("ucx-newest", "UCX"), ("libfabric", "libfabric shm"), ("tcp-loopback", "TCP, loopback")]
WIRE = [
    ("bellwire-eth-xdp", "Bellwire eth"),
    ("bellwire-udp", "Bellwire udp"),
    ("tcp", "TCP"),
    ("ucx-newest-tcp", "UCX over TCP"),
    ("libfabric-tcp", "libfabric over TCP"),
]
PANELS = [
    ("One host: latency, one way", "ns", "Send, 8 B, one way", HOST),
    ("One host: messages a second", "million", "Send rate, 8 B, one pair", HOST),
    ("Virtual wire: latency, one way", "ns", "Network: Send, 8 B, one way", WIRE),
    ("Virtual wire: messages a second", "million", "Network: Send rate, 8 B, one pair", WIRE),
]
WIDTH, PANEL, ROW, NAME, VALUE = 880, 420, 26, 126, 92


def near(text, table):
    """The near medians of a table, by contender."""
    section = text.split(f"\n## {table}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| ")]
    return {name.strip(): float(value) for name, value in cells if re.fullmatch(r"\s*[\d.]+\s*", value)}


def panel(title, unit, values, left, top):
    """Bars from zero. One that is many times the next longest is cut, and its value says so."""
    ordered = sorted(value for _, value in values)
    longest = ordered[-1] if ordered[-1] < 8 * ordered[-2] else 1.4 * ordered[-2]
    room = PANEL - NAME - VALUE
    parts = [f'<text class="title" x="{left}" y="{top}">{escape(title)}</text>']
    for line, (name, value) in enumerate(values):
        y = top + 14 + line * ROW
        length = max(2, min(value / longest, 1) * room)
        ours = "ours" if name.startswith("Bellwire") else "theirs"
        parts.append(f'<text x="{left + NAME - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect class="{ours}" x="{left + NAME}" y="{y + 2}" width="{length:.1f}" height="16"/>')
        if value > longest:
            cut = left + NAME + room - 24
            parts.append(f'<path class="cut" d="M{cut} {y + 20}l8 -20h7l-8 20z"/>')
        shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        parts.append(f'<text x="{left + NAME + length + 6:.1f}" y="{y + 14}">{shown} {unit}</text>')
    return "\n".join(parts)


def draw(text):
    machine = [line[2:] for line in text.split("\n## The machine\n")[1].split("\n\n")[0].strip().splitlines()]
    date = next(line for line in machine if line.startswith("measured on 20")).removeprefix("measured on ")
    linux = next(line for line in machine if line.startswith("Linux")).split(",")[0]
    caption = [
        f"Messages of 8 bytes, medians on near cores, {date}: {machine[0]}, {linux}.",
        "All poll, but TCP over loopback sleeps. The wire is a veth pair. Of latency shorter bars are better, of rate longer ones.",
    ]
    height = 20 + (len(HOST) + len(WIRE)) * ROW + 2 * 46 + 38
    parts, top = [], 30
    for line in (PANELS[:2], PANELS[2:]):
        for column, (title, unit, table, rows) in enumerate(line):
            medians = near(text, table)
            values = [(name, medians[contender]) for contender, name in rows]
            parts.append(panel(title, unit, values, 20 + column * (PANEL + 10), top))
        top += len(line[0][3]) * ROW + 46
    parts += [f'<text class="small" x="20" y="{top + 2 + 18 * i}">{escape(words)}</text>' for i, words in enumerate(caption)]
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">
<title>Latency and message rate of Bellwire beside UCX, libfabric and TCP</title>
<desc>Drawn by tools/picture.py from docs/performance.md. {escape(" ".join(caption))}</desc>
<style>
text {{ font: 13px system-ui, sans-serif; fill: #24292f }}
.title {{ font-weight: 600; font-size: 15px }}
.small {{ font-size: 11.5px; fill: #57606a }}
.ours {{ fill: #1f6feb }}
.theirs {{ fill: #a8b1bb }}
.cut {{ fill: #fff }}
</style>
<rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>
{chr(10).join(parts)}
</svg>
"""


def main():
    picture = draw(SOURCE.read_text())
    if sys.argv[1:] != ["--check"]:
        PICTURE.write_text(picture)
        return
    if PICTURE.read_text() != picture:
        sys.exit("docs/performance.svg is not that of docs/performance.md: run `make picture`")
    # What compares must notice another figure.
    if draw(re.sub(r"(?m)^\| bellwire  .*?\|.*?\|", "| bellwire | 1 |", SOURCE.read_text())) == picture:
        sys.exit("tools/picture.py: another figure makes no other picture")


main()
