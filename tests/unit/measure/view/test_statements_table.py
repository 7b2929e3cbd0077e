"""Tables of statements, and the plans that changed."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.measure.verdicts.test_statements import arm, counted, experiment, measured, with_throughput

from pgdyno.measure.view.statements_table import ChangedPlan, changed_plans, statement_tables
from pgdyno.model.experiments.experiment import Block, Experiment
from pgdyno.model.experiments.statements import UsedPlans
from pgdyno.model.variants.schema_sql import SchemaChange
from pgdyno.report.elements.tables import NOTHING, Table

SEQ, INDEX = ("Seq Scan on t",), ("Index Scan on t", "  child")
PLANS = (
    UsedPlans("w", "point", "a", (SEQ, INDEX)),
    UsedPlans("w", "point", "b", (INDEX,)),
    UsedPlans("w", "scan", "a", (SEQ, INDEX)),
    UsedPlans("w", "scan", "b", (INDEX, SEQ)),  # for other values first
    UsedPlans("w", "alone", "b", (SEQ,)),
)


def table_of(found: Experiment) -> Table:
    (table,) = statement_tables(found)
    return table


def test_a_decided_statement_has_its_effect_and_verdict() -> None:
    scan, point = table_of(measured(1.2)).rows
    assert (scan[0], scan[5], point[0], point[5]) == ("scan", "= equivalent", "point", "✗ slower")
    assert point[1] == "33.3\xa0%"
    assert point[2] == "1.000 → 1.200"
    assert point[3] == "+20.0\xa0%"


def test_a_statement_without_a_verdict_has_the_reason() -> None:
    whole = measured(2.0)
    few = table_of(replace(whole, blocks=whole.blocks[:4]))
    assert [row[3:6] for row in few.rows] == [(NOTHING, NOTHING, "4 rounds; at least 5 are needed")] * 2
    rare = {row[0]: row[5] for row in table_of(measured(2.0, calls=24, ms=100.0)).rows}
    assert rare["point"] == "24 counted calls a round; at least 25 are needed"


def test_the_lesson_states_what_is_judged_and_another_load() -> None:
    judged = (
        "Judged: statements with at least 25 counted calls a round (a quarter of the turns, or a whole "
        "trial, is counted) and 0.5\xa0% of the time. Intervals of faster and slower ones are at more than "
        "95 %, because these were selected."
    )
    assert table_of(measured(1.0)).lesson == judged
    assert table_of(with_throughput(measured(1.0), 0.95)).lesson == judged
    assert table_of(with_throughput(measured(1.0), 1.35)).lesson == (
        f"{judged} b had 35.0\xa0% more load: slower statements do not fail --gate, because waiting for "
        "others depends on the load."
    )
    assert "b had 15.0\xa0% less load" in table_of(with_throughput(measured(1.0), 0.85)).lesson


def test_only_plans_of_both_servers_that_differ_are_changed() -> None:
    found = replace(measured(1.0), plans=PLANS)
    both = "Seq Scan on t\n\nIndex Scan on t\n  child"
    assert changed_plans(found) == [ChangedPlan("w", "b", "point", both, "Index Scan on t\n  child")]
    assert {row[0]: row[6] for row in table_of(found).rows} == {"point": "changed", "scan": ""}


def test_a_changed_plan_is_marked_where_statements_share_a_text() -> None:
    shared = {"point / point-2": counted(1000, 1.0), "scan": counted(1000, 1.0)}
    blocks = (Block("w", one, 0, 0, (arm("a", shared), arm("b", shared))) for one in range(5))
    found = replace(experiment(*blocks), plans=PLANS)
    assert {row[0]: row[6] for row in table_of(found).rows} == {"point / point-2": "changed", "scan": ""}


def test_one_server_has_times_alone() -> None:
    alone = experiment(Block("w", 0, 0, 0, (arm("a", {"x": counted(500, 1.5)}),)), variants=("a",))
    assert table_of(alone).rows == (("x", "100.0\xa0%", "1.500"),)


def test_many_statements_are_one_row_after_those_that_changed() -> None:
    same = {f"s{number}": counted(1000, 2.0) for number in range(30)} | {"slow": counted(1000, 1.0)}
    slower = {**same, "slow": counted(1000, 2.0)}
    blocks = (Block("w", one, 0, 0, (arm("a", same), arm("b", slower))) for one in range(8))
    rows = table_of(experiment(*blocks)).rows
    assert len(rows) == 21
    assert rows[-2][0] == "slow"  # with the least time of the baseline
    assert rows[-1][:2] == ("11 further statements", "36.1\xa0%")  # 22 of 61 ms


def test_the_cost_of_sql_comes_first_without_variants_that_ran_none() -> None:
    changes = (
        SchemaChange("a", "w", (), 0.001, 0, 0, 0),
        SchemaChange("b", "w", ("DROP INDEX x", "CREATE INDEX y ON t (a)"), 1.5, 3 << 20, 1 << 20, 4 << 20),
    )
    table, _ = statement_tables(replace(measured(1.0), schema_changes=changes))
    assert table.caption == "SQL of variants, run once on their copies of the data"
    assert [one.title for one in table.columns] == [
        *("Workload", "Variant", "SQL", "Time", "Made", "Dropped", "WAL")
    ]
    assert table.rows == (
        ("w", "b", "DROP INDEX x; CREATE INDEX y ON t (a)", "1.5\xa0s", "3\xa0MB", "1\xa0MB", "4\xa0MB"),
    )
    assert len([*statement_tables(replace(measured(1.0), schema_changes=changes[:1]))]) == 1
