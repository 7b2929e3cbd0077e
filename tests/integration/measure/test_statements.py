"""The statements of a workload on measured servers: the server's counts, and the plans in use."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.fix_captured import STATEMENTS, workload
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer

from pgdyno.load.discovery import find_driver
from pgdyno.load.driver import Driver
from pgdyno.measure.statement_plans import used_plans
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.connection.control_connection import ControlConnection
from pgdyno.store.workload_file import write_workload_file
from pgdyno.workload.bundled import load as bundled_workloads

if TYPE_CHECKING:
    from pgdyno.measure.arenas.arm import Arm
    from pgdyno.measure.arenas.load import Loads

pytestmark = pytest.mark.server
WITHOUT_INDEXES = "enable_indexscan=off,enable_indexonlyscan=off,enable_bitmapscan=off"
SHORT = ("--clients", "1", "--blocks", "2", "--block", "1s")


def measured(file: str, home: Path, *variants: str, scale: int | None = None) -> dict[str, Any]:
    command = ("compare", *variants) if variants else ("bench",)
    load: tuple[str, ...] = ("--workload", file) if variants else (file,)
    load += () if scale is None else (f"--scale={scale}",)
    place = {"PGDYNO_HOME": str(home), "PGDYNO_AS_BOOTED": "1"}
    done = pgdyno(*command, *load, "--embedded", "--unlike", *SHORT, "--json", **place)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def without_failures(workload_file: Path) -> str:
    kinds = [one for one in workload().transactions if one.calls[0].statement != "wrong"]
    write_workload_file(workload_file, replace(workload(), transactions=tuple(kinds)))
    return str(workload_file)


def test_statements_are_counted_and_planned_on_both_servers(without_failures: str, home: Path) -> None:
    found = measured(
        without_failures,
        home,
        "default",
        f"scan:{WITHOUT_INDEXES},shared_preload_libraries=auto_explain",
    )
    counted = {one["statement"]: one for one in found["statements"]}
    assert counted.keys() - {"other statements", "not of the workload"} <= STATEMENTS.keys()
    assert {"moment", "number", "any", "clock", "write"} <= counted.keys()
    assert sum(one["share"] for one in found["statements"]) == pytest.approx(1.0)
    for one in counted.values():
        assert one["before_ms"] > 0
        assert one["after_ms"] > 0
        assert one["effect"] is None  # two rounds decide nothing
        assert one["reason"]
    plans = {(one["statement"], one["variant"]): one["shapes"] for one in found["plans"]}
    by_key = ["Index Scan on t (by UNIQUE public.t USING btree (id); index cond (t.id = ?))"]
    assert plans["moment", "default"] == [by_key]
    assert plans["moment", "scan"] == [["Seq Scan on t (filter (t.id = ?))"]]
    # What pgdyno adds to the servers is not what a variant requests.
    settings = {
        (one["variant"], one["name"]): (one["requested"], one["effective"]) for one in found["settings"]
    }
    for name in ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"):
        assert settings.pop(("default", name)) == (None, "on")
        assert settings.pop(("scan", name)) == ("off", "off")
    assert settings == {
        ("default", "shared_preload_libraries"): (None, "pg_stat_statements"),
        ("scan", "shared_preload_libraries"): ("auto_explain", "auto_explain,pg_stat_statements"),
    }


def test_statements_of_a_bundled_workload_have_the_drivers_names(home: Path) -> None:
    found = measured("sysbench-read-only", home, scale=10)
    names = Counter(one["statement"] for one in found["statements"])
    assert names.total() == len(names)
    assert {"point-select", "simple-range", "sum-range", "order-range", "distinct-range"} <= names.keys()
    assert names.keys() <= {
        *("point-select", "simple-range", "sum-range", "order-range", "distinct-range"),
        *("begin", "commit", "other statements"),
    }


def test_plans_of_a_bundled_workload_are_known(home: Path) -> None:
    found = measured("sysbench-read-only", home, "default", f"scan:{WITHOUT_INDEXES}", scale=10)
    plans = {(one["statement"], one["variant"]): one["shapes"] for one in found["plans"]}
    assert {name for name, variant in plans if variant == "scan"} == {
        *("point-select", "simple-range", "sum-range", "order-range", "distinct-range"),
    }
    by_key = "UNIQUE public.sbtest1 USING btree (id)"
    assert plans["point-select", "default"] == [
        [f"Index Scan on sbtest1 (by {by_key}; index cond (sbtest1.id = ?))"]
    ]
    assert plans["point-select", "scan"] == [["Seq Scan on sbtest1 (filter (sbtest1.id = ?))"]]
    assert not [note for note in found["notes"] if "statement" in note or "plan" in note]


def test_variants_that_decide_on_counting_are_measured_and_not_counted(home: Path) -> None:
    found = measured("sysbench-read-only", home, "default", "off:compute_query_id=off", scale=10)
    assert found["statements"] == found["plans"] == []
    why = "no verdicts on statements: off sets compute_query_id, which decides how they are counted"
    assert why in found["notes"]


@dataclass(frozen=True)
class EmptyServer:
    """A load on a server without its tables."""

    dsn: str
    scratch: Path

    def connect(self, *_: object) -> ControlConnection:
        return connect(self.dsn)

    def find_driver(self) -> Driver:
        return find_driver(self.scratch)


def test_statements_that_cannot_be_planned_are_one_note(pg18: RealServer, tmp_path: Path) -> None:
    arms = [
        cast("Arm", SimpleNamespace(variant=Variant(name), losses_explained=nullcontext)) for name in "ab"
    ]
    loads = cast("Loads", EmptyServer(pg18.dsn, tmp_path))
    found = used_plans(arms, bundled_workloads()["sysbench-read-only"], loads)
    assert found == ((), ('plans of 5 statements are unknown: relation "sbtest1" does not exist',))
