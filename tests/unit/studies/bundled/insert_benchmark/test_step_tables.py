"""The evidence behind a step, as tables: cells reckoned by hand."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.synthetic_steps import PREFIX
from tests.golden.synthetic_steps import experiment as of_ten_steps

from pgdyno.model.experiments.step_record import (
    ClientRecord,
    RoleRecord,
    Stall,
    StallCause,
    StepRecord,
)
from pgdyno.studies.bundled.insert_benchmark.step_tables import (
    Recorded,
    chosen_counters,
    client_table,
    counter_table,
    metric_table,
    recorded,
    stall_list,
    stall_table,
    wait_table,
)

NBSP = "\N{NO-BREAK SPACE}"
INSERT = RoleRecord(
    "insert",
    30,
    latency_ms={"p50": 1.0, "p95": 2.0, "p99": 3.0, "p999": 4.0, "max": 5.0},
    lag_ms={"p99": 0.5},
    clients=(ClientRecord(20, 10.0), ClientRecord(10, 8.0)),
)


def step(**changes: object) -> StepRecord:
    usual = StepRecord("rows", completed=1500, running_s=10.0, chores_s=0.0, roles=(INSERT,))
    return replace(usual, **changes)  # type: ignore[arg-type]


def rounds(*records: StepRecord, variant: str = "a") -> list[Recorded]:
    return [Recorded(variant, number, record) for number, record in enumerate(records, 1)]


def test_clients_have_mean_latencies_and_the_longest_of_all_rounds() -> None:
    slower = {"p50": 3.0, "p95": 4.0, "p99": 5.0, "p999": 6.0, "max": 50.0}
    table = client_table(rounds(step(), step(roles=(replace(INSERT, latency_ms=slower),))), ["a", "b"])
    assert table is not None
    assert table.rows == (("insert, a", "3", "2", "3", "4", "5", "50", "0.5", f"62.5{NBSP}%"),)


def test_failures_get_a_column_only_where_there_were_some() -> None:
    failing = replace(INSERT, retries={"40P01": 2}, errors={"23505": 1})
    table = client_table(rounds(step(roles=(failing,)), step(roles=(failing,))), ["a"])
    assert table is not None
    assert table.columns[-1].title == "Failures"
    assert table.rows[0][-1] == "4 × 40P01 repeated, 2 × 23505"


def test_waits_are_shares_the_most_frequent_first() -> None:
    one, other = step(waits={"IO": 0.75, "CPU": 0.25}, wait_samples=600), step(waits={}, wait_samples=600)
    table = wait_table(rounds(one, other), ["a"])
    assert table is not None
    assert [column.title for column in table.columns] == ["Variant", "IO", "CPU", "Samples"]
    assert table.rows == (("a", f"37.5{NBSP}%", f"12.5{NBSP}%", "1,200"),)


def test_rounds_without_samples_do_not_count_as_rounds_without_waits() -> None:
    table = wait_table(rounds(step(waits={"IO": 1.0}, wait_samples=5), step()), ["a"])
    assert table is not None
    assert table.rows == (("a", f"100.0{NBSP}%", "5"),)
    assert wait_table(rounds(step()), ["a"]) is None


def test_stalls_are_counted_with_their_seconds_by_cause() -> None:
    stalls = (
        Stall(1.0, 2.0, StallCause.CHECKPOINT, "a checkpoint wrote"),
        Stall(5.0, 8.0, StallCause.UNKNOWN, "nothing was seen"),
    )
    found = [*rounds(step(stalls=stalls), step()), *rounds(step(), variant="b")]
    table = stall_table(found, ["a", "b"])
    assert table is not None
    assert [column.title for column in table.columns][3:] == ["Total", "during checkpoint", "during unknown"]
    assert table.rows == (
        ("a", "2", "2", f"4{NBSP}s", f"1{NBSP}s", f"3{NBSP}s"),
        ("b", "1", "0", f"0{NBSP}s", f"0{NBSP}s", f"0{NBSP}s"),
    )
    assert stall_list(found)[0] == f"a, round 1, from 5{NBSP}s on for 3{NBSP}s: unknown: nothing was seen"


def test_no_stall_no_table() -> None:
    assert stall_table(rounds(step()), ["a"]) is None
    assert stall_list(rounds(step())) == ()


def test_checkpoints_and_vacuums_come_first_then_what_differs_most_per_operation() -> None:
    of: dict[str, list[float | None]] = {
        "io.reads": [1000.0, 4000.0],  # 1 and 2 per operation
        "io.hits": [9000.0, 18000.0],  # 9 and 9 per operation
        "io.rare": [0.0, 9.0],
        "io.new": [None, 800.0],
        "io.gone": [500.0, 0.0],
        "checkpointer.num_timed": [0.0, 1.0],
        "tables.vacuum_count": [0.0, 0.0],
        "database.session_time": [0.0, 9000.0],
    }
    assert chosen_counters(of, [1000.0, 2000.0]) == [
        "checkpointer.num_timed",
        "io.gone",
        "io.reads",
        "io.hits",
        "io.new",
    ]


def test_counter_that_a_server_lacks_is_a_dash() -> None:
    found = [*rounds(step()), *rounds(step(counters={"pg_stat_io.x.reads": 250.0}), variant="b")]
    table = counter_table(found, ["a", "b"], "row")
    assert table is not None
    assert table.rows == (("pg_stat_io.x.reads", "–", "250"),)


def test_figures_speak_of_rows_and_leave_latencies_to_the_clients() -> None:
    base, workload = of_ten_steps(), f"{PREFIX}l.i0"
    table = metric_table(base, workload, recorded(base, workload))
    assert table is not None
    assert [cells[0] for cells in table.rows] == [
        "Throughput",
        "Server CPU per row",
        "Client CPU per row",
        "WAL per row",
        "Full-page images in the WAL per row",
        "Shared buffer hit ratio",
        "Dead rows when the step began",
    ]
    assert table.rows[-1][1:] == ("1,200",) * 4
    assert table.rows[0][1].endswith(f"{NBSP}rows/s")


def test_records_of_void_rounds_do_not_count() -> None:
    base = of_ten_steps()
    assert len(recorded(base, f"{PREFIX}qr100")) == 6 * 4
    assert len(recorded(base, f"{PREFIX}qp100")) == 5 * 4
