"""A simulated processor under a session of a real server: how well it repeats, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.fix_home import pgdyno

from pgdyno.host.tracing.valgrind import find_valgrind

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]
needs_valgrind = pytest.mark.skipif(
    find_valgrind() is None, reason="valgrind is not installed: apt-get install valgrind"
)
# 0.005 on a quiet machine: statistics are sent once a second, whatever is done by then.
REPEATS_WITHIN = 0.02
SIMULATED = ("--simulate", "--scale", "1", "--clients", "1", "--cycles", "2")


def simulated(*arguments: str) -> dict[str, Any]:
    done = pgdyno("profile", *arguments, *SIMULATED, "--json")
    assert done.returncode == 0, done.stderr
    [found] = json.loads(done.stdout)["profiles"]
    return dict(found)


@pytest.fixture(scope="module")
def reads(pg18_bin: Path, home: Path) -> dict[str, Any]:
    """The profile of a point read by primary key, with a simulation."""
    del home
    return simulated("pgbench-select", "--pg-bin", str(pg18_bin))


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
def test_writing_repeats_too(pg18_bin: Path, home: Path) -> None:
    del home
    found = simulated("pgbench-tpcb", "--pg-bin", str(pg18_bin))
    assert found["simulated"]["repeats_within"] < REPEATS_WITHIN
