"""A whole checkpoint cycle on real servers: a block spans a checkpoint of every arm. Takes a minute."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from tests.fix_home import pgdyno

from pgdyno.model.experiments.experiment import Phase
from pgdyno.store.experiments import ExperimentStore

pytestmark = [pytest.mark.server, pytest.mark.long, pytest.mark.usefixtures("pg18_bin")]

TIMEOUT_S = 30  # the shortest that PostgreSQL takes


def test_a_block_of_a_whole_cycle_has_a_checkpoint_of_every_arm(home: Path) -> None:
    arms = [f"{name}:checkpoint_timeout={TIMEOUT_S}s" for name in ("default", "same")]
    load = ("--workload", "pgbench-tpcb", "--scale", "1", "--embedded")
    done = pgdyno("compare", *arms, *load, "--phase", "cycle", "--blocks", "1", "--json")
    assert done.returncode == 0, done.stderr
    with closing(ExperimentStore(home / "experiments" / "experiments.sqlite")) as store:
        found = store.load(json.loads(done.stdout)["experiment"])
    assert (found.design.phase, found.design.cycle_s) == (Phase.CYCLE, 2 * TIMEOUT_S)
    (block,) = found.blocks
    assert [arm.variant for arm in block.arms] == ["default", "same"]
    for arm in block.arms:
        assert TIMEOUT_S / 2 < arm.running_s < 2 * TIMEOUT_S  # two arms share the block; the machine is busy
        assert arm.values["checkpoints"] >= 1
    assert "no checkpoint" not in (block.void or "")
