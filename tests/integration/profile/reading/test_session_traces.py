"""A simulated processor under a session of a real server: how well it repeats, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fix_home import pgdyno
from tests.fix_progress import Remembered

from pgdyno.host.host import Cache
from pgdyno.host.tracing.valgrind import find_valgrind
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.model.variants.variant import parse_variant
from pgdyno.postgres.process.installation import Installation
from pgdyno.profile.callgrind import spread
from pgdyno.profile.misses.structures import OTHER, SHARED
from pgdyno.profile.reading.layouts import named_functions
from pgdyno.profile.reading.session_traces import SessionToTrace
from pgdyno.profile.reading.simulate import (
    SimulatedProcessor,
    for_valgrind,
    simulated_runs,
    traced_misses,
)
from pgdyno.profile.records.microarchitecture import DataMisses
from pgdyno.profile.simulated_caches import simulated_caches
from pgdyno.workload.bundled.pgbench_tpcb import WORKLOAD

pytestmark = [pytest.mark.server, pytest.mark.long, pytest.mark.timeout(1800)]
needs_valgrind = pytest.mark.skipif(
    find_valgrind() is None, reason="valgrind is not installed: apt-get install valgrind"
)
# 0.005 on a quiet machine: statistics are sent once a second, whatever is done by then.
REPEATS_WITHIN = 0.02
CACHES = simulated_caches(
    (
        Cache(1, "Data", 48 << 10, 12, 64),
        Cache(1, "Instruction", 32 << 10, 8, 64),
        Cache(2, "Unified", 2 << 20, 16, 64),
    )
)
SMALL = "small:shared_buffers=32MB,max_connections=20"  # starts in half the time, and holds all data


@pytest.fixture(scope="module")
def reads(pg18_bin: Path, home: Path) -> dict[str, Any]:
    """The profile of a point read by primary key, with a simulation."""
    del home
    server = ("--pg-bin", str(pg18_bin), "--variant", SMALL)
    asked = ("--simulate", "--scale", "1", "--clients", "1", "--cycles", "2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.fix_home._LIMIT_S", 1700)
        done = pgdyno("profile", "pgbench-select", *server, *asked, "--json")
    assert done.returncode == 0, done.stderr
    [found] = json.loads(done.stdout)["profiles"]
    return dict(found)


@needs_valgrind
def test_instructions_per_transaction_repeat(reads: dict[str, Any]) -> None:
    assert reads["simulated"]["repeats_within"] < REPEATS_WITHIN
    figures = {one["name"]: one["per_transaction"]["value"] for one in reads["simulated"]["events"]}
    # A prepared point select takes some ten thousands of instructions: 4 to 15 µs (issue 25).
    assert 10_000 < figures["instructions"] < 200_000
    assert figures["L2 misses"] < figures["L1i misses"] + figures["L1d misses"]
    assert figures["instructions"] / 20 < figures["taken branches"] < figures["instructions"] / 4
    misses = figures["conditional branches mispredicted"] + figures["indirect branches mispredicted"]
    assert figures["branch mispredictions"] == pytest.approx(misses)


@needs_valgrind
def test_everything_simulated_is_called_so(reads: dict[str, Any]) -> None:
    assert reads["simulated"]["is_simulated"]
    assert reads["simulated"]["source"].startswith("simulated: callgrind ")
    assert reads["simulated"]["remarks"][0].startswith("simulated: ")


@needs_valgrind
def test_the_code_that_a_read_executes_is_found_by_place(reads: dict[str, Any]) -> None:
    [layout] = [one for one in reads["layouts"] if one["is_simulated"]]
    assert layout["program"] == "postgres"
    assert sum(page["share"] for page in layout["heat"]) == pytest.approx(1)
    most, nearly_all = layout["coverage"]
    assert 0 < most["pages"] < nearly_all["pages"] <= len(layout["heat"]) < layout["pages"]
    assert most["code_bytes"] <= most["lines"] * 64 <= most["pages"] * 4096
    assert {"_bt_compare", "AllocSetAlloc"} & {page["function"] for page in layout["heat"]}


@needs_valgrind
def test_data_misses_are_told_by_structure(reads: dict[str, Any]) -> None:
    found = reads["data_misses"]
    assert found is not None, reads["simulated"]["remarks"]
    assert found["source"].startswith("simulated: ")
    l1d = {one["structure"]: one["l1d"] for one in found["structures"]}
    l2 = {one["structure"]: one["l2"] for one in found["structures"]}
    # A key at random of 100,000: a leaf of 274 and a page of 1,640, which no cache has; roots are in all.
    pages = {"B-tree pages", "table pages"}
    assert pages | {"buffer descriptors", "buffer lookup table", "PGPROC and proc array"} <= l1d.keys()
    assert sum(l2[one] for one in pages) > sum(l2.values()) / 2
    # A wrong place of shared memory, or mappings of another process, would put pages and locks here.
    assert sum(l1d.get(one, 0) for one in (OTHER, SHARED)) < 0.05 * sum(l1d.values())
    [btree] = [one for one in found["structures"] if one["structure"] == "B-tree pages"]
    assert "_bt_compare" in btree["functions"]
    # callgrind's own run of the same session has about as many, of all structures together.
    [counted] = [one for one in reads["simulated"]["events"] if one["name"] == "L1d misses"]
    assert 0.7 < sum(l1d.values()) / counted["per_transaction"]["value"] < 2


@needs_valgrind
def test_writing_repeats_and_is_traced_too(installation: Installation, home: Path) -> None:
    del home
    small, valgrind = for_valgrind(parse_variant(SMALL)), find_valgrind()
    assert valgrind is not None
    processor = SimulatedProcessor(valgrind, CACHES)
    workload = replace(WORKLOAD, data_set=replace(WORKLOAD.data_set, scale=2))  # with two branches
    with open_scratch_arena(installation, (small,), Remembered(), is_isolated=False, is_timed=False) as arena:
        runs = simulated_runs(arena, small, workload, 1, processor, Remembered())
        program = Path(arena.installation_of(small).program("postgres")).resolve()
        functions = named_functions(program, runs[0].counts)
        traced = SessionToTrace(workload, 1, CACHES, runs[0].instructions, program, functions)
        found = traced_misses(arena, small, traced, valgrind)
    apart = spread([run.instructions for run in runs])
    assert apart is not None
    assert apart < REPEATS_WITHIN
    assert isinstance(found, DataMisses), found
    assert {"B-tree pages", "table pages"} <= {one.structure for one in found.structures}
