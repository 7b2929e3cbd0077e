"""Why a query has no workers."""

from __future__ import annotations

from tests.unit.plan.test_explain_degree import BOTH_FREE, OneScan

from pgdyno.plan.degrees.degree_text import headline
from pgdyno.plan.explain_degree import degree_of
from pgdyno.postgres.parallel_degree import Hazard


def test_a_function_is_named_where_nothing_else_helps() -> None:
    planner = OneScan(30_000, is_shared=False)
    hazard = Hazard("f", ("s.f(integer)",), is_unsafe=True, is_builtin=False, is_certain=True)
    degree = degree_of(planner.inquiry((hazard,)), planner.plan({}), BOTH_FREE, None)
    assert headline(degree) == "0 workers planned: the parallel-unsafe function s.f(integer) decided"
