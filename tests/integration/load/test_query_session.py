"""Servers of different kinds give the same answers like TPC-H's, and refreshes keep their data whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fix_tpch import needs_tpchgen
from tests.integration.tpch_servers import SMALLEST, arm_answers, loaded_arm, values

from pgdyno.load.query_session import QuerySession
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled.tpch.queries import known_answers
from pgdyno.studies.bundled.tpch.refresh import refresh, refreshed_orders, sparse_key

pytestmark = [
    pytest.mark.server,
    pytest.mark.usefixtures("home"),
    needs_tpchgen,
]

KEYS = ("lineitem WHERE l_orderkey", "orders WHERE o_orderkey")


@pytest.mark.parametrize("workers", ["0", "4"])
def test_answers_do_not_depend_on_the_degree(pg18_bin: Path, workers: str) -> None:
    forced = {"min_parallel_table_scan_size": "0", "parallel_setup_cost": "0", "parallel_tuple_cost": "0"}
    variant = Variant("default", {"max_parallel_workers_per_gather": workers, **forced})
    with loaded_arm(pg18_bin, variant=variant) as started:
        assert arm_answers(started, SMALLEST) == known_answers(SMALLEST)


@pytest.mark.long  # the queries are the same for every major version
def test_postgresql_15_gives_the_known_answers(pg15_bin: Path) -> None:
    with loaded_arm(pg15_bin) as started:
        assert arm_answers(started, SMALLEST) == known_answers(SMALLEST)


@pytest.mark.long
def test_answers_at_scale_a_tenth_are_the_known_ones(pg18_bin: Path) -> None:
    with loaded_arm(pg18_bin, 100) as started:
        assert arm_answers(started, 100) == known_answers(100)


def test_refreshes_leave_as_many_orders_and_only_whole_ones(pg18_bin: Path) -> None:
    inserts = ("COPY orders FROM STDIN", "COPY lineitem FROM STDIN")
    deletes = [f"DELETE FROM {place} = ANY(%s)" for place in KEYS]  # noqa: S608 — names of ours
    with loaded_arm(pg18_bin) as arm:
        with QuerySession.open(arm.target()) as session:
            for number in (1, 2):
                pair = refresh((1, number), SMALLEST, number)
                session.copy_in(list(zip(inserts, (pair.orders, pair.lines), strict=True)))
                session.delete(deletes, pair.deleted)
        assert values(arm, "SELECT count(*) FROM orders") == [15_000]
        gone = [sparse_key(place, 0) for number in (1, 2) for place in refreshed_orders(SMALLEST, number)]
        for place in KEYS:
            left = f"SELECT count(*) FROM {place} = ANY(ARRAY{gone})"  # noqa: S608 — keys of ours
            assert values(arm, left) == [0]
        assert values(arm, "SELECT count(*) FROM orders WHERE o_orderkey % 32 BETWEEN 8 AND 15") == [30]
