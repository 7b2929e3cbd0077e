"""Experiments that cannot be combined."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic import READ_ONLY, READ_WRITE
from tests.golden.synthetic_fleet import fleet, given, on_machine

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.experiment import Block, DesignKind, Experiment, Part
from pgdyno.results.fleets.fleet import combine


def refused(*experiments: Experiment, names: list[str] | None = None) -> UsageError:
    with pytest.raises(UsageError) as caught:
        combine(given(experiments, names))
    return caught.value


def test_one_experiment_is_refused() -> None:
    error = refused(on_machine(1, 1.19, 1.0))
    assert error.message == "one experiment is not enough to combine machines"
    assert error.detail == "given: on-1.zip"
    assert error.hint == (
        "give experiments of at least two machines; run the same command with the same options on all "
        "machines"
    )


def test_the_same_experiment_twice_is_refused() -> None:
    one = on_machine(1, 1.19, 1.0)
    error = refused(one, one)
    assert error.message == "on-1.zip and on-1.zip are the same experiment"
    assert error.hint == "give each experiment once"


def test_a_copy_under_another_id_and_on_another_machine_is_refused() -> None:
    first = on_machine(1, 1.19, 1.0)
    error = refused(first, replace(first, id="copy", host=on_machine(2, 1.0, 1.0).host))
    assert error.message == "on-1.zip and copy.zip are the same experiment"
    assert error.detail == "on-1 and copy have the same id or the same blocks"


def test_what_has_no_rounds_or_no_speed_or_no_verdict_is_refused() -> None:
    first, second = fleet(2)
    part = Part("inner", DesignKind.DUET, 5, ("default", "plan"), ())
    assert refused(first, replace(second, parts=(part,))).message == (
        "on-2.zip combines several experiments and has no rounds of its own"
    )
    assert refused(first, replace(second, emulated_machine="aarch64")).message == (
        "on-2.zip ran emulated: its speed is not that of a real machine"
    )
    assert refused(first, replace(second, verdicts=())).message == (
        "on-2.zip compares nothing: it has no verdict"
    )


def test_nothing_in_common_says_what_each_has() -> None:
    first, second = fleet(2)
    renamed = replace(
        second,
        variants=(second.variants[0], replace(second.variants[1], name="tuned")),
        verdicts=tuple(replace(verdict, variant="tuned") for verdict in second.verdicts),
        blocks=tuple(map(_renamed, second.blocks)),
    )
    error = refused(first, renamed)
    assert error.message == "the experiments have no comparison in common"
    assert error.detail == (
        "A (on-1.zip): plan against default on sysbench-read-only, sysbench-read-write\n"
        "B (on-2.zip): tuned against default on sysbench-read-only, sysbench-read-write"
    )
    assert error.hint == "run the same command with the same options on all machines"


def _renamed(block: Block) -> Block:
    arms = tuple(
        replace(arm, variant="tuned" if arm.variant == "plan" else arm.variant) for arm in block.arms
    )
    return replace(block, arms=arms)


def test_another_amount_of_work_is_not_in_common() -> None:
    first, second = fleet(2)
    error = refused(first, replace(second, scales={READ_ONLY: 400, READ_WRITE: 400}))
    assert error.detail is not None
    assert error.detail.endswith(
        "B (on-2.zip), plan against default on sysbench-read-only, sysbench-read-write: scale of the data "
        "set is 400, 4 on A (on-1.zip)"
    )


def test_what_is_counted_has_to_be_the_same() -> None:
    first, second = fleet(2)
    found = combine(given([first, replace(second, operations={READ_WRITE: "rows"})]))
    assert {one.workload for one in found.comparisons} == {READ_ONLY}
    (why,) = found.left_out
    assert why == (
        "B (on-2.zip), plan against default on sysbench-read-write: what is counted is rows, transactions "
        "on A (on-1.zip)"
    )


def test_comparisons_without_results_are_shared_nevertheless() -> None:
    error = refused(*(replace(one, blocks=one.blocks[:3], verdicts=one.verdicts[:1]) for one in fleet(2)))
    assert error.message == (
        "the experiments share comparisons, but no two of them have a result for the same metric"
    )
    assert error.detail is not None
    assert error.detail.split("\n")[:2] == [
        f"{label}, plan against default on sysbench-read-only: throughput (only 2 of at least 4 blocks "
        "were measured)"
        for label in ("A (on-1.zip)", "B (on-2.zip)")
    ]
    assert error.hint == "measure again with more blocks, on machines that run nothing else"
