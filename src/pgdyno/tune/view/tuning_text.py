"""A search as text: its trials line by line, and its answer."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from pgdyno.base import numbers
from pgdyno.host.kernel_file import display_name
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.plans.plan import PER_APPLICATION
from pgdyno.model.tuning.space import BUILD, Point
from pgdyno.model.tuning.tuning import TUNED, Removal, Trial, TrialState, Tuning
from pgdyno.model.variants.variant import is_guc

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
    return f"New measurement, against the default: {_found(proof)}.\n" + notes_text(tuning)


def notes_text(tuning: Tuning) -> str:
    """Return the notes of a search."""
    return "".join(f"{note}\n" for note in tuning.notes)


def _found(proof: Experiment) -> str:
    found = [
        f"{_PROVEN[one.decision]} on {one.workload}"
        for one in proof.verdicts
        if one.variant == TUNED and one.metric == THROUGHPUT
    ]
    return ", ".join(found) or "not measured"


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
