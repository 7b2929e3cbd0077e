"""The plan on a terminal."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.fix_settings import host_of, server_of

from pgdyno.model.plans.plan import Finding, Plan
from pgdyno.plan.engine.planner import make_plan
from pgdyno.plan.view.plan_text import plan_text


def test_the_reference_plan_looks_like_this(snapshot: SnapshotAssertion) -> None:
    assert plan_text(make_plan(host_of(), server_of(18))) == snapshot


def test_what_is_dangerous_comes_first() -> None:
    text = plan_text(make_plan(host_of(), server_of(18, changes={"fsync": "off"})))
    assert text.startswith(
        "DANGER: fsync is off: a crash of the machine can destroy the whole cluster\n    hint: "
    )


def test_without_a_limit_the_text_says_that_memory_is_not_computed() -> None:
    text = plan_text(make_plan(None, server_of(18, is_colocated=False)))
    assert "Worst-case memory: not computed, the memory limit is not known" in text


def test_nothing_to_change_is_said() -> None:
    empty = Plan((), (), (Finding("note", "all is well", "none"),), None)
    assert plan_text(empty) == (
        "NOTE: all is well\n    hint: none\n\nNothing to change.\n\n"
        "Worst-case memory: not computed, the memory limit is not known\n"
    )


@pytest.mark.parametrize("width", [60, 80, 120])
def test_prose_stays_within_the_width(width: int) -> None:
    text = plan_text(make_plan(host_of(), server_of(18)), width=width)
    prose = [line for line in text.splitlines() if line.startswith("    ")]
    assert max(map(len, prose)) <= width
