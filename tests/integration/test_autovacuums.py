"""Vacuums that a real server's autovacuum did on its own, as the meter counts them."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.meters.server import autovacuums
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import installation_in
from pgdyno.workload.bundled import load as bundled_workloads

pytestmark = pytest.mark.server

SMALL = replace(bundled_workloads()["pgbench-simple-update"].data_set, scale=1)
EAGER = Variant("eager", {"autovacuum_naptime": "1s", "autovacuum_vacuum_threshold": "10"})
PATIENCE_S = 60.0


def test_a_table_that_autovacuum_has_vacuumed_counts(home: Path, pg18_bin: Path) -> None:
    assert home.is_dir()
    with open_scratch_arena(installation_in(pg18_bin), [EAGER], Lines(), is_isolated=False) as arena:
        arena.restore([EAGER], [0], SMALL, writing_s=1.0)
        with arena.arms([EAGER], [0], SMALL) as (arm,):
            before = _vacuums(arm)
            with arm.connect() as connection:
                for _ in range(20):
                    connection.execute("UPDATE public.pgbench_tellers SET tbalance = tbalance + 1")
            deadline = time.monotonic() + PATIENCE_S
            while _vacuums(arm) == before and time.monotonic() < deadline:
                time.sleep(0.5)
            assert _vacuums(arm) > before


def _vacuums(arm: Arm) -> float:
    counters = autovacuums.read(arm)
    assert counters is not None
    return autovacuums.value(counters, 1)
