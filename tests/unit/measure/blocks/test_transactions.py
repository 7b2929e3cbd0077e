"""Reading generators' logs. The sample lines were written by pgbench 18.6."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.measure.blocks.transactions import parse
from pgdyno.model.experiments.failures import Failures

PGBENCH = b"0 1 2873 0 1795237712 196743\n1 1 2302 0 1795237712 196767\n2 23432 1807 0 1795237715 185272\n"


def test_a_log_of_pgbench_is_read() -> None:
    parsed = parse(PGBENCH)
    assert parsed.completed_ns.tolist() == [
        1795237712196743000,
        1795237712196767000,
        1795237715185272000,
    ]
    assert parsed.latency_us.tolist() == [2873, 2302, 1807]


def test_extra_columns_such_as_schedule_lag_are_allowed() -> None:
    assert parse(b"0 1 10 0 5 6 77\n0 2 11 0 5 7 78\n").latency_us.tolist() == [10, 11]


def test_failed_transactions_are_counted_by_reason_and_left_out() -> None:
    parsed = parse(
        b"0 1 10 0 5 6 0\n0 2 deadlock 0 5 7 3\n0 3 serialization 0 5 8 9\n0 3 serialization 1 5 9 9\n"
        b"0 3 failed:23505:7:insert-\xc3\xa4rzte 0 5 17\n0 3 failed:40001:: 0 5 11\n"
    )
    assert {cause: at_ns.tolist() for cause, at_ns in parsed.failed_ns.items()} == {
        ("40P01", ""): [5_000_007_000],
        ("40001", ""): [5_000_008_000, 5_000_009_000, 5_000_011_000],
        ("23505", "insert-ärzte"): [5_000_010_000],
    }
    assert (parsed.count, parsed.failed_share) == (1, 5 / 6)
    assert parsed.failures[0] == Failures("40001", 3)


def test_an_empty_log_holds_nothing() -> None:
    assert parse(b"").count == 0


@pytest.mark.parametrize(
    "text",
    [
        b"1 2 3\n",
        b"0 1 10 0 5 6\n0 1 10 0 5\n",
        b"0 1 10 0 5 6\n- - - - - -\n",
        b"0 1 10 0 5 6 7\n0 1 10 0 5\n",  # as many numbers as two lines of six
        b"0 1 10 0 5 6 A\n",
        b"0 1 10 0 5 -\n",
        b"0 1 10 0 5 6",  # the end of the line is missing
        b"0 1 10 0 9999999999 6\n",  # nanoseconds of more than 63 bits
        b"0 1 99999999999999999999 0 5 6\n",
        b"0 1 10 0 5 1000000\n",
        b"0 1 skipped 0 5 6\n",
        b"0 1 failed:2350:1:x 0 5 6\n",
        b"0 1 failed:23505:1:x 0 9999999999 6\n",
        b"0 1 failed:23505:x 0 5 6\n",
    ],
)
def test_text_that_is_no_log_is_refused(text: bytes) -> None:
    with pytest.raises(GeneratorFailedError, match="the generator's transaction log is malformed"):
        parse(text)


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(1, 2 * 10**9), st.integers(0, 999_999)), max_size=30
    )
)
def test_every_written_line_comes_back(rows: list[tuple[int, int, int]]) -> None:
    text = b"".join(b"0 1 %d 0 %d %d\n" % row for row in rows)
    parsed = parse(text)
    assert parsed.latency_us.tolist() == [latency for latency, _, _ in rows]
    assert parsed.completed_ns.tolist() == [(s * 10**6 + us) * 1000 for _, s, us in rows]
