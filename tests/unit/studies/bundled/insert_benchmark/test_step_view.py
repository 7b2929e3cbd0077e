"""The published fields of a step beside ours."""

from __future__ import annotations

from tests.unit.studies.bundled.insert_benchmark.test_step_tables import rounds, step

from pgdyno.studies.bundled.insert_benchmark.view import FIELDS, published_table


def test_published_fields_stand_in_the_benchmarks_order_ours_below_the_one_it_resembles() -> None:
    found = rounds(step(published={"ips": 150.0, "cpupq": 42.0}), step(published={"ips": 250.0}))
    table = published_table(found, ["a"], {"a": 17.0}, "row")
    assert table is not None
    assert " ".join(cells[0] for cells in table.rows) == (
        "ips qps rps rmbps wps wmbps rpq rkbpq wpi wkbpi csps cpups cspq cpupq (server only) "
        "dbgb1 dbgb2 rss maxop p50 p99"
    )
    cells = {row[0]: row[1] for row in table.rows}
    assert (cells["ips"], cells["cpupq"], cells["(server only)"]) == ("200", "42.0", "17.0")
    assert cells["rps"] == "–"
    assert "including the client and all other processes" in FIELDS["cpupq"]


def test_without_published_fields_there_is_no_table() -> None:
    assert published_table(rounds(step()), ["a"], {}, "row") is None
