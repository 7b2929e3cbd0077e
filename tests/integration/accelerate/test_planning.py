"""Commits and flushes of a real server under a real load are counted, or it is said why not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.accelerate.planning import count_commits
from pgdyno.base.facts import Fact, Unknown
from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import installation_in
from pgdyno.postgres.statements import CommitGrouping
from pgdyno.workload.bundled import load as bundled_workloads

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home")]
DEFAULT = Variant("default")
UPDATE, SELECT = (
    replace(one, data_set=replace(one.data_set, scale=1))
    for one in (bundled_workloads()[name] for name in ("pgbench-simple-update", "pgbench-select"))
)


@contextmanager
def opened(installation: Installation) -> Iterator[ScratchArena]:
    with open_scratch_arena(installation, [DEFAULT], Lines(), is_isolated=False) as arena:
        yield arena


def counted(bin_directory: Path, major: int, workload: Workload, clients: int) -> Fact[CommitGrouping]:
    data_set = workload.data_set
    with opened(installation_in(bin_directory)) as arena:
        arena.restore([DEFAULT], [0], data_set)
        with arena.arms([DEFAULT], [0], data_set) as (arm,):
            design = Design(clients=clients, is_isolated=False)
            return count_commits(arm, arena.loads, workload, design, major, workspace())


@pytest.mark.parametrize("major", [15, 18])
def test_a_flush_serves_between_one_commit_and_one_of_each_client(
    major: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr("pgdyno.accelerate.planning.SECONDS", 1.0)
    found = counted(request.getfixturevalue(f"pg{major}_bin"), major, UPDATE, clients=8).value
    assert not isinstance(found, Unknown), found.reason
    assert (found.workload, found.clients) == ("pgbench-simple-update", 8)
    assert found.commits > 8
    assert 0.5 < found.commits_per_flush <= 8
    assert found.flush_us > 0


@pytest.mark.parametrize(
    ("workload", "clients", "reason"),
    [
        (UPDATE, 7, "7 clients rarely commit at the same time"),
        (SELECT, 8, 'workload "pgbench-select" does not commit continuously'),
    ],
)
def test_what_cannot_share_flushes_is_not_run(
    workload: Workload, clients: int, reason: str, pg18_bin: Path
) -> None:
    assert counted(pg18_bin, 18, workload, clients).value == Unknown(reason)
