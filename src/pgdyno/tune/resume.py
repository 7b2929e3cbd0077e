"""Begin a search, or resume an interrupted one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from pgdyno.base.errors import UsageError
from pgdyno.builds.training_workloads import identity
from pgdyno.measure.records.new_experiment import experiment_id
from pgdyno.model.tuning.space import Space
from pgdyno.model.tuning.tuning import TrialState, Tuning
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.store.tunings import load_tuning
from pgdyno.tune.search.samplers import load as load_samplers
from pgdyno.tune.tune_request import NAME, TuneRequest


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
