"""A search: its trials line by line, its answer, its curve and its tables. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from pgdyno.base import numbers
from pgdyno.host.kernel_file import display_name
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.plans.plan import PER_APPLICATION
from pgdyno.model.tuning.tuning import BUILD, TUNED, Point, Removal, Trial, TrialState, Tuning
from pgdyno.model.variants.variant import is_guc
from pgdyno.report.charts.search_curve import CurvePoint, search_curve, state_mark
from pgdyno.report.charts.svg import Caption
from pgdyno.report.elements.tables import NOTHING, Figure, Table, columns, figure

_ENDED = {
    TrialState.WON: "the best so far",
    TrialState.LOST: "slower than the best",
    TrialState.CLOSE: "no clear difference from the best",
    TrialState.RUNNING: "interrupted",
}
_PROVEN = {
    Decision.BETTER: "faster",
    Decision.WORSE: "slower",
    Decision.EQUIVALENT: "as fast",
    Decision.INCONCLUSIVE: "not decided",
}
_SHOWN_CHANGES = 4
_STATES = {
    TrialState.WON: "became the best",
    TrialState.LOST: "slower",
    TrialState.CLOSE: "no clear difference",
    TrialState.FAILED: "failed",
    TrialState.OVER_LIMIT: "over a limit",
    TrialState.REFUSED: "refused",
    TrialState.RUNNING: "interrupted",
}


def trial_line(trial: Trial) -> str:
    """Return one line about a finished trial."""
    if trial.gain is None:
        return f"trial {trial.number}: {trial.state.value}: {trial.reason}"
    point = short_point(trial.point)
    rounds = f"{len(trial.rounds)} round{'s' * (len(trial.rounds) > 1)}"
    gain = numbers.change(math.exp(trial.gain))
    ended = trial.reason or _ENDED[trial.state]
    return f"trial {trial.number}: {gain} over the default, {ended} ({rounds}): {point}"


def removal_line(removal: Removal) -> str:
    """Return one line about an attempt to shorten the answer."""
    names = ", ".join(map(display_name, removal.keys))
    if removal.ratio is None:
        return f"kept: a server does not run, or must not, without {names}"
    outcome = "left out" if removal.is_kept else "kept"
    return f"{outcome}: {numbers.change(removal.ratio[0])} without {names}"


def answer_text(tuning: Tuning) -> str:
    """Return the answer and a summary of the search; the proof follows later."""
    return "".join(f"{line}\n" for line in _answer_lines(tuning))


def proof_text(tuning: Tuning, proof: Experiment) -> str:
    """Return a sentence on the proof of an answer, and the notes of its search."""
    found = [
        f"{_PROVEN[one.decision]} on {one.workload}"
        for one in proof.verdicts
        if one.variant == TUNED and one.metric == THROUGHPUT
    ]
    shown = ", ".join(found) or "not measured"
    return f"New measurement, against the default: {shown}.\n{notes_text(tuning)}"


def notes_text(tuning: Tuning) -> str:
    """Return the notes of a search."""
    return "".join(f"{note}\n" for note in tuning.notes)


def _answer_lines(tuning: Tuning) -> Iterator[str]:
    tried = sum(bool(one.rounds) for one in tuning.trials)
    yield f"Search {tuning.id}: {tried} of {tuning.space.points:,} configurations tried."
    if over := sum(one.state is TrialState.OVER_LIMIT for one in tuning.trials):
        yield f"Stopped because the server exceeded a limit: {over}."
    winner = tuning.winner
    if winner is None:
        is_slower = any(one.state is TrialState.LOST and one.reason for one in tuning.trials)
        nowhere = " without being slower on a workload" if is_slower else ""
        yield f"None was faster than the configuration as found{nowhere}."
        return
    removed = {key for one in tuning.removals if one.is_kept for key in one.keys}
    if not tuning.answer:
        yield "The fastest was as fast without any of its changes: no improvement was found."
        return
    shorter = f"; {len(removed)} left out, because it is as fast without" if removed else ""
    yield f"The fastest, trial {winner.number}, had {len(winner.point)} changes{shorter}. The answer:"
    yield from grouped(tuning.answer, tuning.space.kept)


def short_point(point: Point) -> str:
    """Return the first few changes of a configuration, and the number of the others."""
    shown = [f"{display_name(key)}={value}" for key, value in point.items()]
    left = len(shown) - _SHOWN_CHANGES
    return ", ".join(shown[:_SHOWN_CHANGES]) + (f" and {left} more" if left > 0 else "")


def grouped(point: Point, kept: Collection[str]) -> Iterator[str]:
    """Yield a configuration in groups: settings, programs, then the machine and the start of the server.

    ``kept`` are the keys with planned values in every configuration of the search.
    """
    for title, keys in (
        ("postgresql.conf", [key for key in point if is_guc(key) and key != BUILD]),
        ("programs: pgdyno switch --help explains how to move a server to a build", [BUILD]),
        ("machine and start", [key for key in point if not is_guc(key)]),
    ):
        shown = [key for key in keys if key in point]
        if shown:
            yield f"  # {title}"
        for key in shown:
            yield f"  {display_name(key)} = {point[key]}{_remark(key, kept)}"


def _remark(key: str, kept: Collection[str]) -> str:
    if key in PER_APPLICATION:
        return "  # suits this workload's statements, may harm others: set it for this application alone"
    return "  # planned; a search is too short to evaluate it" if key in kept else ""


@dataclass(frozen=True)
class SearchView:
    """The part of a page about a search. ``legend`` are the marks in the curve, with their labels."""

    id: str
    trials: int
    table: Table
    curve: Figure
    legend: tuple[tuple[Markup, str], ...]
    removals: Table | None


def search_view(tuning: Tuning) -> SearchView | None:
    """Return the view of a search; None if it has no trial, or had several aims."""
    if not tuning.trials or tuning.aims:
        return None
    points = list(_points(tuning))
    caption = Caption(
        "search",
        "Gain of every trial of the search over the default",
        "; ".join(one.title for one in points),
    )
    table = _trials(tuning)
    present = {one.state for one in tuning.trials}
    return SearchView(
        tuning.id,
        len(tuning.trials),
        table,
        figure(partial(search_curve, caption, points), table, title="Trials of the search"),
        tuple((state_mark(state, 13, 7), words) for state, words in _STATES.items() if state in present),
        _removals(tuning) if tuning.removals else None,
    )


def _points(tuning: Tuning) -> Iterator[CurvePoint]:
    best = 1.0
    for trial in tuning.trials:
        ratio = None if trial.gain is None else math.exp(trial.gain)
        if trial.state is TrialState.WON and ratio is not None:
            best = ratio
        gain = "" if ratio is None else f"{numbers.change(ratio)}, "
        title = f"trial {trial.number}: {gain}{_outcome(trial)}"
        yield CurvePoint(trial.number, ratio, best, trial.state, title)


def _outcome(trial: Trial) -> str:
    return (
        f"{_STATES[trial.state]}: {trial.reason}"
        if trial.has_failed
        else trial.reason or _STATES[trial.state]
    )


def _trials(tuning: Tuning) -> Table:
    by_number = {one.number: one.point for one in tuning.trials}
    return Table(
        "Each figure is from a short measurement together with the default and the best so far",
        columns(
            *("Trial", "Over the default", "Rounds", "Outcome", "Changes against the best so far"),
            numbers_from=0,
            words_from=3,
        ),
        tuple(
            (
                str(one.number),
                NOTHING if one.gain is None else numbers.change(math.exp(one.gain)),
                str(len(one.rounds)),
                _outcome(one),
                _changes_from(one.point, {} if one.incumbent is None else by_number[one.incumbent]),
            )
            for one in tuning.trials
        ),
    )


def _changes_from(point: Point, incumbent: Point) -> str:
    changed = [f"{display_name(key)}={value}" for key, value in point.items() if incumbent.get(key) != value]
    undone = [f"{display_name(key)} as found" for key in incumbent if key not in point]
    return ", ".join([*changed, *undone])


def _removals(tuning: Tuning) -> Table:
    return Table(
        "Shortening of the best configuration: throughput without these changes, against the best",
        columns("Without", "Outcome", "Change", "Bounds", "Rounds", numbers_from=2),
        tuple(
            (
                ", ".join(map(display_name, one.keys)),
                "left out" if one.is_kept else "kept",
                NOTHING if one.ratio is None else numbers.change(one.ratio[0]),
                NOTHING if one.ratio is None else numbers.change_range(*one.ratio[1:]),
                str(one.rounds),
            )
            for one in tuning.removals
        ),
    )
