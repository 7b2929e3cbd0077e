"""Answers to EXPLAIN that no PostgreSQL gives are refused with what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from pgdyno.base.errors import ServerError
from pgdyno.postgres.plan_document import checked_plan, explained

SORT = {"Node Type": "Sort", "Plan Rows": 1}
SCAN = {"Node Type": "Seq Scan", "Plan Rows": 1.5, "Relation Name": "t", "Parallel Aware": True}


def nested(levels: int) -> dict[str, Any]:
    plan: dict[str, Any] = SORT
    for _ in range(levels - 1):
        plan = {**SORT, "Plans": [plan]}
    return plan


@pytest.mark.parametrize(
    ("plan", "detail"),
    [
        (None, "one of its nodes is not an object"),
        ({}, 'one of its nodes has no "Node Type"'),
        ({"Node Type": 1}, 'the "Node Type" of one of its nodes is int'),
        ({**SORT, "Plan Rows": True}, 'the "Plan Rows" of one of its nodes is bool'),
        ({**SORT, "Plans": [1]}, "one of its nodes is not an object"),
        ({**SORT, "Plans": {}}, 'the "Plans" of one of its nodes is dict'),
        ({**SORT, "Plans": [{"Node Type": "Sort"}]}, 'one of its nodes has no "Plan Rows"'),
        ({**SORT, "Node Type": "Gather"}, 'one of its nodes has no "Workers Planned"'),
        ({**SORT, "Node Type": "ModifyTable"}, 'one of its nodes has no "Operation"'),
        ({**SORT, "Relation Name": "t"}, 'one of its nodes has no "Parallel Aware"'),
        (nested(201), "it has more than 200 levels"),
    ],
)
def test_a_plan_that_is_none_is_refused(plan: object, detail: str) -> None:
    with pytest.raises(ServerError) as caught:
        checked_plan(plan)
    assert caught.value.message == "the server's response to EXPLAIN (FORMAT JSON) is not a plan"
    assert caught.value.detail == detail


@pytest.mark.parametrize("plan", [SORT, SCAN, {**SORT, "Plans": [SCAN, SORT]}, nested(200)])
def test_a_plan_passes_as_it_is(plan: dict[str, Any]) -> None:
    assert checked_plan(plan) is plan
    assert explained([{"Plan": plan, "Planning Time": 0.1}])["Plan"] is plan


@pytest.mark.parametrize("answer", [None, [], {}, ["x"], [{"Planning Time": "0.1", "Plan": SORT}], [{}]])
def test_an_answer_without_a_plan_is_refused(answer: object) -> None:
    with pytest.raises(ServerError):
        explained(answer)
