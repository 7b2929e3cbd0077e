"""The profile of the baseline before its plan is measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic import plan
from tests.unit.profile.view.test_profile_page import PROFILE
from tests.unit.profile.view.test_statements_text import ORDERS, OTHER

from pgdyno.accelerate.profiled_plan import profiled_plan
from pgdyno.accelerate.request import AccelerateRequest
from pgdyno.base.errors import ServerError, StillChangedError
from pgdyno.base.numbers import SPACE
from pgdyno.base.ports import Progress
from pgdyno.cli.output import Lines
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.profile.reading.profile import ProfileRequest
from pgdyno.profile.records.profile_record import TransactionProfile
from pgdyno.workload.workload_choice import find_workloads

REQUEST = AccelerateRequest(
    Conditions(None, find_workloads(("sysbench-read-only", "sysbench-read-write")), Design()),
    Variant("default"),
    budget_s=600.0,
)


def never(*_: object) -> tuple[()]:
    pytest.fail("profiled")


def test_a_small_budget_has_no_profile() -> None:
    found = profiled_plan(replace(REQUEST, budget_s=300.0), plan(), "", Lines(), never)
    assert (found.plan, found.gains, found.notes) == (plan(), {}, ())


def test_a_profile_that_fails_is_a_note_and_the_plan_goes_on() -> None:
    asked = []

    def failing(request: ProfileRequest, _: Progress) -> tuple[()]:
        asked.append((request.workload.name, request.as_booted))
        raise ServerError("perf may not look")

    found = profiled_plan(REQUEST, plan(), "the owner asked for it", Lines(), failing)
    assert found.plan == plan()
    assert found.notes == (
        "sysbench-read-only was not profiled: perf may not look",
        "sysbench-read-write was not profiled: perf may not look",
    )
    assert {reason for _, reason in asked} == {"the owner asked for it"}


def test_where_the_statements_time_goes_is_a_note() -> None:
    def profiled(request: ProfileRequest, _: Progress) -> tuple[TransactionProfile]:
        return (replace(PROFILE, workload=request.workload.name, statements=(ORDERS, OTHER), advice=()),)

    found = profiled_plan(REQUEST, plan(), "", Lines(), profiled)
    assert [one.replace(SPACE, " ") for one in found.notes] == [
        f"sysbench-read-{rest}: 89 % of the statements' time is select-orders, "
        "which reads 200,000 rows to return 4"
        for rest in ("only", "write")
    ]


def test_a_machine_that_was_not_given_back_ends_it() -> None:
    def failing(*_: object) -> tuple[()]:
        raise StillChangedError("a value could not be restored")

    with pytest.raises(StillChangedError):
        profiled_plan(REQUEST, plan(), "", Lines(), failing)
