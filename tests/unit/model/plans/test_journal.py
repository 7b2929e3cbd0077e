"""A target is recognised by what both sides know of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.apply.receipts import TARGET

from pgdyno.model.plans.journal import Drift, RevertResult


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ({"address": "host=db1 port=5432"}, True),
        ({"data_directory": None, "machine": None}, True),
        ({"identity": "1"}, False),
        ({"kind": "host"}, False),
        ({"data_directory": "/elsewhere"}, False),
        ({"machine": "another"}, False),  # a standby: its primary's identifier and paths, another machine
    ],
)
def test_a_target_is_recognised(change: dict[str, str], *, is_same: bool) -> None:
    assert TARGET.is_same_as(replace(TARGET, **change)) is is_same
    assert replace(TARGET, **change).is_same_as(TARGET) is is_same


def test_a_revert_is_complete_when_nothing_of_it_is_changed_any_more() -> None:
    whole = RevertResult("host=/run", (), ())
    assert whole.is_complete
    assert not replace(whole, drifted=(Drift("jit", None, "off", "on"),)).is_complete
    assert not replace(whole, pending_restart=("jit",)).is_complete
    assert not replace(whole, damage=("line 1",)).is_complete
