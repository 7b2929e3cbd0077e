"""Slices that are read back are those that were written; anything else is refused by its line."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import nullcontext as does_not_raise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.synthetic import READ_ONLY, experiment

from pgdyno.base.errors import StorageError
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.slices import Slice
from pgdyno.store.experiments import Place
from pgdyno.store.series import read_slices as read_lines
from pgdyno.store.series import slices_csv

HEADER = "workload,round,block,variant,start_ns,end_ns,server_cpu_ns_1,server_cpu_ns_2\r\n"
times = st.integers(0, (1 << 63) - 1)
cpu = st.lists(times, min_size=1, max_size=2).map(tuple)
shares = st.none() | st.floats(0, 4)
slices = st.lists(
    st.builds(Slice, st.integers(0, 1), times, times, cpu, st.none() | times, shares, shares),
    max_size=5,
)


def read_slices(text: str, of: Experiment) -> Iterator[tuple[Place, Slice]]:
    return read_lines(io.StringIO(text, newline=""), of)


@given(slices)
def test_what_was_written_is_read(written: list[Slice]) -> None:
    def slices_of(workload: str, round_: int, index: int) -> Sequence[Slice]:
        return written if (workload, round_, index) == (READ_ONLY, 1, 0) else []

    text = slices_csv(experiment().blocks, slices_of, ("default", "plan"))
    assert list(read_slices(text, experiment())) == [(Place(READ_ONLY, 1, 0), one) for one in written]


def test_files_with_and_without_the_ends_of_turns_are_read() -> None:
    without = f"{HEADER}{BLOCK},plan,1,2,3,4\r\n"
    with_ends = HEADER.replace("end_ns,", "end_ns,drained_ns,")
    ends = f"{with_ends}{BLOCK},plan,1,2,5,3,4\r\n{BLOCK},plan,1,2,,3\r\n"
    assert [one for _, one in read_slices(without, experiment())] == [Slice(1, 1, 2, (3, 4))]
    assert [one for _, one in read_slices(ends, experiment())] == [
        Slice(1, 1, 2, (3, 4), drained_ns=5),
        Slice(1, 1, 2, (3,)),
    ]


def test_how_far_apart_load_hosts_began_is_read_again() -> None:
    written = [Slice(0, 10, 20, (3, 4), drained_ns=25, apart_ns=2), Slice(1, 30, 40, (5, 6), apart_ns=0)]

    def slices_of(workload: str, round_: int, index: int) -> Sequence[Slice]:
        return written if (workload, round_, index) == (READ_ONLY, 1, 0) else []

    text = slices_csv(experiment().blocks, slices_of, ("default", "plan"))
    assert text.splitlines()[1] == "sysbench-read-only,2,1,default,10,20,1,25,2,3,4"
    assert [one for _, one in read_slices(text, experiment())] == written


@pytest.mark.parametrize(
    ("counted", "share", "why"),
    [
        ("2", "0.5", '"2" is neither 0 nor 1'),
        ("1", "nan", '"nan" is not a share of CPU time'),
        ("1", "-0.5", '"-0.5" is not a share of CPU time'),
    ],
)
def test_what_counts_and_what_others_took_is_checked(counted: str, share: str, why: str) -> None:
    header = HEADER.replace("end_ns,", "end_ns,is_counted,steal_share,foreign_cpu_share,")
    with pytest.raises(StorageError) as caught:
        list(read_slices(f"{header}{BLOCK},plan,1,2,{counted},{share},0.0,3\r\n", experiment()))
    assert caught.value.detail == why


def test_an_end_that_is_no_time_is_refused() -> None:
    text = HEADER.replace("end_ns,", "end_ns,drained_ns,")
    with pytest.raises(StorageError) as caught:
        list(read_slices(f"{text}{BLOCK},plan,1,2,x,3\r\n", experiment()))
    assert caught.value.detail == f'"x" {NO_NUMBER}'


BLOCK = "sysbench-read-only,1,1"
NO_NUMBER = "is not a time in nanoseconds or a count"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f"{BLOCK},plan,1,2", "it has 6 values, not up to 8"),
        (f"{BLOCK},plan,1,2,3,4,5", "it has 9 values, not up to 8"),
        ("w,1,1,plan,1,2,3", "the experiment has no block 1 of round 1 of w"),
        (f"{READ_ONLY},7,1,plan,1,2,3", f"the experiment has no block 1 of round 7 of {READ_ONLY}"),
        (f"{BLOCK},x,1,2,3", 'the experiment has no variant "x"'),
        (f"{BLOCK},plan,1,-2,3", f'"-2" {NO_NUMBER}'),
        (f"{BLOCK},plan,1,9223372036854775808,3", f'"9223372036854775808" {NO_NUMBER}'),
        (f"{BLOCK},plan,1,²,3", f'"²" {NO_NUMBER}'),
        (f'{BLOCK},"plan" x,1,2,3', "',' expected after '\"'"),
    ],
)
def test_anything_else_is_refused_by_its_line(line: str, why: str) -> None:
    with pytest.raises(StorageError) as caught:
        list(read_slices(f"{HEADER}{line}\r\n", experiment()))
    assert str(caught.value) == f"line 2 of slices.csv is not a slice of the experiment\nDETAIL:  {why}"


def test_other_columns_are_refused() -> None:
    with pytest.raises(StorageError) as caught:
        list(read_slices("workload,round\r\n", experiment()))
    assert str(caught.value) == (
        "line 1 of slices.csv is not a slice of the experiment\n"
        "DETAIL:  its columns are workload, round, not workload, round, block, variant, start_ns, end_ns, "
        "server_cpu_ns_1, server_cpu_ns_2"
    )


@given(st.text(max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    with does_not_raise():
        for beginning in ("", HEADER):
            try:
                list(read_slices(beginning + text, experiment()))
            except StorageError:
                continue
