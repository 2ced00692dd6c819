"""Runs rdma-core's own tests of pyverbs, which lie in FOLDER/tests, and compares what was skipped
with a list. A test that fails, one that is skipped and not listed, and one that is listed and
passes are faults.

Usage: run_pyverbs.py FOLDER LIST DOCUMENT

Each line of LIST has the name of a test, and the ability that it wants: words that DOCUMENT has, or
`machine` for what this machine may have or not.
"""

import importlib
import sys
import unittest

MODULES = """addr atomic cq cq_events cqex device fork mr parent_domain pd qp qpex rdmacm
    relaxed_ordering shared_pd"""


class Outcomes(unittest.TestResult):
    """The names of the tests by how they ended."""

    def __init__(self):
        super().__init__()
        self.passed, self.not_run = set(), {}

    def addSuccess(self, test):
        self.passed.add(test._testMethodName)

    def addSkip(self, test, reason):
        self.not_run[test._testMethodName] = reason


def main(folder, listed, document):
    sys.path[:0] = [folder, f"{folder}/tests"]
    # The tests read their options from here.
    sys.argv[1:] = ["--dev", "bellwire0"]
    importlib.import_module("args_parser").parser.parse_args()
    with open(listed) as file:
        lines = [line.split(maxsplit=1) for line in file if not line.startswith("#")]
    wants = {name: ability.strip() for name, ability in lines}
    with open(document) as file:
        text = file.read()

    suite = unittest.TestSuite(
        unittest.defaultTestLoader.loadTestsFromName(f"tests.test_{module}")
        for module in MODULES.split()
    )
    outcomes = Outcomes()
    suite.run(outcomes)

    faults = [f"{test}: {why}" for test, why in outcomes.failures + outcomes.errors]
    for name, reason in outcomes.not_run.items():
        if name not in wants:
            faults.append(f"{name} was skipped, and is not in {listed}: {reason}")
    for name, ability in wants.items():
        if name in outcomes.passed and ability != "machine":
            faults.append(f"{name} passes: take it from {listed}")
        if ability != "machine" and ability not in text:
            faults.append(f"{listed} says that {name} wants `{ability}`; not in {document}")
    # A suite that is not found would pass otherwise.
    if len(outcomes.passed) < 100:
        faults.append("fewer than 100 tests passed")
    for fault in faults:
        print(fault)
    print(f"pyverbs: {len(outcomes.passed)} passed, {len(outcomes.not_run)} skipped")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
