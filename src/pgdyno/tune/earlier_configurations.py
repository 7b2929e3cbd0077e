"""Configurations of earlier searches and experiments, to try right after the plan, without their figures."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pgdyno.base.errors import SettingError, StorageError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.host.kernel_file import display_name
from pgdyno.measure.records.recorded_facts import fact_at
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.plans.plan import PLAN
from pgdyno.model.tuning.tuning import BUILD, TUNED, Dimension, Point, Space, Trial, Tuning
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.server import Server
from pgdyno.store.bundle import check_bundle
from pgdyno.store.experiments import open_store
from pgdyno.store.tunings import SUFFIX, load_tuning
from pgdyno.tune.search.samplers._contract import Sampler
from pgdyno.tune.tune_request import TuneRequest

_NAMES = (TUNED, PLAN)  # of the variant to use; the first one present
_SLOWER = "it was slower there than the default"
_HINT = "name a search, or an experiment of tune or accelerate, of the same major version"


@dataclass(frozen=True)
class EarlierConfiguration:
    """A configuration of an earlier search or experiment; ``source`` is its name given by the user.

    ``major`` is PostgreSQL's version, None: unknown. ``problem`` is a reason against it; it is tried anyway.
    """

    source: str
    settings: Mapping[str, str]
    major: int | None
    problem: str = ""


@dataclass(frozen=True)
class WarmStart:
    """Points to try right after the plan, with a note on each."""

    points: tuple[Point, ...]
    notes: tuple[str, ...]


def earlier_configurations(request: TuneRequest) -> tuple[EarlierConfiguration, ...]:
    """Return the configurations of a warm start, from the ids or files of searches and experiments.

    Raises: UsageError for another major version, or without a configuration; StorageError.
    """
    installation = request.conditions.installation
    major = 0 if installation is None else installation.major
    return tuple(_usable(_read(source), major) for source in request.warm_start)


def warm_start(
    space: Space, earlier: Sequence[EarlierConfiguration], server: Server, progress: Progress
) -> WarmStart:
    """Return the points of a space that are most similar to these configurations. Notes are announced.

    Raises: UsageError if a configuration has no setting in common with the space.
    """
    points = tuple(_point(space, one, _number_of(server)) for one in earlier)
    notes = tuple(_note(one, point) for one, point in zip(earlier, points, strict=True))
    for note in notes:
        progress.step(note)
    return WarmStart(points, notes)


def _point(space: Space, one: EarlierConfiguration, number_of: NumberOf) -> Point:
    point = point_within(space, one.settings, number_of)
    if not point:
        raise UsageError(
            f'no setting of "{one.source}" can be tried here',
            detail=f"it sets {_names(one.settings)}; this search varies "
            f"{_names(each.key for each in space.dimensions)}",
            hint=_HINT,
        )
    return point


def _note(one: EarlierConfiguration, point: Point) -> str:
    values = ", ".join(f"{display_name(key)}={value}" for key, value in point.items())
    problem = f" ({one.problem})" if one.problem else ""
    return f"tried after the plan, as in {one.source} or nearest to it: {values}{problem}"


def _number_of(server: Server) -> NumberOf:
    def number_of(key: str, value: str) -> float | None:
        try:
            guc = server.settings.get(key)
            return float(value if guc is None else guc.check(value))
        except (SettingError, ValueError):
            return None

    return number_of


def _names(keys: Iterable[str]) -> str:
    return ", ".join(map(display_name, keys)) or "nothing"


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
    """Return the configuration itself. Raises: UsageError for another major version, or without settings."""
    if one.major != major:
        raise UsageError(
            f'"{one.source}" is from PostgreSQL {one.major or "of an unknown version"}',
            detail=f"its configuration may not suit PostgreSQL {major}",
            hint=_HINT,
        )
    if not one.settings:
        raise UsageError(
            f'"{one.source}" has no configuration to begin with',
            detail=f'it has neither an answer nor a variant named "{TUNED}" or "{PLAN}" with changes',
            hint=_HINT,
        )
    return one


def _of_tuning(source: str, tuning: Tuning) -> EarlierConfiguration:
    """Return the answer of a search, or its best trial; no settings if it had several aims."""
    if tuning.aims:
        return EarlierConfiguration(source, {}, _major_in(tuning.subject))
    best = {} if tuning.winner is None else tuning.winner.point
    proof = _proof_of(tuning)
    if proof is not None:
        return EarlierConfiguration(source, tuning.answer or best, _major(proof), _why_worse(proof, TUNED))
    return EarlierConfiguration(source, tuning.answer or best, _major_in(tuning.subject))


def _major_in(subject: str) -> int | None:
    """Return the major version from a search's subject; None if it has none."""
    found = re.match(r"\d+", subject.partition(";")[0].rpartition(" ")[2])
    return int(found[0]) if found else None


