# Everything that one does with Bellwire. `make` alone lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run install test test-mpi test-slurm test-verbs python crates site package bench bench-python bench-sweep bench-mpi bench-verbs verbs-start reference-rxe picture simulate properties guesses lint docs clean unit robust evidence crash dissector manual perfetto report instructions canaries loom miri sanitize mutants sample hardware rtl outside inside tools checks units hardware-short python-short crates-short test-mpi-short test-verbs-short

# A fresh rustup puts cargo here before the shell knows of it.
export PATH := $(PATH):$(HOME)/.cargo/bin
target := $(or $(CARGO_TARGET_DIR),target)

# Crates with planted faults (feature `canaries`, tests/canaries.rs), with models of their
# concurrency (`--cfg loom`), and with unsafe code that Miri can execute.
CANARY_PACKAGES = bellwire-cli bellwire-keys bellwire-model bellwire-protocol bellwire-rdma bellwire-rdmacm bellwire-ring bellwire-rsockets bellwire-testkit bellwire-simulator
LOOM_PACKAGES += bellwire-ring
MIRI_PACKAGES += bellwire-ring

# Tests need probes inside of the code: steps at which a process can be killed or stopped, and
# planted faults. All tests are built with them, so that everything is built once. A program's build
# has none.
# Property tests draw the same cases each time, so that they fail only where something changed.
# `make properties` draws others.
export PROPTEST_RNG_SEED ?= 19
probes := bellwire-ring/steps,bellwire-testkit/steps,bellwire-rdma/steps,bellwire-rdmacm/steps$(subst $(subst ,, ),,$(CANARY_PACKAGES:%=,%/canaries))
tests := cargo test --workspace --features $(probes)

# The command has the name of the library, so their pages would overwrite each other. The library's
# are wanted.
document := cargo doc --no-deps --workspace --exclude bellwire-cli

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /make \1\t/' | expand -t 20

run: ## build Bellwire and measure the default device (two processes, under a minute)
	@tools/need.sh cargo
	cargo build --release -p bellwire-cli
	@$(target)/release/bellwire perf
	@echo
	@echo "Next: what the models give beside the five papers, as one page that opens offline (a minute):"
	@echo "    $(target)/release/bellwire paper all --html report.html"

install: ## install the command with its manual and completions, the libfabric provider, libibverbs for `bellwire run`, and the C library libvipl under PREFIX (/usr/local), below DESTDIR
	@tools/need.sh cargo
	cargo build --release -p bellwire-cli -p bellwire-libfabric -p bellwire-verbs -p bellwire-sysfs -p bellwire-sockets -p bellwire-vipl
	@tools/install.sh $(target)/release $(or $(PREFIX),/usr/local) $(DESTDIR)

# Tells scripts that all is built already, and how.
test: export TESTS := $(tests)
test: ## run every check that the project has
	@tools/need.sh cargo fmt clippy deny
	@tools/together.sh lint tools
	$(tests) --no-run
	$(tests) --no-run --features bellwire-testkit/gates --test rtl
	@tools/together.sh outside inside loom miri checks
	@tools/together.sh hardware-short python-short site crates-short test-mpi-short test-verbs-short
	@echo "make test: done"

# What the checks need. To fetch it keeps no processor busy.
tools:
	@tools/need.sh ip nft miri manual tshark venv chromium valgrind mutants mpi verbs pyverbs sockets hardware site
	@tools/need.sh perfetto python

hardware-short python-short crates-short test-mpi-short test-verbs-short: %-short:
	@tools/$*.sh short

# Checks of what cargo built that are no tests of cargo.
checks: manual units dissector perfetto report instructions evidence sample

lint: ## formatting, clippy, documentation, width of prose, licences of dependencies, what was read of them; all without a warning
	@tools/need.sh cargo fmt clippy deny
	@tools/text.sh --canary
	@tools/text.sh
	@tools/text.sh --comments
	@tools/picture.py --check
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features $(probes) -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(document)
	@tools/deny.sh
	@tools/dependencies.sh

# Most tests wait for a clock, a peer or a process, so four share two processors well.
unit outside inside crash: export RUST_TEST_THREADS ?= $(shell n=$$(nproc); echo $$((n > 4 ? n : 4)))
unit: ## unit, conformance and project tests; processes killed and stopped at every step, and hostile peers
	@tools/need.sh cargo ip nft
	$(tests) --no-fail-fast

