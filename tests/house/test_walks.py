"""Values go forward through the house: see chores/walks.py."""

from __future__ import annotations

import pytest
from chores.walks import WALKS, Walk, table
from tests.house.source import ROOT


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.title)
def test_each_step_of_a_walk_leads_to_the_next(walk: Walk) -> None:
    assert not list(walk.mistakes()), "follow the value again, and write the walk down anew"


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.title)
def test_walks_return_at_most_half_as_often_as_before(walk: Walk) -> None:
    assert 2 * walk.returns <= walk.returns_before, f"{' → '.join(walk.rooms)}: move logic to its room"


def test_the_walks_are_drawn_among_the_numbers() -> None:
    drawn = (ROOT / "docs" / "house.md").read_text()
    assert table() in drawn, "put the output of python -m chores.walks into docs/house.md"


def test_steps_that_do_not_exist_or_are_not_connected_are_mistakes() -> None:
    steps = ("stats.decision:decide", "stats.decision:nothing", "stats.decision:_draft", "cli.main:main")
    found = list(Walk("w", 1, 1, steps).mistakes())
    assert found == [
        "w: there is no stats.decision:nothing",
        "w: cli.main:main neither calls a step before it nor is called by one",
    ]
