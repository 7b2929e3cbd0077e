"""Whether a search fits into its budget, before anything is started."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.golden.synthetic_tuning import tuning

from pgdyno.base.errors import UsageError
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.store.tunings import save_tuning
from pgdyno.tune.budget import trials_within
from pgdyno.tune.tune_request import TuneRequest
from pgdyno.workload.workload_choice import find_workloads

pytestmark = pytest.mark.usefixtures("own_home")
READ_ONLY, READ_WRITE = "sysbench-read-only", "sysbench-read-write"


def request(budget_s: float, *workloads: str, block_s: float = 6.0) -> TuneRequest:
    conditions = Conditions(None, find_workloads(workloads, (), None), Design(block_s=block_s))
    return TuneRequest(conditions, Variant("default"), budget_s)


def going_on(asked: TuneRequest, *aims: str) -> TuneRequest:
    """Return the request to go on with a stored search, of earlier versions for these aims."""
    stored = replace(tuning(), id="stored", experiment=None, aims=aims)
    save_tuning(workspace().experiments(), stored)
    return replace(asked, resume=stored.id)


def configurations(asked: TuneRequest) -> int:
    found = re.search(r"at most (\d+) configurations", trials_within(asked))
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("workloads", [(READ_ONLY,), (READ_ONLY, READ_WRITE)])
@pytest.mark.parametrize("block_s", [1.0, 6.0, 12.0, 24.0])
@pytest.mark.parametrize("budget_s", [10.0, 300.0, 420.0])
def test_the_budget_that_is_advised_is_accepted_and_a_minute_less_is_not(
    workloads: tuple[str, ...], block_s: float, budget_s: float
) -> None:
    asked = request(budget_s, *workloads, block_s=block_s)
    try:
        trials_within(asked)
    except UsageError as error:
        found = re.match(r"--budget (\d+)m, or fewer workloads", str(error.hint))
        assert found is not None
        enough_s = 60.0 * int(found[1])
        assert enough_s > budget_s
        assert configurations(replace(asked, budget_s=enough_s)) >= 3
    else:
        assert budget_s > 10


def test_the_time_of_the_profile_is_no_time_for_configurations() -> None:
    """From seven minutes on the baseline is profiled, a minute for each workload; not of a resumed search."""
    once = request(1200, READ_ONLY)
    assert configurations(going_on(once)) > configurations(once)


def test_a_budget_without_room_for_the_profile_is_refused() -> None:
    """Of four workloads in seven minutes: four are the profile's, and 55 % of seven are for searching."""
    design = Design(block_s=0.05, warmup_s=0.1)
    (one,) = find_workloads((READ_ONLY,), (), None).values()
    conditions = Conditions(None, {f"{READ_ONLY}-{n}": one for n in range(4)}, design)
    asked = TuneRequest(conditions, Variant("default"), 420.0)
    with pytest.raises(UsageError, match="too small for a search"):
        trials_within(asked)
    assert configurations(going_on(asked)) >= 3


def test_workloads_without_a_profile_leave_their_time_to_the_search() -> None:
    of_others = {
        name: replace(one, generator="pgbench")
        for name, one in find_workloads(("pgbench-select",), (), None).items()
    }
    asked = TuneRequest(Conditions(None, of_others, Design()), Variant("default"), 1200.0)
    assert configurations(asked) == configurations(going_on(asked))