def _proof_of(tuning: Tuning) -> Experiment | None:
    with closing(open_store()) as store:
        return store.load_head(tuning.experiment) if tuning.experiment in store.ids() else None


def _of_experiment(source: str, experiment: Experiment) -> EarlierConfiguration:
    """Return an experiment's answer, or its plan; no settings without either."""
    by_name = {one.name: one for one in experiment.variants}
    variant = next((by_name[name] for name in _NAMES if name in by_name), None)
    if variant is None:
        return EarlierConfiguration(source, {}, _major(experiment))
    build = {} if variant.server is None else {BUILD: variant.server}
    settings = {**variant.settings, **build}
    return EarlierConfiguration(source, settings, _major(experiment), _why_worse(experiment, variant.name))


def _major(experiment: Experiment) -> int | None:
    version = re.match(r"\d{1,4}", str(fact_at(experiment.server, "version") or ""))
    return int(version[0]) if version else None


def _why_worse(experiment: Experiment, variant: str) -> str:
    """Return a reason if a variant was shown to be slower on some workload and faster on none; else empty."""
    wanted = (THROUGHPUT, variant, experiment.baseline)
    found = {one.decision for one in experiment.verdicts if (one.metric, one.variant, one.baseline) == wanted}
    return _SLOWER if Decision.WORSE in found and Decision.BETTER not in found else ""


def _unpacked(path: Path) -> Experiment:
    checked = check_bundle(path)
    if checked.problems or checked.experiment is None:
        raise StorageError(f'the bundle "{path}" is refused', detail="\n".join(checked.problems))
    return checked.experiment


NumberOf: TypeAlias = Callable[[str, str], float | None]
"""Returns the number denoted by a key's value, in the unit of the key; None if it is not a number."""


@dataclass
class FirstPoints:
    """A sampler that returns given points before those of another sampler."""

    others: Sampler
    waiting: list[Point]

    def ask(self) -> Point:
        """Return the next given point, else the other sampler's."""
        return self.waiting.pop(0) if self.waiting else self.others.ask()

    def tell(self, trial: Trial) -> None:
        """Forward the trial to the other sampler."""
        self.others.tell(trial)


def point_within(space: Space, settings: Mapping[str, str], number_of: NumberOf) -> Point:
    """Return the point of a space that is most similar to these settings; numbers map to the nearest value.

    A setting keeps its original value if that is the nearest, or if the space does not contain the setting.
    """
    found = {
        one.key: _value(one, settings[one.key], number_of) for one in space.dimensions if one.key in settings
    }
    return {key: value for key, value in found.items() if value is not None}


def _value(dimension: Dimension, wanted: str, number_of: NumberOf) -> str | None:
    if wanted in dimension.values:
        return wanted
    number = number_of(dimension.key, wanted)
    if number is None:
        return None
    known = {value: number_of(dimension.key, value) for value in (*dimension.values, dimension.found)}
    far = {value: _distance(number, other) for value, other in known.items() if other is not None}
    nearest = min(far, key=far.__getitem__, default=None)
    return nearest if nearest in dimension.values else None


def _distance(a: float, b: float) -> float:
    """Return the distance of two numbers: as a log-ratio if both are positive."""
    if a > 0 and b > 0:
        return abs(math.log(a / b))
    return 0.0 if a == b else math.inf
