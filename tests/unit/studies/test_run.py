"""Which servers ``pgdyno run io-method`` looks at, and on how many CPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fix_home import name_servers
from tests.golden.synthetic import experiment

from pgdyno.base.errors import UsageError
from pgdyno.base.ports import Progress
from pgdyno.host.probes import IoUringCause, IoUringObstacle
from pgdyno.measure.bundled_study import IoSupport
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Design, Experiment
from pgdyno.model.experiments.study import Study
from pgdyno.postgres.process.installation import Installation
from pgdyno.studies import run
from pgdyno.studies.run import cpus_of_server

MINE = Installation(Path("/nowhere"), "18.1", 18, "mine")
FORBIDDEN = IoUringObstacle(IoUringCause.FORBIDDEN, "no queue", "look for a filter")


class NoProgress:
    """Shows nothing."""

    def step(self, _: str) -> None:
        """Say nothing."""

    def advance(self, _done_s: float, _whole_s: float) -> None:
        """Say nothing."""


@pytest.fixture
def studies(monkeypatch: pytest.MonkeyPatch) -> list[Study]:
    """Servers ``a`` (18), ``b`` (18 without io_uring) and ``old`` (17); the studies that are measured."""
    found: list[Study] = []

    def find_installation(name: str) -> Installation:
        major = 17 if name == "old" else 18
        return Installation(Path("/nowhere"), f"{major}.1", major, name)

    def look(installation: Installation, *, is_isolated: bool, named: str | None = None) -> IoSupport:
        obstacle = FORBIDDEN if installation.name == "b" else None
        return IoSupport(installation.title, installation.major, 3 if is_isolated else 4, obstacle, named)

    def measure(study: Study, *_: object) -> Experiment:
        found.append(study)
        return experiment()

    name_servers(monkeypatch, find_installation)
    monkeypatch.setattr(run, "find_io_support", look)
    monkeypatch.setattr(run, "measure", measure)
    return found


def ask(*servers: str) -> None:
    progress: Progress = NoProgress()
    run.run_bundled(
        "io-method", Conditions(MINE, {}, Design()), {"server": servers} if servers else {}, progress
    )


def test_every_server_has_the_arms_that_it_can_run(studies: list[Study]) -> None:
    ask("a", "b")
    (study,) = studies
    assert [(variant.server, variant.settings["io_method"]) for variant in study.variants] == [
        ("a", "sync"),
        ("a", "worker"),
        ("a", "io_uring"),
        ("b", "sync"),
        ("b", "worker"),
    ]
    assert len({variant.name for variant in study.variants}) == 5
    assert (
        "io_uring is left out on PostgreSQL 18.1 (b): forbidden by the kernel (no queue); look for a filter"
        in (study.notes)
    )


def test_without_servers_the_one_of_the_command_line_is_looked_at(studies: list[Study]) -> None:
    ask()
    (study,) = studies
    assert [(variant.server, variant.name) for variant in study.variants] == [
        (None, "sync"),
        (None, "worker"),
        (None, "io_uring"),
    ]


@pytest.mark.usefixtures("studies")
def test_an_old_server_in_second_place_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"PostgreSQL 17\.1 \(old\) has no io_method"):
        ask("a", "old")


@pytest.mark.parametrize(("is_isolated", "cpus"), [(True, 6), (False, 8)])
def test_workers_are_counted_by_the_cpus_that_the_server_has(*, is_isolated: bool, cpus: int) -> None:
    # Of eight CPUs, a quarter is for the load generator.
    assert cpus_of_server(tuple(range(8)), is_isolated=is_isolated) == cpus
