"""What an experiment on scratch servers starts has none of root's secrets."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.test_environment_of_servers import ELSEWHERE, SECRET

from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.installation import installation_at
from pgdyno.postgres.process.processes import children
from pgdyno.workload.workload_choice import find_workloads

pytestmark = pytest.mark.server
PROGRAMS = {"driver": "pgdyno-driver", "pgbench": "pgbench"}


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ELSEWHERE.items():
        monkeypatch.setenv(name, value)


@pytest.mark.root
@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("generator", ["driver", "pgbench"])
def test_a_secret_of_root_reaches_neither_a_server_nor_what_loads_it(
    pg18_bin: Path, monkeypatch: pytest.MonkeyPatch, generator: str
) -> None:
    workload = next(iter(find_workloads(("pgbench-select",), scale=1, generator=generator).values()))
    for name in ("AWS_SECRET_ACCESS_KEY", "https_proxy"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("LC_TIME", "C")
    variants, installation = [Variant("default")], installation_at(pg18_bin, current_account())
    with open_scratch_arena(installation, variants, Lines(), is_isolated=False, is_timed=False) as arena:
        arena.restore(variants, [0], workload.data_set)
        with arena.arms(variants, [0], workload.data_set) as (arm,):
            turns = arena.loads.prepare([arm], ["secret"], workload, Design(clients=1), 5.0, [0])
            with closing(turns):
                turns.warm_up(0, 0.2)
                found = [environment_of(pid) for pid in (arm.postmaster_pid, *named(PROGRAMS[generator]))]
                turns.end()
    assert len(found) == 2
    for environment in found:
        assert {"LC_TIME", "PATH"} <= {*environment}
        assert SECRET not in environment.values()
        assert not {*environment} & {"HOME", "USER", "LOGNAME"}


def named(name: str) -> list[int]:
    """Return the children of this process that run a program of this name."""
    return [pid for pid in children(os.getpid()) if Path(f"/proc/{pid}/comm").read_text().strip() == name]


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with."""
    pairs = Path(f"/proc/{pid}/environ").read_text().rstrip("\0").split("\0")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


@pytest.mark.usefixtures("elsewhere", "home")
def test_nothing_that_an_experiment_on_scratch_servers_starts_has_them(pg18_bin: Path) -> None:
    installation = installation_at(pg18_bin, current_account())
    with open_scratch_arena(installation, [Variant("default")], Lines(), is_isolated=False):
        assert not {*ELSEWHERE} & {*os.environ}
    assert {name: os.environ[name] for name in ELSEWHERE} == ELSEWHERE
