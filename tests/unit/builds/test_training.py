"""What is told while a program is trained; its server is one that only notes what it is given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fix_progress import Remembered

from pgdyno.builds import training
from pgdyno.builds.training import check_settings, train
from pgdyno.builds.training_workloads import Lesson, find_training_workloads
from pgdyno.postgres.process.installation import Installation

HERE = Installation(Path("/nowhere"), "18.6", 18, "counting")
PLAIN = Installation(Path("/nowhere"), "18.6", 18, "plain")


class Arena:
    """An arena whose one server does nothing; ``done`` is what was asked of it."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.environments: list[dict[str, str]] = []
        self.judges: list[str] = []
        self.loads = self
        self.data_sets = self

    @contextmanager
    def opened(self, first: Installation, variants: list[Any], *_: object, **__: object) -> Iterator[Arena]:
        self.judges.append(first.name)
        self.environments = [dict(variant.environment) for variant in variants]
        yield self

    def check(self, variants: list[Any]) -> None:
        self.done += [f"judge {variant}" for variant in variants]

    def ensure(self, data_set: Any, loader: Installation) -> None:
        self.done.append(f"load {data_set.key} by {loader.name}")

    def restore(self, _: object, __: object, data_set: Any) -> None:
        self.done.append(f"restore {data_set.key}")

    def arms(self, variants: list[Any], *_: object) -> Any:
        self.done += [f"start with {variant.gucs}" for variant in variants if variant.gucs]
        server = SimpleNamespace(stop=lambda: self.done.append("stop"))
        return nullcontext([SimpleNamespace(server=server)])

    def prepare(self, _: object, __: object, workload: Any, *___: object) -> Any:
        def warm_up(_: int, seconds: float) -> None:
            self.done.append(f"{workload.name} {seconds:g} s")

        return SimpleNamespace(warm_up=warm_up, end=lambda: None, close=lambda: None)

    def forget(self, _: str) -> None:
        """Nothing was logged."""


@pytest.fixture
def arena(monkeypatch: pytest.MonkeyPatch) -> Arena:
    found = Arena()
    monkeypatch.setattr(training, "open_scratch_arena", found.opened)
    monkeypatch.setattr(training, "_do_chores", lambda *_: found.done.append("chores"))
    return found


def lessons(*asked: str) -> tuple[Lesson, ...]:
    return find_training_workloads(asked)


def test_every_workload_runs_once_on_its_data_and_chores_after_them(arena: Arena) -> None:
    names = ("sysbench-read-only", "pgbench-tpcb", "sysbench-read-write")
    train(HERE, PLAIN, {"COUNTS": "/var/counts"}, lessons(*names), Remembered(), lambda _: None)
    assert arena.environments == [{"COUNTS": "/var/counts"}] * 2
    assert arena.done == [
        "load pgbench-40 by plain", "restore pgbench-40", "pgbench-tpcb 20 s", "chores", "stop",
        "load sysbench-tables8-300 by plain", "restore sysbench-tables8-300",
        "sysbench-read-only 20 s", "sysbench-read-write 20 s",
        "chores", "stop",
    ]  # fmt: skip


@pytest.mark.usefixtures("arena")
def test_what_is_trained_on_is_announced_and_which_share_is_over() -> None:
    progress, shares = Remembered(), list[float]()
    train(HERE, PLAIN, {}, lessons("sysbench-read-only", "pgbench-tpcb"), progress, shares.append)
    assert progress.steps == [
        "training on pgbench-tpcb", "training on chores",
        "training on sysbench-read-only", "training on chores",
    ]  # fmt: skip
    assert shares == [0.25, 0.5, 0.75, 1.0]


def test_other_settings_take_another_server_on_a_fresh_copy_of_the_same_data(arena: Arena) -> None:
    progress, shares = Remembered(), list[float]()
    generic = "plan_cache_mode=force_generic_plan"
    asked = f"pgbench-tpcb:{generic}", "pgbench-select", f"pgbench-select:{generic}"
    train(HERE, PLAIN, {"COUNTS": "/var/counts"}, lessons(*asked), progress, shares.append)
    assert arena.done == [
        "load pgbench-40 by plain", "restore pgbench-40", "pgbench-select 20 s", "chores", "stop",
        "load pgbench-40 by plain", "restore pgbench-40",
        "start with {'plan_cache_mode': 'force_generic_plan'}",
        "pgbench-tpcb 20 s", "pgbench-select 20 s", "chores", "stop",
    ]  # fmt: skip
    assert arena.environments == [{"COUNTS": "/var/counts"}] * 2
    assert progress.steps == [
        "training on pgbench-select", "training on chores",
        f"training on pgbench-tpcb:{generic}", f"training on pgbench-select:{generic}",
        "training on chores",
    ]  # fmt: skip
    assert shares == [0.2, 0.4, 0.6, 0.8, 1.0]


def test_settings_are_judged_by_the_plain_build_and_nothing_starts_without_any(arena: Arena) -> None:
    check_settings(PLAIN, lessons("pgbench-tpcb", "pgbench-select:jit=off"), Remembered())
    assert (arena.judges, arena.done) == (["plain"], ["judge pgbench-select:jit=off"])
    check_settings(PLAIN, lessons("pgbench-tpcb"), Remembered())
    assert arena.judges == ["plain"]