# Some tests run examples, which these two do not build by themselves.
outside: ## of the unit tests, those in folders of their own
	@tools/need.sh cargo ip nft
	$(tests) --no-run
	$(tests) --test '*' --no-fail-fast

inside: ## of the unit tests, those within sources and documentation
	@tools/need.sh cargo
	$(tests) --no-run
	$(tests) --lib --bins --no-fail-fast; status=$$?; $(tests) --doc --no-fail-fast && exit $$status

robust: ## run the unit tests 5 times beside two busy loops per processor, and 5 times on one processor (hours)
	@tools/need.sh cargo ip nft
	$(tests) --no-run
	@tools/robust.sh

evidence: ## see that each test which stands for a row of the papers, or for a promise, is among those that run
	@tools/need.sh cargo
	@cargo build -q -p bellwire-papers --example evidence_is_run
	@$(target)/debug/examples/evidence_is_run $(tests) \
	    + env RUSTFLAGS="$$RUSTFLAGS --cfg loom" CARGO_TARGET_DIR=$(target)/loom \
	    cargo test $(LOOM_PACKAGES:%=-p %) --features canaries --profile loom --lib

crash: ## of the unit tests, those that kill and stop processes at every step, and let hostile peers loose
	@tools/need.sh cargo
	$(tests) --test crash --test hostile --no-fail-fast

manual: ## have groff, zsh and fish read the manual pages and completions that the command writes
	@tools/need.sh cargo manual
	@tools/manual.sh

units: ## have systemd read the units that are installed with the command
	@tools/need.sh cargo
	@tools/units.sh

dissector: ## have tshark read frames of every kind with the project's dissector
	@tools/need.sh cargo tshark
	@tools/dissector.sh

perfetto: ## have Perfetto's own schema read a trace of the model
	@tools/need.sh cargo venv perfetto
	@tools/perfetto.sh

report: ## have headless Chromium open the page of all papers, and that of a sweep
	@tools/need.sh cargo chromium
	@tools/report.sh
	@tools/sweep-page.sh

instructions: ## count the instructions of the small path, which docs/data-path.md promises within 3 %
	@tools/need.sh cargo valgrind
	@tools/instructions.sh

canaries: ## of the unit tests, those that plant faults and see that the checkers catch them
	@tools/need.sh cargo
	$(tests) --test canaries --no-fail-fast

mutants: ## run every mutant that the ledger does not know; PACKAGE, SHARD=K/N and PART=PATH narrow it (hours)
	@tools/need.sh cargo mutants
	cargo run -q -p bellwire-mutants -- run --features $(probes) $(PACKAGE:%=--package %) $(SHARD:%=--shard %) $(PART:%=--part %)
	cargo run -q -p bellwire-mutants -- report

sample: ## run 40 mutants that the ledger calls caught, others each day (two minutes)
	@tools/need.sh cargo mutants
	cargo run -q -p bellwire-mutants -- sample --features $(probes)

loom: ## model-check the concurrent parts in every interleaving
	@tools/need.sh cargo
	@CARGO_TARGET_DIR="$(target)/loom" tools/loom.sh $(LOOM_PACKAGES)

miri: ## execute the unsafe parts under Miri
	@tools/need.sh cargo miri
	@CARGO_TARGET_DIR="$(target)/miri" tools/miri.sh $(MIRI_PACKAGES)

sanitize: ## run the tests of unsafe code under the address sanitizer, and all of the ring under Miri (half an hour, for a night)
	@tools/need.sh cargo miri
	@tools/sanitize.sh

hardware: ## check the RTL under hardware/: 10^8 cycles of each block beside the model, proofs, planted faults, areas, frequencies (half an hour)
	@tools/need.sh cargo hardware
	@tools/hardware.sh full

rtl: ## build the gates of the device rtl:chpp, and put them beside the optimized programs
	@tools/need.sh cargo hardware
	@tools/hardware.sh library

test-mpi: ## run programs of libfabric and MPI over Bellwire: Open MPI, MPICH, NetPIPE, HPC Challenge, mpi4py, ours
	@tools/need.sh cargo mpi mpi-programs venv
	@tools/test-mpi.sh full

