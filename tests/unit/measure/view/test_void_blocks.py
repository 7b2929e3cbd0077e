"""Blocks that do not count, wholly or in part, and effects adjusted for stolen time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.golden.synthetic import experiment

from pgdyno.measure.view.void_blocks import (
    adjustment_tables,
    drain_table,
    left_out_table,
    refusals,
    void_block_table,
    void_rule_table,
)
from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.results.documents import comparison_document
from pgdyno.results.page import render_page
from pgdyno.store.bundle import check_bundle

NBSP = "\N{NO-BREAK SPACE}"
RECORDED = Path(__file__).parents[3] / "fixtures/bundles/earlier/tuned-vs-default.zip"


def test_ends_of_turns_are_shown_by_variant_with_the_largest_difference_in_a_block() -> None:
    def block(index: int, default: float, plan: float, apart: float) -> Block:
        arms = (
            ArmBlock("default", 1, 1.0, {"drain_share": default}),
            ArmBlock("plan", 1, 1.0, {"drain_share": plan}),
        )
        return Block("sysbench-read-write", 0, index, 0, arms, audit={"drain_share_difference": apart})

    blocks = (block(0, 0.08, 0.10, 0.02), block(1, 0.10, 0.11, 0.01))
    assert drain_table(replace(experiment(), blocks=blocks)).rows == (
        ("sysbench-read-write", "default", f"9.0{NBSP}%", f"10.0{NBSP}%", f"2.0{NBSP}%"),
        ("sysbench-read-write", "plan", f"10.5{NBSP}%", f"11.0{NBSP}%", f"2.0{NBSP}%"),
    )
    page = render_page(replace(experiment(), blocks=blocks))
    assert "Drains at the ends of turns, in which transactions end and none begins" in page


def test_where_the_ends_of_turns_were_not_recorded_there_is_no_table_of_them() -> None:
    assert drain_table(experiment()).rows == ()
    assert "Drains at the ends" not in render_page(experiment())


def test_every_threshold_is_printed_beside_the_worst_value_seen() -> None:
    rows = {row[0]: row[1:] for row in void_rule_table(experiment()).rows}
    assert rows["CPU time stolen by the hypervisor"] == (
        f"above 10{NBSP}%, and twice the median",
        f"14.2{NBSP}%",
    )
    beyond = rows["void blocks, beyond which the report begins with a warning"]
    assert beyond == (f"above 30{NBSP}%", f"2 of 24 (8{NBSP}%)")


def test_the_largest_part_that_was_left_out_of_a_block_is_shown() -> None:
    base = experiment()
    first = replace(base.blocks[0], audit={**base.blocks[0].audit, "left_out_share": 1 / 6})
    disturbed = replace(base, blocks=(first, *base.blocks[1:]))
    rows = {row[0]: row[1:] for row in void_rule_table(disturbed).rows}
    assert rows["part of a block left out for that"] == ("half", f"16.7{NBSP}%")
    assert left_out_table(disturbed).rows == ((first.workload, "1", "1", f"16.7{NBSP}%"),)
    assert left_out_table(base).rows == ()
    assert "Blocks with a part left out" in render_page(disturbed)
    assert "Blocks with a part left out" not in render_page(base)
    assert "part of a block left out for that" not in {row[0] for row in void_rule_table(base).rows}


def test_turns_that_load_hosts_began_apart_have_a_rule_where_there_were_several() -> None:
    base, rule = experiment(), "a variant's turns that load hosts may have begun too far apart"
    assert rule not in {row[0] for row in void_rule_table(base).rows}
    first = replace(base.blocks[0], audit={**base.blocks[0].audit, "apart_share": 0.125})
    rows = {row[0]: row[1:] for row in void_rule_table(replace(base, blocks=(first, *base.blocks[1:]))).rows}
    assert rows[rule] == (f"above 20{NBSP}%", f"12.5{NBSP}%")


def test_audits_that_were_not_read_say_so() -> None:
    base = experiment()
    blind = replace(base, blocks=tuple(replace(block, audit={}) for block in base.blocks))
    assert void_rule_table(blind).rows[0][2] == "not read"


def test_void_blocks_are_listed_with_their_reasons() -> None:
    assert void_block_table(experiment()).rows == (
        (
            "sysbench-read-write",
            "1",
            "1",
            "12.9% of the CPU time went to processes that are not ours (limit 10%)",
        ),
        (
            "sysbench-read-only",
            "4",
            "2",
            "14.2% of the CPU time was stolen by the hypervisor (limit 10%)",
        ),
    )


@pytest.fixture(scope="module")
def recorded() -> Experiment:
    found = check_bundle(RECORDED).experiment
    assert found is not None
    return found


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_adjusted_effects_stand_beside_the_unadjusted_ones(recorded: Experiment) -> None:
    _, writing = adjustment_tables(recorded)
    assert plain(writing.caption) == (
        "sysbench-read-write: the hypervisor took between 0.9 % and 57.8 % of the CPU time of 25 trials. "
        "Adjusted for stolen time: effects at equal stolen time; the verdicts use the unadjusted effects"
    )
    assert [plain(column.title) for column in writing.columns] == [
        "Variant", "Metric", "Unadjusted", "Adjusted", "95 % interval",
    ]  # fmt: skip
    (plan,) = (row for row in writing.rows if row[:2] == ("plan", "throughput"))
    assert (plain(plan[2]), plain(plan[3])) == (
        "−57 %",
        "+35.4 %",
    )  # of the recorded report; of the review: +35 % (+24 … +48)
    assert refusals(recorded) == ()


def test_why_nothing_is_adjusted_is_said(recorded: Experiment) -> None:
    credited = replace(recorded, burstable_type="t3.micro")
    assert adjustment_tables(credited) == ()
    assert plain(refusals(credited)[1]) == (
        "sysbench-read-write: the hypervisor took between 0.9 % and 57.8 % of the CPU time of 25 trials. No "
        "effect is adjusted for it: t3.micro has CPU credits: steal time depends on earlier use"
    )
    page = render_page(credited)
    assert page.count("No effect is adjusted for it") == 2


def test_page_and_document_have_them(recorded: Experiment) -> None:
    assert "Adjusted for stolen time: effects at equal stolen time" in render_page(recorded)
    found = comparison_document(recorded)["adjusted_for_stolen_time"]
    assert isinstance(found, list)
    assert [one["workload"] for one in found] == list(recorded.workloads)
    assert {"metric", "variant", "interval"} <= set(found[1]["effects"][0])
