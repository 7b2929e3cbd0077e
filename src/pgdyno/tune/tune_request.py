"""A request to tune, the division of its time, and the start of its search, or of an interrupted one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pgdyno.base.errors import UsageError
from pgdyno.builds.training_workloads import identity
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.records.new_experiment import experiment_id
from pgdyno.model.tuning.tuning import Space, TrialState, Tuning
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.planner import PlanRequest
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.store.tunings import load_tuning
from pgdyno.tune.search.samplers import USUAL
from pgdyno.tune.search.samplers import load as load_samplers

NAME = "tune"
SEARCH_SHARE = 0.55  # arbitrary: share of the budget at which the search ends
SHORTEN_SHARE = 0.75  # arbitrary: share at which shortening ends; the rest is for the proof


@dataclass(frozen=True)
class TuneRequest:
    """A request to tune. ``base`` is the configuration as found, on scratch servers of ``conditions``.

    ``most_trials`` None: as many as the time for searching allows. ``resume``: the id of a search to resume.
    ``is_attributed``: the proof also measures every part of the answer alone, and the answer without it.
    ``warm_start``: earlier searches and experiments; their configurations are tried right after the plan.
    """

    conditions: Conditions
    base: Variant
    budget_s: float
    plan: PlanRequest = field(default_factory=PlanRequest)
    sampler: str = USUAL
    most_trials: int | None = None
    resume: str | None = None
    is_attributed: bool = False
    warm_start: tuple[str, ...] = ()


def begun_search(request: TuneRequest, space: Space, notes: tuple[str, ...]) -> Tuning:
    """Return a new search."""
    return Tuning(
        id=experiment_id(datetime.now(UTC), NAME),
        sampler=request.sampler,
        seed=request.conditions.design.seed,
        workloads=tuple(request.conditions.workloads),
        subject=_subject(request),
        space=space,
        notes=notes,
    )


def earlier_search(request: TuneRequest) -> Tuning | None:
    """Return the search to resume; None for a new one.

    Raises: UsageError if no search has this id, or if it is finished; StorageError.
    """
    if request.resume is None:
        return None
    return unfinished(load_tuning(workspace().experiments(), request.resume))


def unfinished(tuning: Tuning) -> Tuning:
    """Return a search without an interrupted trial.

    Raises: UsageError if it is finished, or, from an earlier version, had several aims or a removed sampler.
    """
    if tuning.aims:
        raise UsageError(
            f'the search "{tuning.id}" was for several aims: {", ".join(tuning.aims)}',
            hint="begin a new search, without --resume: it is for throughput",
        )
    if tuning.sampler not in load_samplers():
        raise UsageError(
            f'the search "{tuning.id}" used the sampler "{tuning.sampler}", which was removed',
            hint="begin a new search, without --resume",
        )
    if tuning.experiment is not None:
        raise UsageError(
            f'the search "{tuning.id}" is finished',
            detail=f"its proof is {tuning.experiment}",
            hint=f"pgdyno report {tuning.experiment}, or begin a new search without --resume",
        )
    trials = tuple(one for one in tuning.trials if one.state is not TrialState.RUNNING)
    return replace(tuning, trials=trials, notes=())


def again(earlier: Tuning, request: TuneRequest, notes: tuple[str, ...]) -> Tuning:
    """Return the resumed search, in its own space. Raises: UsageError if it has another subject."""
    now = _subject(request)
    if earlier.subject != now:
        raise UsageError(
            f'the search "{earlier.id}" has a different subject',
            detail=f"its subject: {earlier.subject}; the subject now: {now}",
            hint="begin a new search, without --resume",
        )
    return replace(earlier, notes=notes)


def _subject(request: TuneRequest) -> str:
    """Return the server, the workloads with their data, and the load hosts, which identify a search."""
    installation = request.conditions.installation
    server = "" if installation is None else f"{installation.name} {installation.version}"
    workloads = (f"{identity(one)} on {one.data_set.key}" for one in request.conditions.workloads.values())
    place = () if request.conditions.load_from is None else ("load from load hosts",)
    return "; ".join((server, *workloads, str(request.base), *place))
