"""Measures variants that lead on from each other, where not all of them can take turns: in parts.

run        neighbours that can take turns, with the machine as they want it; it begins where the one before
           ends. Two that need different machines are a run of their own, of whole trials
part       a run, measured as an experiment of its own
composed   what is made of the parts: an experiment without blocks, whose verdicts are on the product
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from pgdyno.app import wiring
from pgdyno.app.experiment import experiment_id
from pgdyno.app.measure import in_trials
from pgdyno.experiments.composition import parts_of, product_verdicts
from pgdyno.levers.sharing import not_shareable, shareable_runs
from pgdyno.model.durability_reading import DurabilityReading
from pgdyno.model.errors import HugePagesError
from pgdyno.model.experiment import DesignKind, Experiment
from pgdyno.model.study import Study
from pgdyno.model.variant import Variant

_TRIALS_WEIGHT = 3.0
"""Of the time, for a part of whole trials, where one in turns has 1.

Arbitrary, between 1, which is best for what is said of each layer, and 10, by how much noisier trials are,
which is best for the product.
"""

Measure = Callable[[Study, float | None], Experiment]
"""Runs a study, within so many seconds."""


def runs_of(study: Study, path: Sequence[str]) -> tuple[tuple[Variant, ...], ...]:
    """Return the runs that lead along ``path``, which are names of the study's variants; one is no parts."""
    by_name = {variant.name: variant for variant in study.variants}
    return shareable_runs([by_name[name] for name in path])


def measure_in_parts(
    study: Study,
    path: Sequence[str],
    budget_s: float | None,
    measure: Measure,
    clock: Callable[[], float] = time.monotonic,
) -> Experiment:
    """Measure every run of a path, and return what they make together; it is stored like its parts.

    Variants off the path are measured beside the first run. Raises: what measuring raises; what is stored of
    the parts is kept then.
    """
    runs = runs_of(study, path)
    weights = [_TRIALS_WEIGHT if not_shareable(run) else 1.0 for run in runs]
    ends_s = None if budget_s is None else clock() + budget_s
    measured: list[Experiment] = []
    for place, part in enumerate(_studies(study, path, runs)):
        left_s = None if ends_s is None else max(0.0, ends_s - clock())
        share = weights[place] / sum(weights[place:])
        measured.append(_measured(part, None if left_s is None else share * left_s, measure))
    composed = _composed(study, runs, measured)
    with closing(wiring.open_store()) as store:
        store.save(composed)
    return composed


def _studies(study: Study, path: Sequence[str], runs: Sequence[Sequence[Variant]]) -> Iterator[Study]:
    peers = tuple(variant for variant in study.variants if variant.name not in path)
    for place, run in enumerate(runs):
        yield replace(
            study,
            name=f"{study.name}-{place + 1}",
            question=f"What changes from {run[0].name} to {run[-1].name}? "
            f"(part {place + 1} of {len(runs)} of: {study.question})",
            variants=(*run, *(peers if place == 0 else ())),
            design=replace(study.design, seed=_seed_of(study, place)),
            notes=(),
        )


def _seed_of(study: Study, place: int) -> int:
    """Return a part's own seed: with equal orders, what an order does to a part would add up over all."""
    return zlib.crc32(f"{study.design.seed} {study.name} {place}".encode())


def _measured(study: Study, budget_s: float | None, measure: Measure) -> Experiment:
    """Measure in turns; where pages for all servers at once cannot be had, in whole trials."""
    try:
        return measure(study, budget_s)
    except HugePagesError as error:
        if study.design.kind is DesignKind.ALTERNATING or not_shareable(study.variants):
            raise
        note = f"alternating trials instead of a duet: for all servers at once {error.message}"
        return measure(replace(study, design=in_trials(study.design), notes=(*study.notes, note)), budget_s)


def _composed(study: Study, runs: Sequence[Sequence[Variant]], measured: Sequence[Experiment]) -> Experiment:
    now = datetime.now(UTC)
    names = [[variant.name for variant in run] for run in runs]
    on_path = {name for run in names for name in run}
    beside = tuple(verdict for verdict in measured[0].verdicts if verdict.variant not in on_path)
    return replace(
        measured[0],
        id=experiment_id(now, study.name),
        name=study.name,
        question=study.question,
        created=now.isoformat(timespec="seconds"),
        design=replace(study.design, rounds=min(one.design.rounds for one in measured)),
        variants=study.variants,
        blocks=(),
        verdicts=(*product_verdicts(measured, [run[-1] for run in names]), *beside),
        settings=tuple({(s.variant, s.name): s for one in measured for s in one.settings}.values()),
        notes=(*study.notes, *_notes(measured)),
        is_complete=all(one.is_complete for one in measured),
        parts=parts_of(measured, names),
        durability=_readings(measured),
    )


def _readings(measured: Sequence[Experiment]) -> tuple[DurabilityReading, ...]:
    """Return every different reading of the parts, once."""
    found: list[DurabilityReading] = []
    for reading in (one for part in measured for one in part.durability):
        if reading not in found:
            found.append(reading)
    return tuple(found)


def _notes(measured: Sequence[Experiment]) -> Iterator[str]:
    """Return what is noted of all parts once, and what is noted of one with its place."""
    shared = [note for note in measured[0].notes if all(note in one.notes for one in measured)]
    yield from shared
    for place, one in enumerate(measured):
        yield from (f"part {place + 1}: {note}" for note in one.notes if note not in shared)
