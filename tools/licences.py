#!/usr/bin/env python3
"""Usage: tools/licences.py PACKAGE ...

Prints which crates of others the packages contain, with licences, and the text of each licence
once. A crate without a licence, or without a text of one, ends this with an error.
"""

import json
import subprocess
import sys
from pathlib import Path

# How the names of files with such texts begin.
NAMES = ("licen", "copying", "unlicense", "notice")


def contained(packages):
    """The crates that a build of the packages contains, by `cargo tree`: name, version."""
    choice = [word for package in packages for word in ("-p", package)]
    command = ["cargo", "tree", *choice, "-e", "normal", "--prefix", "none", "-f", "{p}"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {tuple(line.split()[:2]) for line in lines.splitlines() if line}


def main():
    wanted = contained(sys.argv[1:])
    command = ["cargo", "metadata", "--format-version", "1"]
    known = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    texts, missing = {}, []
    for crate in sorted(known["packages"], key=lambda crate: (crate["name"], crate["version"])):
        own = crate["source"] is None
        if own or (crate["name"], "v" + crate["version"]) not in wanted:
            continue
        folder = Path(crate["manifest_path"]).parent
        files = [file for file in sorted(folder.iterdir()) if file.name.lower().startswith(NAMES)]
        files = [file for file in files if file.is_file()]
        name = f"{crate['name']} {crate['version']}"
        if not files and "Apache-2.0" in (crate["license"] or ""):
            # This text is the same for all, so that of ours will do.
            files = [Path("LICENSE-APACHE")]
        if not crate["license"] or not files:
            missing.append(name)
        print(f"{name}: {crate['license']}")
        for file in files:
            text = file.read_text(errors="replace").strip().replace("\r\n", "\n")
            texts.setdefault(text, []).append(f"{name} ({file.name})")
    for text, owners in texts.items():
        print("\n" + "=" * 72 + "\n" + "\n".join(owners) + "\n\n" + text)
    if missing:
        sys.exit("no licence, or no text of it: " + ", ".join(missing))


main()
