"""Which build a plan chooses, and when none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.fix_settings import server_of

from pgdyno.base.errors import SettingError
from pgdyno.model.plans.plan import Layer, Plan
from pgdyno.model.plans.recipe import KnownBuild
from pgdyno.plan import levers
from pgdyno.plan.engine.planner import PlanRequest, make_plan
from pgdyno.plan.levers._contract import LeverModule, PlanLine, Skipped

VERSION = server_of(18).version
MODULE = levers.load()["optimised_build"]
NEWEST = KnownBuild("built-00000000000b", "18.6", "clang 19", "lto+pgo+bolt", ("sysbench-read-only",), 428)
OLDER = KnownBuild("built-00000000000a", "18.6", "gcc 12", "lto+pgo", (), 428)
OF_17 = KnownBuild("built-000000000017", "17.11", "gcc 12", "lto+pgo", (), 428)


def plan(*builds: KnownBuild, is_movable: bool = True, modules: dict[str, LeverModule] | None = None) -> Plan:
    request = PlanRequest(layers=(Layer.COMPILER,), builds=builds if is_movable else None)
    return make_plan(None, server_of(18), request, levers=modules)


def test_the_strongest_build_is_chosen_and_of_equals_the_newest() -> None:
    trained = replace(NEWEST, name="built-00000000000c", recipe="o3+pgo")
    assert plan(trained, OLDER, NEWEST).server == NEWEST.name
    assert plan(trained, OLDER).server == OLDER.name
    assert plan(replace(OLDER, name="built-00000000000d"), OLDER).server == "built-00000000000d"


def test_a_build_of_the_same_major_is_chosen() -> None:
    chosen = plan(OF_17, NEWEST, OLDER)
    assert chosen.server == NEWEST.name
    (line,) = chosen.lines
    assert line.reason == (
        "PostgreSQL 18.6, compiled by clang 19 with lto+pgo+bolt, trained on sysbench-read-only; "
        "all 428 of PostgreSQL's tests passed"
    )
    assert chosen.values == {}


def test_without_one_it_says_how_to_make_one() -> None:
    (skipped,) = plan(OF_17).skipped
    assert skipped.reason == (
        f"no verified build of PostgreSQL {VERSION} or a later 18 is available; "
        "pgdyno build --source debian:18 creates one"
    )


def test_no_older_release_is_chosen() -> None:
    assert plan(replace(NEWEST, version="18.0")).server is None


def test_a_running_server_stays_with_its_own() -> None:
    chosen = plan(NEWEST, is_movable=False)
    assert chosen.server is None
    assert chosen.skipped[0].reason.startswith("a plan does not move a running server to another build")


def test_a_lever_cannot_choose_what_is_not_there() -> None:
    class Faulty:
        LEVER, __doc__ = MODULE.LEVER, MODULE.__doc__

        @staticmethod
        def plan(_: object) -> tuple[PlanLine, ...]:
            outcome = MODULE.plan(_context_of(OLDER))  # type: ignore[arg-type]
            assert not isinstance(outcome, Skipped)
            return tuple(outcome)

    with pytest.raises(SettingError, match='"built-00000000000a" is not a build this lever may choose'):
        plan(NEWEST, modules={"optimised_build": Faulty})  # type: ignore[dict-item]


def _context_of(build: KnownBuild) -> object:
    class Context:
        builds = (build,)
        server = server_of(18)

    return Context()
