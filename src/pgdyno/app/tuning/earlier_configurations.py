"""Configurations that earlier searches and experiments ended with, to begin a search with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pgdyno.app.local_machine import open_store, workspace
from pgdyno.app.tuning.tune_request import TuneRequest
from pgdyno.experiments.machines.recorded_facts import fact_at
from pgdyno.model.errors import SettingError, StorageError, UsageError
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.hosts.kernel_file import display_name
from pgdyno.model.plans.terms import PLAN
from pgdyno.model.servers.server import Server
from pgdyno.model.tuning.space import BUILD, Point, Space
from pgdyno.model.tuning.tuning import TUNED, Tuning
from pgdyno.search.warm_start import point_within
from pgdyno.store.bundle import check_bundle
from pgdyno.store.tunings import SUFFIX, load_tuning

_HINT = "name a search, or an experiment of tune or accelerate, of the same major version"


@dataclass(frozen=True)
class EarlierConfiguration:
    """A configuration as it was elsewhere, and how the user named where."""

    source: str
    settings: Mapping[str, str]


def earlier_configurations(request: TuneRequest) -> tuple[EarlierConfiguration, ...]:
    """Return the configuration of each source of a warm start: the id or the file of a search or experiment.

    Raises: UsageError for one of another major version, or without a configuration; StorageError for one that
    cannot be read.
    """
    installation = request.conditions.installation
    major = "" if installation is None else str(installation.major)
    return tuple(_read(source, major) for source in request.warm_start)


@dataclass(frozen=True)
class FirstPoint:
    """A point to try right after the plan, and a note on it."""

    point: Point
    note: str


def first_points(
    space: Space, earlier: Sequence[EarlierConfiguration], server: Server
) -> tuple[FirstPoint, ...]:
    """Return the points of a space that are most like these. Raises: UsageError if it has nothing of one."""

    def number_of(key: str, value: str) -> float | None:
        try:
            guc = server.settings.get(key)
            return float(value if guc is None else guc.check(value))
        except (SettingError, ValueError):
            return None

    return tuple(_first(space, one, point_within(space, one.settings, number_of)) for one in earlier)


def _first(space: Space, one: EarlierConfiguration, point: Point) -> FirstPoint:
    if not point:
        raise UsageError(
            f'nothing of "{one.source}" can be tried here',
            detail=f"it sets {_names(one.settings)}; this search varies "
            f"{_names([each.key for each in space.dimensions])}",
            hint=_HINT,
        )
    said = ", ".join(f"{display_name(key)}={value}" for key, value in point.items())
    return FirstPoint(point, f"tried after the plan, as it is in {one.source} or nearest to that: {said}")


def _read(source: str, major: str) -> EarlierConfiguration:
    path, directory = Path(source), workspace().experiments()
    if source.endswith(SUFFIX):
        found, settings = _of_tuning(load_tuning(path.parent, path.name.removesuffix(SUFFIX)))
    elif path.is_file():
        found, settings = _of_experiment(_unpacked(path))
    elif (directory / f"{path.name}{SUFFIX}").is_file():
        found, settings = _of_tuning(load_tuning(directory, source))
    else:
        with closing(open_store()) as store:
            found, settings = _of_experiment(store.load(source))
    if found != major:
        raise UsageError(
            f'"{source}" is of PostgreSQL {found or "of an unknown version"}',
            detail=f"what was good there may be another thing for PostgreSQL {major}",
            hint=_HINT,
        )
    if not settings:
        raise UsageError(
            f'"{source}" has no configuration to begin with',
            detail=f'neither an answer nor a variant named "{TUNED}" or "{PLAN}" with changes is in it',
            hint=_HINT,
        )
    return EarlierConfiguration(source, settings)


def _of_tuning(tuning: Tuning) -> tuple[str, Mapping[str, str]]:
    """Return the major version of a search and its answer: the front's first member, or its best trial."""
    server = tuning.subject.partition(";")[0]
    best = {} if tuning.winner is None else tuning.winner.point
    if tuning.members:
        best = tuning.members[0].point
    return _major(server.rpartition(" ")[2]), tuning.answer or best


def _of_experiment(experiment: Experiment) -> tuple[str, Mapping[str, str]]:
    """Return the major version of an experiment, and its answer or plan."""
    by_name = {one.name: one for one in experiment.variants}
    variant = by_name.get(TUNED) or by_name.get(PLAN)
    major = _major(str(fact_at(experiment.server, "version") or ""))
    if variant is None:
        return major, {}
    build = {} if variant.server is None else {BUILD: variant.server}
    return major, {**variant.settings, **build}


def _unpacked(path: Path) -> Experiment:
    checked = check_bundle(path)
    if checked.problems or checked.experiment is None:
        raise StorageError(f'the bundle "{path}" is not taken', detail="\n".join(checked.problems))
    return checked.experiment


def _major(version: str) -> str:
    found = re.match(r"\d+", version)
    return found[0] if found else ""


def _names(keys: Iterable[str]) -> str:
    return ", ".join(map(display_name, keys)) or "nothing"
