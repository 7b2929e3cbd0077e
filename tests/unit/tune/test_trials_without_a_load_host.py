"""Rounds of a search in which a load host is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest
from tests.fix_progress import Remembered

from pgdyno.base.errors import LoadHostLostError
from pgdyno.measure.arenas.arena import Arena, Regained
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.tuning.tuning import Space
from pgdyno.model.variants.variant import Variant
from pgdyno.tune.trial_rounds import TrialRounds

LOST = LoadHostLostError("pgdyno-driver on client1 failed", host="client1", detail="Warning\nTimeout")
WINNER, REMAINING = {"jit": "off"}, {"jit": "on"}


class Checked(ScratchArena):
    """An arena that accepts everything, and has nothing."""

    def __init__(self) -> None:
        """Have nothing."""

    def check(self, variants: Sequence[Variant]) -> None:
        """Accept them."""

    def shared_memory_bytes(self, _: Variant) -> int:
        return 0


@dataclass
class Losing(TrialRounds):
    """Rounds of which the first ones lose a load host; keeps the arenas that they were measured on."""

    losses: int = 0
    arenas: list[object] = field(default_factory=list)

    def _measured(self, variants: Sequence[Variant]) -> tuple[list[Block], list[LoadHostLostError]]:
        self.arenas.append(self.arena)
        is_lost = len(self.arenas) <= self.losses
        values = {} if is_lost else {THROUGHPUT: 100.0}
        arms = tuple(ArmBlock(one.name, 0 if is_lost else 9, 1.0, values) for one in variants)
        return [Block("w", 0, 0, 0, arms, void="lost" if is_lost else None)], [LOST] if is_lost else []


FIRST, BACK = Checked(), Checked()


def losing(losses: int) -> Losing:
    def after_loss(arena: Arena, lost: LoadHostLostError) -> Regained:
        assert any(arena is one for one in (FIRST, BACK))
        assert lost is LOST
        return Regained(cast("Arena", BACK), ("client1",), "it was back after 7 s")

    base, design = Variant("default"), Design()
    return Losing(FIRST, base, Space(()), {}, design, Remembered(), after_loss=after_loss, losses=losses)


def test_a_round_without_a_load_host_is_repeated_with_those_that_there_are() -> None:
    rounds = losing(1)
    assert rounds.pair(WINNER, REMAINING) == (0.0,)
    assert rounds.arenas == [FIRST, BACK]
    assert rounds.notes == ['load host "client1" was lost in the search: it was back after 7 s']
    assert cast("Remembered", rounds.progress).steps == [
        "a round does not count: load host client1 was lost (Timeout)"
    ]


def test_no_candidate_is_blamed_for_a_load_host_that_is_lost_each_time() -> None:
    rounds = losing(99)
    with pytest.raises(LoadHostLostError) as caught:
        rounds.pair(WINNER, REMAINING)
    assert caught.value is LOST
    assert len(rounds.arenas) == 3
