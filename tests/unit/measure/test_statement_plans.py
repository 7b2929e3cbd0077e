"""Which plans executions use, and indexes without their names."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.golden.synthetic import experiment as synthetic
from tests.unit.measure.test_rounds import READS

from pgdyno.measure.evidence import Evidence
from pgdyno.measure.statement_plans import definition, in_use, used_plans
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import PREPARED
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.sampling.prepared_plans import ExplainedStatement

if TYPE_CHECKING:
    from pgdyno.measure.arenas.arm import Arm
    from pgdyno.measure.arenas.load import Loads

CUSTOMS = ({"Plan": 1}, {"Plan": 2})
GENERIC = {"Plan": 3}


@pytest.mark.parametrize(
    ("mode", "is_kept", "protocol", "expected"),
    [
        ("auto", True, PREPARED, (GENERIC,)),
        ("auto", False, PREPARED, CUSTOMS),
        ("force_generic_plan", False, PREPARED, (GENERIC,)),
        ("force_custom_plan", True, PREPARED, CUSTOMS),
        ("force_generic_plan", True, "simple", CUSTOMS),
    ],
)
def test_the_generic_plan_is_in_use_if_the_server_keeps_it(
    mode: str, protocol: str, expected: object, *, is_kept: bool
) -> None:
    found = ExplainedStatement(CUSTOMS, (GENERIC, GENERIC), is_kept, has_partitions=False)
    assert in_use(found, replace(READS, protocol=protocol), mode) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE INDEX a ON public.t USING btree (id)", "public.t USING btree (id)"),
        ("CREATE UNIQUE INDEX a ON public.t USING btree (id)", "UNIQUE public.t USING btree (id)"),
        ('CREATE INDEX "a ON ""b" ON public.t USING hash (id)', "public.t USING hash (id)"),
        ("CREATE INDEX a ON ONLY public.t USING btree (id)", "public.t USING btree (id)"),
    ],
)
def test_an_index_is_its_definition_without_its_name(text: str, expected: str) -> None:
    assert definition(text) == expected


class Old:
    """A load with sessions on a server of PostgreSQL 13."""

    info = SimpleNamespace(server_version=130_016)

    def connect(self, *_: object) -> Old:
        return self

    def close(self) -> None:
        """Close nothing."""


def test_plans_need_a_server_that_counts_generic_ones() -> None:
    arms = cast("list[Arm]", [SimpleNamespace(variant=Variant("a"), losses_explained=nullcontext)])
    note = "plans are not compared: PostgreSQL before 14 does not report generic ones"
    assert used_plans(arms, READS, cast("Loads", Old())) == ((), (note,))


def test_notes_of_rounds_are_stored_once() -> None:
    evidence = Evidence(cast("Study", None))
    before = replace(synthetic(), notes=("old",))
    for _ in range(2):
        evidence.note("new")
        before = evidence.added_to(before)
    assert before.notes == ("old", "new")
