"""Rounds on a machine that runs out of huge pages: in trials of their own, and in turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from tests.fix_rounds import measured_by, running_in

from pgdyno.base.errors import HugePagesError
from pgdyno.measure.rounds import Running, run_round
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, DesignKind
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.workload.bundled import load as bundled_workloads

REASON = "only 1 of 2 huge pages could be reserved"
WORKLOADS = tuple(bundled_workloads()[name] for name in ("pgbench-select", "pgbench-tpcb"))


@dataclass
class ArenaWithoutPages:
    """An arena in which variants called 1GB find no room."""

    started: list[str] = field(default_factory=list)

    def restore(self, *_: object) -> None:
        """Nothing is copied."""

    def has_seats(self, *_: object) -> bool:
        return True

    @contextmanager
    def arms(self, variants: Sequence[Variant], *_: object) -> Iterator[list[Variant]]:
        if any(variant.name == "1GB" for variant in variants):
            raise HugePagesError(REASON)
        self.started += [variant.name for variant in variants]
        yield list(variants)


def run_alternating(
    round_index: int, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> tuple[list[Block], ArenaWithoutPages]:
    """Run one round of three variants; every trial that begins counts one transaction per block."""

    def measured(running: Running, round_index: int, workload: Workload, arms: list[Variant]) -> list[Block]:
        values = {"throughput_tps": 7.0}
        return [
            Block(workload.name, round_index, index, 0, (ArmBlock(arms[0].name, 1, 1.0, values),))
            for index in range(running.design.blocks_per_round)
        ]

    measured_by(measured, monkeypatch)
    arena = ArenaWithoutPages()
    return run_round(without_pages(arena, DesignKind.ALTERNATING, said), round_index, WORKLOADS), arena


def without_pages(arena: ArenaWithoutPages, kind: DesignKind, said: list[str]) -> Running:
    variants = [Variant("4kB"), Variant("1GB"), Variant("2MB")]
    return running_in(arena, variants, Design(kind=kind, blocks_per_round=2), announce=said.append)


def test_a_trial_that_finds_no_pages_is_void_with_the_reason_and_the_others_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    blocks, arena = run_alternating(3, monkeypatch, said)
    assert sorted(arena.started) == ["2MB", "4kB"]
    assert said == [f"round 4: 1GB is left out: {REASON}"]
    assert [(block.workload, block.round, block.index) for block in blocks] == [
        ("pgbench-select", 3, 0), ("pgbench-select", 3, 1), ("pgbench-tpcb", 3, 0), ("pgbench-tpcb", 3, 1),
    ]  # fmt: skip
    for block in blocks:
        assert [arm.variant for arm in block.arms] == ["4kB", "1GB", "2MB"]
        assert block.void is None
        assert block.void_reasons == (f"1GB: {REASON}",)
        assert block.void_for("1GB", "4kB") == f"1GB: {REASON}"
        assert block.void_for("2MB", "4kB") is None


def test_in_the_first_round_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HugePagesError, match=REASON):
        run_alternating(0, monkeypatch, [])


def test_a_round_of_servers_beside_each_other_is_void_as_a_whole_and_the_run_goes_on() -> None:
    said: list[str] = []
    arena = ArenaWithoutPages()
    blocks = run_round(without_pages(arena, DesignKind.DUET, said), 3, WORKLOADS)
    assert said == [f"round 4 does not count: {REASON}"]
    assert arena.started == []
    assert [(block.workload, block.index, block.void) for block in blocks] == [
        ("pgbench-select", 0, REASON), ("pgbench-select", 1, REASON),
        ("pgbench-tpcb", 0, REASON), ("pgbench-tpcb", 1, REASON),
    ]  # fmt: skip
    assert [arm.variant for arm in blocks[0].arms] == ["4kB", "1GB", "2MB"]
    with pytest.raises(HugePagesError, match=REASON):
        run_round(without_pages(arena, DesignKind.DUET, said), 0, WORKLOADS)
