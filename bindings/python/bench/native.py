"""Prints the median time of one way from `bellwire perf --json`, in microseconds: `native.py BYTES`."""

import json
import sys

rows = json.load(sys.stdin)["rows"]
row = next(row for row in rows if row["bytes"] == int(sys.argv[1]))
print(f"{row['latency_ns']['p50'] / 1000:.3f}")
