"""Reads what runfabtests.sh -vv of libfabric wrote, and compares it with a list (`compared.py`).
What libfabric's own list for a provider excludes needs no line there.

Usage: read_fabtests.py REPORT PROVIDER LIST DOCUMENT LEAST

Each name in LIST begins with the provider. LEAST is the fewest tests that pass.
"""

import sys

import compared


def outcomes(report, provider):
    """The tests of a report that passed, failed, did not run, and were excluded."""
    passed, failed, not_run, excluded = set(), set(), {}, set()
    name = None
    with open(report, errors="replace") as file:
        for line in file:
            if line.startswith("- name: "):
                name = f"{provider} {line.split(':', 1)[1].split(' -p ')[0].strip()}"
            elif line.startswith("  result: ") and name is not None:
                # Those with parts say how many of them succeeded.
                result = line.split(":", 1)[1].split()[0]
                if result == "Pass":
                    passed.add(name)
                elif result == "Notrun":
                    not_run[name] = "it says that it cannot run"
                elif result == "Excluded":
                    excluded.add(name)
                else:
                    failed.add(name)
                name = None
    return passed, failed, not_run, excluded


def main(report, provider, listed, document, least):
    passed, failed, not_run, excluded = outcomes(report, provider)
    wants = {
        name: ability
        for name, ability in compared.wanted(listed).items()
        if name.startswith(f"{provider} ")
    }
    faults = compared.faults(
        passed, failed, not_run, wants, compared.abilities(document), int(least)
    )
    for fault in faults:
        print(fault)
    print(f"fabtests over {provider}: {len(passed)} passed, {len(failed)} failed, "
          f"{len(not_run)} not run, {len(excluded)} excluded by libfabric")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:6]))
