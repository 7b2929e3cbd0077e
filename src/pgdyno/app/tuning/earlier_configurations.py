"""Configurations that earlier searches and experiments ended with, to begin a search with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pgdyno.app.local_machine import open_store, workspace
from pgdyno.app.tuning.tune_request import TuneRequest
from pgdyno.experiments.machines.nearness import Circumstances, circumstances_of
from pgdyno.model.errors import StorageError, UsageError
from pgdyno.model.experiments.at_load import AT_LOAD
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.plans.terms import PLAN
from pgdyno.model.ports import Progress
from pgdyno.model.tuning.space import BUILD
from pgdyno.model.tuning.tuning import FIRST_MEMBER, TUNED, Tuning
from pgdyno.store.bundle import check_bundle
from pgdyno.store.tunings import SUFFIX, load_tuning

SIMILAR = "similar"
"""The source that is all experiments of this user's store, imported ones included."""
_NAMES = (TUNED, FIRST_MEMBER, PLAN)  # of the variant that is taken, the first that is there
_ANY_NAME = f'"{TUNED}", "{FIRST_MEMBER}" or "{PLAN}"'
_SLOWER = "it was slower there than the default"
HINT = "name a search, or an experiment of tune or accelerate, of the same major version"


@dataclass(frozen=True)
class EarlierConfiguration:
    """A configuration as it was elsewhere, and how the user named where.

    ``is_named``: by itself, so that it is tried however far away it is; others are chosen by nearness.
    ``problem`` is why such a one is not used; of a named one it is only told.
    """

    source: str
    settings: Mapping[str, str]
    circumstances: Circumstances = field(default_factory=Circumstances)
    is_named: bool = True
    problem: str = ""
    created: str = ""  # its experiment, ISO 8601


def earlier_configurations(request: TuneRequest, progress: Progress) -> tuple[EarlierConfiguration, ...]:
    """Return the configurations of the sources of a warm start.

    A source is the id or the file of a search or experiment, a directory of bundles, or ``SIMILAR``.
    Raises: UsageError for a named one of another major version, or without a configuration, and where none
    of many has one; StorageError for a named one that cannot be read.
    """
    installation = request.conditions.installation
    major = 0 if installation is None else installation.major
    return tuple(one for source in request.warm_start for one in _of_source(source, major, progress))


def _of_source(source: str, major: int, progress: Progress) -> tuple[EarlierConfiguration, ...]:
    if source != SIMILAR and not Path(source).is_dir():
        return (_usable(_read(source), major),)
    found = tuple(_of_store() if source == SIMILAR else _of_directory(Path(source), progress))
    if not found:
        where = "stored here" if source == SIMILAR else f'in "{source}"'
        raise UsageError(
            f"no experiment {where} has a configuration to begin with",
            detail=f"those of tune and accelerate have one, a variant named {_ANY_NAME}",
            hint="leave out --warm-start, or name a bundle; pgdyno bundle import stores one",
        )
    return found


def _of_store() -> Iterator[EarlierConfiguration]:
    """Yield the configuration of each stored experiment that has one."""
    with closing(open_store()) as store:
        for id_ in store.ids():
            if not id_.endswith(AT_LOAD):
                yield from _among_others(id_, partial(store.load_head, id_))


def _of_directory(directory: Path, progress: Progress) -> Iterator[EarlierConfiguration]:
    """Yield the configuration of each bundle that has one."""
    progress.step(f"reading the bundles in {directory}")
    for path in sorted(one for one in directory.glob("*.zip") if one.is_file()):
        yield from _among_others(str(path), partial(_unpacked, path))


def _among_others(source: str, load: Callable[[], Experiment]) -> Iterator[EarlierConfiguration]:
    """Yield the configuration of an experiment, if it has one; or why it cannot be read."""
    try:
        found = _of_experiment(source, load())
    except StorageError as error:
        yield EarlierConfiguration(source, {}, is_named=False, problem=error.message)
        return
    if found.settings:
        yield replace(found, is_named=False)


def _read(source: str) -> EarlierConfiguration:
    path, directory = Path(source), workspace().experiments()
    if source.endswith(SUFFIX):
        return _of_tuning(source, load_tuning(path.parent, path.name.removesuffix(SUFFIX)))
    if path.is_file():
        return _of_experiment(source, _unpacked(path))
    if (directory / f"{path.name}{SUFFIX}").is_file():
        return _of_tuning(source, load_tuning(directory, source))
    with closing(open_store()) as store:
        return _of_experiment(source, store.load_head(source))


def _usable(one: EarlierConfiguration, major: int) -> EarlierConfiguration:
    """Return a configuration that was named. Raises: UsageError for another major version, or none."""
    found = one.circumstances.major
    if found != major:
        raise UsageError(
            f'"{one.source}" is of PostgreSQL {found or "of an unknown version"}',
            detail=f"what was good there may be another thing for PostgreSQL {major}",
            hint=HINT,
        )
    if not one.settings:
        raise UsageError(
            f'"{one.source}" has no configuration to begin with',
            detail=f"neither an answer nor a variant named {_ANY_NAME} with changes is in it",
            hint=HINT,
        )
    return one


def _of_tuning(source: str, tuning: Tuning) -> EarlierConfiguration:
    """Return the answer of a search: the front's first member, or its best trial.

    The host is that of its proof, if that is here.
    """
    server = tuning.subject.partition(";")[0]
    best = {} if tuning.winner is None else tuning.winner.point
    if tuning.members:
        best = tuning.members[0].point
    major = re.match(r"\d+", server.rpartition(" ")[2])
    proof = _proof_of(tuning)
    if proof is None:
        there = Circumstances(major=int(major[0]) if major else None)
        return EarlierConfiguration(source, tuning.answer or best, there)
    problem = _why_worse(proof, TUNED if tuning.answer else FIRST_MEMBER)
    return EarlierConfiguration(source, tuning.answer or best, circumstances_of(proof), problem=problem)


def _proof_of(tuning: Tuning) -> Experiment | None:
    with closing(open_store()) as store:
        return store.load_head(tuning.experiment) if tuning.experiment in store.ids() else None


def _of_experiment(source: str, experiment: Experiment) -> EarlierConfiguration:
    """Return an experiment's answer, first member or plan; no settings if none."""
    by_name = {one.name: one for one in experiment.variants}
    variant = next((by_name[name] for name in _NAMES if name in by_name), None)
    there = circumstances_of(experiment)
    if variant is None:
        return EarlierConfiguration(source, {}, there)
    build = {} if variant.server is None else {BUILD: variant.server}
    return EarlierConfiguration(
        source,
        {**variant.settings, **build},
        there,
        problem=_why_worse(experiment, variant.name),
        created=experiment.created,
    )


def _why_worse(experiment: Experiment, variant: str) -> str:
    """Say so where a variant was shown to be slower than the baseline on a workload, and faster on none."""
    wanted = (THROUGHPUT, variant, experiment.baseline)
    found = {one.decision for one in experiment.verdicts if (one.metric, one.variant, one.baseline) == wanted}
    return _SLOWER if Decision.WORSE in found and Decision.BETTER not in found else ""


def _unpacked(path: Path) -> Experiment:
    checked = check_bundle(path)
    if checked.problems or checked.experiment is None:
        raise StorageError(f'the bundle "{path}" is not taken', detail="\n".join(checked.problems))
    return checked.experiment