test-verbs: ## run programs of RDMA over Bellwire: the ping-pongs of ibverbs-utils, perftest, rdmacm-utils, pyverbs, UCX, libfabric and its fabtests (FABTESTS=PREFIX), Open MPI, qperf, sideway, programs of sockets, ours in C
	@tools/need.sh cargo ip mpi verbs pyverbs ucx qperf sideway sockets
	@tools/test-verbs.sh full

python: ## build a wheel of the Python package and test it with each CPython that is found; types, stubs, notebooks
	@tools/need.sh cargo venv python
	@tools/python.sh full

bench-python: ## measure the Python package beside our own API, mpi4py, pyzmq, pipes, shared memory and Ray, in one run (four minutes)
	@tools/need.sh cargo venv mpi torch
	@tools/bench-python.sh

crates: ## check the crates that a user depends on: packed, each built by itself, by the oldest Rust (some minutes)
	@tools/need.sh cargo msrv
	@tools/crates.sh

site: ## build the documentation site in target/site/html: pages and references, all links checked, opened in headless Chromium
	@tools/need.sh cargo venv site
	@tools/site.sh

test-slurm: ## run a sweep as an array job on a SLURM of its own, a task of which is requeued; as root, on Debian
	@tools/need.sh cargo slurm
	@tools/slurm.sh

bench-sweep: ## measure a sweep of 10,000 points beside a plain loop, on this machine, on Dask and on Ray (three minutes)
	@tools/need.sh cargo venv
	@tools/bench-sweep.sh

package: ## make Debian packages and a Python wheel in target/packages, install them into a new root and use them (a release build and some minutes)
	@tools/need.sh cargo venv ip package
	@tools/package.sh

verbs-start: ## run the commands of docs/verbs-start.md as they stand there, as root on Debian (two minutes and a build)
	@tools/need.sh cargo ip verbs
	@tools/verbs-start.sh

bench-mpi: ## measure the libfabric provider beside libfabric's own, Open MPI's and UCX, in one run (twenty minutes)
	@tools/need.sh cargo ip mpi mpi-programs ucx venv
	@tools/bench-mpi.sh

bench-verbs: ## measure perftest over Bellwire beside our own API, raw UDP and TCP, in one run (two minutes)
	@tools/need.sh cargo ip verbs qperf
	@tools/bench-verbs.sh

reference-rxe: ## measure perftest over Bellwire, the kernel's rxe and TCP in an emulated guest (twenty minutes); as root, on Debian
	@tools/need.sh cargo verbs guest
	@tools/reference-rxe.sh $(if $(JSON),--json)

bench: ## measure Bellwire beside its peers and the limits of the machine; the model beside BookSim2, given BOOKSIM2=its binary
	@tools/need.sh cargo
	cargo run --release -p bellwire-bench -- all
	@tools/picture.py
	cargo run --release -p bellwire-bench -- model $(if $(BOOKSIM2),--booksim $(BOOKSIM2))

picture: ## draw the picture of README.md from docs/performance.md, as `make bench` does
	@tools/picture.py

simulate: ## simulate 10^8 frames under faults, from SEED on, and note them in the ledger
	@tools/need.sh cargo
	cargo run --release -p bellwire-simulator -- --seed $(or $(SEED),50000000) --frames 100000000 --ledger crates/simulator/simulator-ledger.jsonl

properties: export PROPTEST_RNG_SEED = $(or $(SEED),$(shell date +%s))
properties: export PROPTEST_CASES = 20000
properties: ## draw other cases of the properties, 20,000 of each, from SEED on (some minutes)
	@tools/need.sh cargo
	@echo "SEED=$$PROPTEST_RNG_SEED"
	cargo test --release -p bellwire-protocol -p bellwire-wire --tests --no-fail-fast

guesses: ## guess the token of a link, the keys of memory and of sealed frames, 10^9 times
	@tools/need.sh cargo
	cargo test --release -p bellwire --lib guesses -- --ignored
	cargo test --release -p bellwire-simulator --test guesses -- --ignored
	cargo test --release -p bellwire-keys --test guesses -- --ignored

docs: ## write the generated pages, and the API documentation into target/doc
	@tools/need.sh cargo
	cargo run -q -p bellwire-papers --example write_docs
	$(document)

clean: ## remove everything that was built
	@tools/need.sh cargo
	cargo clean
