"""Budgets of a search on a running server."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic_tuning import tuning
from tests.unit.tune.test_budget import READ_WRITE, going_on, request

from pgdyno.base.errors import UsageError
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.tuning.tuning import (
    OwnerLimits,
)
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.store.tunings import save_tuning
from pgdyno.tune.budget import trials_in_place, trials_within
from pgdyno.tune.tune_request import TuneRequest
from pgdyno.workload.workload_choice import find_workloads


def test_a_budget_that_is_too_small_is_refused_with_one_that_does() -> None:
    conditions = Conditions(None, find_workloads(("pgbench-select",), (), None), Design())
    with pytest.raises(UsageError, match="is too small for a search") as caught:
        trials_in_place(TuneRequest(conditions, Variant("default"), 60.0), OwnerLimits())
    assert caught.value.hint is not None
    minutes = int(caught.value.hint.removeprefix("--budget ").partition("m")[0])
    enough = TuneRequest(conditions, Variant("default"), 60.0 * minutes)
    assert "configurations of about" in trials_in_place(enough, OwnerLimits())


def test_restarts_and_copies_of_large_data_need_a_larger_budget() -> None:
    def trials(scale: int, *, may_restart: bool) -> str:
        workloads = find_workloads(("pgbench-tpcb",), (), scale)
        request = TuneRequest(Conditions(None, workloads, Design()), Variant("default"), 36_000.0)
        return trials_in_place(request, OwnerLimits(), may_restart=may_restart)

    assert trials(1, may_restart=True) != trials(1, may_restart=False) != trials(1000, may_restart=False)


pytestmark = pytest.mark.usefixtures("own_home")


def test_a_search_for_several_aims_is_not_gone_on_with() -> None:
    with pytest.raises(
        UsageError, match='the search "stored" was for several aims: throughput, wal'
    ) as caught:
        trials_within(going_on(request(1200, READ_WRITE), "throughput", "wal"))
    assert caught.value.hint == "begin a new search, without --resume: it is for throughput"


def test_a_search_by_a_sampler_that_was_removed_is_not_gone_on_with() -> None:
    stored = replace(tuning(), id="old", experiment=None, sampler="tpe")
    save_tuning(workspace().experiments(), stored)
    with pytest.raises(UsageError, match='the search "old" used the sampler "tpe", which was removed'):
        trials_within(replace(request(1200, READ_WRITE), resume="old"))
