"""A search with several aims as text: its trials, the members of its front, and their proof."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from pgdyno.experiments.verdicts.front_effects import MemberEffects, ProvenFront, proven_front
from pgdyno.model import numbers
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.space import Point
from pgdyno.model.tuning.tuning import FrontMember, Trial, TrialState, Tuning
from pgdyno.report.plain.point_text import grouped, short_point

_ENDED = {
    TrialState.WON: "on the front so far",
    TrialState.LOST: "off the front",
    TrialState.CLOSE: "not decided when the time was over",
    TrialState.RUNNING: "interrupted",
}


def front_trial_line(trial: Trial) -> str:
    """Return one line about a trial that has ended."""
    rounds = f"{len(trial.rounds)} round{'s' * (len(trial.rounds) > 1)}"
    changes = ", ".join(f"{aim.label} {numbers.change(math.exp(log))}" for aim, log in trial.by_aim.items())
    return f"trial {trial.number}: {changes}; {outcome(trial)} ({rounds}): {short_point(trial.point)}"


def outcome(trial: Trial) -> str:
    """Return how a trial for the front ended."""
    return trial.reason or _ENDED[trial.state]


def front_lines(tuning: Tuning) -> Iterator[str]:
    """Yield the members of the front, with their settings."""
    tried = sum(bool(one.rounds) for one in tuning.trials)
    yield f"Search {tuning.id}: {tried} of {tuning.space.points:,} configurations tried."
    if not tuning.members:
        yield f"None was better than the configuration as found in {_either(tuning.aims)}."
        return
    count = len(tuning.members)
    yield f"On the front of {_listed(tuning.aims)}: {count} configuration{'s' * (count > 1)}."
    yield from _members(tuning, tuning.offered)


def proven_front_lines(tuning: Tuning, proof: Experiment) -> Iterator[str]:
    """Yield the table of the members' effects, those that are left, and how to take one."""
    front = proven_front(tuning, proof)
    if front is None:
        yield "The front is not known: too few rounds count, or more transactions fail on one of its servers."
        return
    level = numbers.share(front.level)
    yield f"Measured afresh, against the default, with intervals of {level} each by itself:"
    yield from _table(front)
    yield from left_out_lines(front)
    yield choice(front)


def left_out_lines(front: ProvenFront) -> Iterator[str]:
    """Yield a sentence on each configuration that is left out."""
    for one in front.members:
        if reason := left_out(one, front):
            yield f"Left out: {one.name}, {reason}."


def left_out(one: MemberEffects, front: ProvenFront) -> str:
    """Return why a configuration is left out; nothing if it is not."""
    if one.like is not None:
        return f"which has more changes than {one.like} and is not told from it in {_either(front.aims)}"
    if one.worse_than is None:
        return ""
    return f"as {one.worse_than} is better in at least one of them and shown to be worse in none"


def choice(front: ProvenFront) -> str:
    """Return advice on the front."""
    if not front.left:
        return "None is left: keep the configuration as found."
    if len(front.left) == 1:
        return f"Take {front.left[0].name}: its own lines, with those that all have, are its configuration."
    return (
        "None of those left is better than another in everything: choose one by what matters to you. Its "
        "own lines, with those that all have, are its configuration."
    )


def effect_text(effect: Interval) -> str:
    """Return an effect with its interval; without one where it is reckoned."""
    change = numbers.change_within(effect.point, effect.low, effect.high)
    return change if effect.low == effect.high else f"{change} ({numbers.interval(effect)})"


def shared(members: Iterable[FrontMember]) -> Point:
    """Return the changes that all members have."""
    points = [one.point for one in members]
    return {
        key: value for key, value in points[0].items() if all(one.get(key) == value for one in points[1:])
    }


def own(member: FrontMember, of_all: Point) -> Point:
    """Return the changes that a member has besides those of all."""
    return {key: value for key, value in member.point.items() if key not in of_all}


def _members(tuning: Tuning, members: tuple[FrontMember, ...]) -> Iterator[str]:
    of_all = shared(members) if len(members) > 1 else {}
    if of_all:
        yield "All have:"
        yield from grouped(of_all, tuning.space.kept)
    for one in members:
        besides = own(one, of_all)
        yield f"{one.name} (trial {one.trial}) has{' besides' if of_all else ''}:"
        yield from grouped(besides, tuning.space.kept) if besides else ["  nothing else"]


def _table(front: ProvenFront) -> Iterator[str]:
    heads = ("", *(aim.label for aim in front.aims))
    rows = [
        (
            one.name,
            *(effect_text(one.effects[aim]) for aim in front.aims),
            "" if one.is_on_front else "left out",
        )
        for one in front.members
    ]
    widths = [max(map(len, column)) for column in zip((*heads, ""), *rows, strict=True)]
    for row in ((*heads, ""), *rows):
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()


def _listed(aims: tuple[Aim, ...]) -> str:
    return " and ".join(aim.label for aim in aims)


def _either(aims: tuple[Aim, ...]) -> str:
    return " or ".join(aim.label for aim in aims)
