"""Points to try right after the plan: those named, and those of the nearest of many experiments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgdyno.app.measuring.evidence import document_of
from pgdyno.app.planning.subject import Subject
from pgdyno.app.tuning.earlier_configurations import HINT, EarlierConfiguration
from pgdyno.app.tuning.tune_request import TuneRequest
from pgdyno.experiments.machines.nearness import Circumstances, Nearness, kind_of_load, nearness, on_host
from pgdyno.model.errors import SettingError, UsageError
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.hosts.kernel_file import display_name
from pgdyno.model.ports import Progress
from pgdyno.model.servers.server import Server
from pgdyno.model.tuning.space import Point, Space
from pgdyno.search.warm_start import NumberOf, point_within

_PLACES = ("the nearest", "the second choice", "the third choice")  # no more: each takes a trial
_MOST_TOLD = 5  # reasons to leave some out
_MOST_NAMED = 3  # experiments with the same reason


@dataclass(frozen=True)
class FirstPoint:
    """A point to try right after the plan, and a note on it."""

    point: Point
    note: str


@dataclass(frozen=True)
class WarmStart:
    """Points to try right after the plan, with notes on them, and on experiments that were left out."""

    points: tuple[Point, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Candidate:
    """One of many configurations: how near it is, and the point that it is here."""

    earlier: EarlierConfiguration
    near: Nearness
    point: Point

    def why_not(self, known: Sequence[Point]) -> str:
        """Return why it is not tried beside these points."""
        if reason := self.earlier.problem or self.near.why_not:
            return reason
        if not self.point:
            return "nothing of it can be tried here"
        return "the same here as the plan, or as one that is tried" if self.point in known else ""

    def is_alike(self, other: _Candidate) -> bool:
        """Whether nothing tells the circumstances of the two apart."""
        both = (self.earlier.circumstances, other.earlier.circumstances)
        return not (nearness(*both).gaps or nearness(*reversed(both)).gaps)


def warm_start(
    space: Space,
    earlier: Sequence[EarlierConfiguration],
    server: Server,
    here: Circumstances,
    progress: Progress,
) -> WarmStart:
    """Return the points of a space that are most like these configurations: all named, the nearest of others.

    Its notes are announced. Raises: UsageError if the space has nothing of one that was named.
    """
    found = _begun(space, earlier, _number_of(server), here)
    for note in found.notes:
        progress.step(note)
    return found


def circumstances_here(request: TuneRequest, subject: Subject, *, is_isolated: bool) -> Circumstances:
    """Return the circumstances of a search."""
    workloads = request.conditions.workloads.values()
    return on_host(
        document_of(subject.host),
        is_isolated=is_isolated,
        major=subject.server.major,
        data_bytes=max(one.data_set.size_bytes for one in workloads),
        loads={one.name: _kind(one) for one in workloads},
    )


def _begun(
    space: Space, earlier: Sequence[EarlierConfiguration], number_of: NumberOf, here: Circumstances
) -> WarmStart:
    named = [_named(space, one, number_of, here) for one in earlier if one.is_named]
    others = [one for one in earlier if not one.is_named]
    if not others:
        return WarmStart(tuple(one.point for one in named), tuple(one.note for one in named))
    taken = [space.plan, *(one.point for one in named)]
    chosen, left_out = _nearest(space, others, number_of, here, taken)
    found = (*named, *chosen)
    notes = (*(one.note for one in found), *_told(left_out))
    return WarmStart(tuple(one.point for one in found), notes)


def _kind(workload: Workload) -> str:
    cell = workload.cell
    operation = workload.step.operations if workload.step else cell.operation if cell else None
    return kind_of_load(operation or "transactions", is_read_only=workload.is_read_only)


def _number_of(server: Server) -> NumberOf:
    def number_of(key: str, value: str) -> float | None:
        try:
            guc = server.settings.get(key)
            return float(value if guc is None else guc.check(value))
        except (SettingError, ValueError):
            return None

    return number_of


def _named(space: Space, one: EarlierConfiguration, number_of: NumberOf, here: Circumstances) -> FirstPoint:
    point = point_within(space, one.settings, number_of)
    if not point:
        raise UsageError(
            f'nothing of "{one.source}" can be tried here',
            detail=f"it sets {_names([*one.settings])}; this search varies "
            f"{_names([each.key for each in space.dimensions])}",
            hint=HINT,
        )
    words = ("named", one.problem, nearness(one.circumstances, here).words)
    return _first(one, point, "; ".join(filter(None, words)))


def _nearest(
    space: Space,
    others: Sequence[EarlierConfiguration],
    number_of: NumberOf,
    here: Circumstances,
    taken: Sequence[Point],
) -> tuple[list[FirstPoint], list[tuple[str, str]]]:
    """Return the points of the nearest experiments, and the others with the reasons against them."""
    ranked = [
        _Candidate(one, near, point_within(space, one.settings, number_of))
        for one, near in _ranked(others, here)
    ]
    chosen = _chosen(ranked, taken)
    known = [*taken, *(one.point for one in chosen)]
    left_out = [
        (one.earlier.source, one.why_not(known) or _why_no_place(one, chosen))
        for one in ranked
        if one not in chosen
    ]
    points = [
        _first(one.earlier, one.point, f"{place} of {len(others)}; {one.near.words}")
        for place, one in zip(_PLACES, chosen, strict=False)
    ]
    return points, left_out


def _chosen(ranked: Sequence[_Candidate], taken: Sequence[Point]) -> list[_Candidate]:
    """Return the nearest, but no second of the same circumstances before one of others has its place."""
    chosen: list[_Candidate] = []
    for _ in _PLACES:
        known = [*taken, *(one.point for one in chosen)]
        free = [one for one in ranked if not one.why_not(known)]
        if not free:
            break
        chosen.append(min(free, key=lambda one: sum(map(one.is_alike, chosen))))
    return chosen


def _why_no_place(one: _Candidate, chosen: Sequence[_Candidate]) -> str:
    if any(map(one.is_alike, chosen)):
        return "one from a like host and load is tried"
    return "three are nearer, or as near and newer"


def _ranked(
    others: Sequence[EarlierConfiguration], here: Circumstances
) -> list[tuple[EarlierConfiguration, Nearness]]:
    """Return the nearest first, of equals the newest."""
    newest = sorted(others, key=lambda one: one.created, reverse=True)
    found = [(one, nearness(one.circumstances, here)) for one in newest]
    return sorted(found, key=lambda pair: (bool(pair[0].problem or pair[1].why_not), pair[1].steps))


def _first(one: EarlierConfiguration, point: Point, why: str) -> FirstPoint:
    said = ", ".join(f"{display_name(key)}={value}" for key, value in point.items())
    return FirstPoint(
        point, f"tried after the plan, as it is in {one.source} or nearest to that: {said} ({why})"
    )


def _told(left_out: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield a note on each reason for which experiments were left out, the nearest first."""
    by_reason: dict[str, list[str]] = {}
    for source, reason in left_out:
        by_reason.setdefault(reason, []).append(source)
    for reason, sources in [*by_reason.items()][:_MOST_TOLD]:
        yield f"left out of the warm start, {_first_of(sources)}: {reason}"
    rest = [source for sources in [*by_reason.values()][_MOST_TOLD:] for source in sources]
    if rest:
        yield f"left out of the warm start as well, farther away: {_first_of(rest)}"


def _first_of(sources: Sequence[str]) -> str:
    more = f" and {len(sources) - _MOST_NAMED} more" if len(sources) > _MOST_NAMED else ""
    return f"{', '.join(sources[:_MOST_NAMED])}{more}"


def _names(keys: Sequence[str]) -> str:
    return ", ".join(map(display_name, keys)) or "nothing"
