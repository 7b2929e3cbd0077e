"""Segments that servers had to create while they were measured are told."""

from __future__ import annotations

from pgdyno.measure.records.conclusion import wal_notes
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, Experiment
from pgdyno.model.variants.variant import Variant


def block(index: int, *created: float) -> Block:
    arms = tuple(
        ArmBlock(name, 1, 1.0, {"wal_segments_created": count})
        for name, count in zip("ab", created, strict=True)
    )
    return Block("w", 0, index, 0, arms)


def experiment(*blocks: Block, operations: dict[str, str] | None = None) -> Experiment:
    return Experiment(
        id="x",
        name="x",
        question="",
        created="",
        pgdyno_version="",
        design=Design(),
        variants=(Variant("a"), Variant("b")),
        baseline="a",
        workloads=("w",),
        reset_policies={},
        blocks=blocks,
        operations=operations or {},
    )


def test_a_note_says_in_how_many_blocks_and_whose_they_were() -> None:
    (note,) = wal_notes(experiment(block(0, 0, 0), block(1, 2, 0), block(2, 3, 1)))
    assert note == (
        "w: servers created WAL segments in 2 of 3 blocks (a 5, b 1); "
        "all clients wait for each of them, which lengthens the latency tail"
    )


def test_where_all_were_there_nothing_is_said() -> None:
    assert wal_notes(experiment(block(0, 0, 0), Block("w", 0, 1, 0, (ArmBlock("a", 1, 1.0, {}),)))) == ()


def test_steps_which_get_no_segments_have_no_note() -> None:
    assert wal_notes(experiment(block(0, 9, 9), operations={"w": "rows"})) == ()
