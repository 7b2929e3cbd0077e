"""Raw series as CSV, read back by the standard library's reader."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.golden.synthetic import READ_ONLY, experiment
from tests.hostile_strings import HOSTILE

from pgdyno.model.experiments.experiment import ArmBlock, Block
from pgdyno.model.experiments.failures import Failures
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.experiments.step_record import (
    ClientRecord,
    IntervalRecord,
    RoleRecord,
    Stall,
    StallCause,
    StepRecord,
)
from pgdyno.store.series import blocks_csv, intervals_csv, slices_csv, steps_csv


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t", "\r"])
def test_no_text_is_a_formula_in_a_spreadsheet(begins: str) -> None:
    text = f"{begins}HYPERLINK(0)"
    block = replace(experiment().blocks[0], void=text)
    line = rows(blocks_csv([block]))[0]
    assert line["void"] == f"'{text}"
    assert line["started_ns"] == str(block.started_ns)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_reader_gives_back_every_text_and_no_formula(text: str) -> None:
    block = Block("w", 0, 0, 1, (ArmBlock(text, 1, 1.0, {text: 0.1}),), void=text)
    shown = f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r"} and text else text
    (line,) = rows(blocks_csv([block]))
    assert (line["void"], line["variant"], line["metric"], line["value"]) == (shown, shown, shown, "0.1")


def test_every_metric_of_every_arm_has_a_line_and_full_precision() -> None:
    base = experiment()
    found = rows(blocks_csv(base.blocks))
    assert len(found) == 24 * 2 * 5
    block, arm = base.blocks[0], base.blocks[0].arms[1]
    (line,) = [
        row
        for row in found
        if (row["workload"], row["round"], row["block"]) == (block.workload, "1", "1")
        and (row["variant"], row["metric"]) == ("plan", "latency_ms_p99")
    ]
    assert float(line["value"]) == arm.values["latency_ms_p99"]


def test_failed_transactions_have_columns_if_any_failed() -> None:
    failures = (Failures("40P01", 2, "pay"), Failures("40001", 3, "pay"), Failures("40001", 4, "order"))
    arms = (
        ArmBlock("default", 95, 1.0, {"m": 0.1, "n": 0.2}, failures=failures),
        ArmBlock("plan", 100, 1.0, {"m": 0.3}),
    )
    head = "workload,round,block,started_ns,void,variant,transactions,running_s"
    assert blocks_csv([Block("w", 0, 0, 7, arms)]).splitlines() == [
        f"{head},failed,failed_by_sqlstate,metric,value",
        "w,1,1,7,,default,95,1.0,9,40001=7 40P01=2,m,0.1",
        "w,1,1,7,,default,95,1.0,9,40001=7 40P01=2,n,0.2",
        "w,1,1,7,,plan,100,1.0,0,,m,0.3",
    ]
    assert blocks_csv([Block("w", 0, 0, 7, arms[1:])]).splitlines()[0] == f"{head},metric,value"


def test_texts_with_commas_quotes_and_line_ends_survive() -> None:
    odd = 'a "b", c\r\nd'
    block = Block("w", 0, 0, 1, (ArmBlock("v", 1, 1.0, {"m": 0.1}),), void=odd)
    assert rows(blocks_csv([block]))[0]["void"] == odd


def test_slices_name_their_variant_and_have_a_column_per_server() -> None:
    def slices_of(workload: str, round_: int, index: int) -> Sequence[Slice]:
        return [Slice(1, 10, 20, (3, 4))] if (workload, round_, index) == (READ_ONLY, 0, 1) else []

    found = rows(slices_csv(experiment().blocks, slices_of, ("default", "plan")))
    assert found == [
        {
            "workload": READ_ONLY,
            "round": "1",
            "block": "2",
            "variant": "plan",
            "start_ns": "10",
            "end_ns": "20",
            "is_counted": "1",
            "server_cpu_ns_1": "3",
            "server_cpu_ns_2": "4",
        }
    ]


def test_slices_have_the_end_of_their_last_transaction_where_it_is_known() -> None:
    def slices_of(workload: str, round_: int, index: int) -> Sequence[Slice]:
        taken = [Slice(0, 10, 20, (3, 4), drained_ns=25), Slice(1, 30, 40, (5, 6))]
        return taken if (workload, round_, index) == (READ_ONLY, 0, 1) else []

    text = slices_csv(experiment().blocks, slices_of, ("default", "plan"))
    assert text.splitlines() == [
        "workload,round,block,variant,start_ns,end_ns,is_counted,drained_ns,server_cpu_ns_1,server_cpu_ns_2",
        "sysbench-read-only,1,2,default,10,20,1,25,3,4",
        "sysbench-read-only,1,2,plan,30,40,1,,5,6",
    ]


def test_slices_tell_whether_they_count_and_what_others_took() -> None:
    def slices_of(workload: str, round_: int, index: int) -> Sequence[Slice]:
        taken = [Slice(0, 10, 20, (3, 4)), Slice(1, 30, 40, (5, 6), None, 0.25, 0.0)]
        return [*taken, *taken] if (workload, round_) == (READ_ONLY, 0) else []

    block = replace(experiment().blocks[0], left_out=(2, 3))
    void = replace(block, index=1, left_out=(), void="odd")
    text = slices_csv([block, void], slices_of, ("default", "plan"))
    lines = text.splitlines()
    assert lines[0] == (
        "workload,round,block,variant,start_ns,end_ns,is_counted,steal_share,foreign_cpu_share,"
        "server_cpu_ns_1,server_cpu_ns_2"
    )
    assert lines[1:3] == [
        "sysbench-read-only,1,1,default,10,20,1,,,3,4",
        "sysbench-read-only,1,1,plan,30,40,1,0.25,0.0,5,6",
    ]
    assert [line.split(",")[6] for line in lines[1:]] == ["1", "1", "0", "0", "0", "0", "0", "0"]


STEP = StepRecord(
    "queries",
    completed=50,
    running_s=2.0,
    chores_s=0.25,
    roles=(
        RoleRecord(
            "query",
            50,
            statements={"point": 50},
            latency_ms={"p99": 0.1},
            lag_ms={"max": 3.0},
            clients=(ClientRecord(30, 1.5), ClientRecord(20, 2.0)),
            retries={"40001": 1},
            errors={"23505": 2},
        ),
    ),
    intervals=(IntervalRecord(0.0, 1.0, {"insert": 4, "query": 30}, {"query": 7.5}),),
    stalls=(Stall(0.5, 1.75, StallCause.IO, "reads"),),
    waits={"IO": 0.5},
    wait_samples=8,
    counters={"pg_stat_wal.wal_fpi": 12.0},
    published={"qps": 25.0},
)
BLOCK = Block(
    "w", 1, 0, 7, (ArmBlock("v", 50, 2.0, {"m": 1.0}, STEP), ArmBlock("bare", 1, 1.0, {})), void="odd, so"
)


def test_every_figure_of_a_step_has_a_line() -> None:
    found = rows(steps_csv([BLOCK]))
    assert {(row["workload"], row["round"], row["void"], row["variant"]) for row in found} == {
        ("w", "2", "odd, so", "v")
    }
    assert [(row["kind"], row["name"], row["value"]) for row in found] == [
        ("step", "completed", "50"),
        ("step", "running_s", "2.0"),
        ("step", "chores_s", "0.25"),
        ("step", "stalls", "1"),
        ("step", "stalled_s", "1.25"),
        ("step", "wait_samples", "8"),
        ("role", "query.transactions", "50"),
        ("role", "query.latency_ms_p99", "0.1"),
        ("role", "query.lag_ms_max", "3.0"),
        ("role", "query.statements.point", "50"),
        ("role", "query.retries.40001", "1"),
        ("role", "query.errors.23505", "2"),
        ("role", "query.client_1.transactions", "30"),
        ("role", "query.client_1.ended_s", "1.5"),
        ("role", "query.client_2.transactions", "20"),
        ("role", "query.client_2.ended_s", "2.0"),
        ("wait", "IO", "0.5"),
        ("counter", "pg_stat_wal.wal_fpi", "12.0"),
        ("published", "qps", "25.0"),
    ]


def test_every_role_of_an_interval_has_a_line() -> None:
    found = rows(intervals_csv([BLOCK]))
    assert [(row["role"], row["transactions"], row["latency_ms_max"]) for row in found] == [
        ("insert", "4", ""),
        ("query", "30", "7.5"),
    ]
    assert (found[0]["start_s"], found[0]["length_s"], found[0]["variant"]) == ("0.0", "1.0", "v")


def test_blocks_without_steps_leave_a_heading_only() -> None:
    assert rows(steps_csv(experiment().blocks)) == []
    assert rows(intervals_csv(experiment().blocks)) == []
