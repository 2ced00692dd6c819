"""Compares what became of a suite of tests with a list of those that are not run.

Each line of a list has the name of a test, and the ability that it wants: one that the table *What
is not* of a document names, `machine` for what this machine may have or not, or `program` for what
no implementation can make the suite's own program do. Names end at two blanks.

Run by itself, it plants a fault of each kind and sees that it is found.
"""

import sys

MACHINE, PROGRAM = "machine", "program"


def abilities(document):
    """What the table *What is not* names in its first column."""
    found, inside = set(), False
    with open(document) as file:
        for line in file:
            if line.startswith("## "):
                inside = line.strip() == "## What is not"
            elif inside and line.startswith("| "):
                cell = line.split("|")[1]
                found.update(item.strip() for item in cell.split(","))
    return found


def wanted(listed):
    """The tests of a list, with the ability that each wants."""
    with open(listed) as file:
        lines = [line.strip() for line in file if not line.startswith("#")]
    wants = {}
    for line in filter(None, lines):
        name, ability = line.split("  ", 1)
        wants[name] = ability.strip()
    return wants


def faults(passed, failed, not_run, wants, known, least):
    """All that is not as it should be: sets of names that passed and failed, those that did not run
    with their reasons, the list, the abilities that a list may name, and the fewest that pass."""
    found = [f"{name} failed" for name in sorted(failed)]
    for name, reason in sorted(not_run.items()):
        if name not in wants:
            found.append(f"{name} did not run, and is not listed: {reason}")
    for name, ability in sorted(wants.items()):
        if ability in (MACHINE, PROGRAM):
            continue
        if name in passed:
            found.append(f"{name} passes: take it from the list")
        if ability not in known:
            found.append(f"{name} wants `{ability}`, which the table does not name")
    # A suite that is not found would pass otherwise.
    if len(passed) < least:
        found.append(f"{len(passed)} passed, fewer than {least}")
    return found


def canary():
    """Each planted fault is found, and nothing else."""
    good = {
        "passed": {"a", "b"},
        "failed": set(),
        "not_run": {"c": "no XRC", "d": "no huge pages"},
        "wants": {"c": "XRC", "d": MACHINE},
        "known": {"XRC"},
        "least": 2,
    }
    planted = [
        ("failed", {"e"}),
        ("not_run", {**good["not_run"], "e": "unknown"}),
        ("wants", {**good["wants"], "a": "XRC"}),
        ("wants", {**good["wants"], "c": "an ability"}),
        ("known", set()),
        ("least", 3),
    ]
    assert not faults(**good), faults(**good)
    for name, value in planted:
        seen = faults(**{**good, name: value})
        assert len(seen) == 1, (name, value, seen)
    # What may be there or not is no fault where it is there.
    assert not faults(**{**good, "passed": {"a", "b", "d"}, "not_run": {"c": "no XRC"}})
    print(f"compared: {len(planted)} planted faults found")


if __name__ == "__main__":
    canary()
    for document in sys.argv[1:]:
        # The table is found, and is not the whole page.
        assert "XRC" in abilities(document) and "inline" not in abilities(document)
