"""Runs rdma-core's own tests of pyverbs, which lie in FOLDER/tests, and compares what was skipped
with a list (`compared.py`). A test that fails, one that is skipped and not listed, and one that is
listed and passes are faults.

Usage: run_pyverbs.py FOLDER LIST DOCUMENT
"""

import importlib
import sys
import unittest

import compared

MODULES = """addr atomic cq cq_events cqex device fork mr parent_domain pd qp qpex rdmacm
    relaxed_ordering shared_pd"""
# Of the 143 methods of these modules in rdma-core 44. The others want what is not offered, or what
# a machine may lack.
LEAST = 115


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
    suite = unittest.TestSuite(
        unittest.defaultTestLoader.loadTestsFromName(f"tests.test_{module}")
        for module in MODULES.split()
    )
    outcomes = Outcomes()
    suite.run(outcomes)

    whys = {f"{test}": why for test, why in outcomes.failures + outcomes.errors}
    for test, why in whys.items():
        print(f"{test}: {why}")
    faults = compared.faults(
        outcomes.passed,
        set(whys),
        outcomes.not_run,
        compared.wanted(listed),
        compared.abilities(document),
        LEAST,
    )
    for fault in faults:
        print(fault)
    print(f"pyverbs: {len(outcomes.passed)} passed, {len(outcomes.not_run)} skipped")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
