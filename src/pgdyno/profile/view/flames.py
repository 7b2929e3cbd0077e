"""Sampled stacks as folded text, and as the frames of a flame graph. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pgdyno.base.terminal import printable
from pgdyno.profile.records.profile_record import StackCount

_SEPARATORS = str.maketrans({";": ":", " ": "_"})
"""Of folded stacks, which names of functions must not have."""


@dataclass(frozen=True)
class Flame:
    """A function in all stacks that begin alike. Units: samples; ``depth`` counts from the outermost, 0."""

    function: str
    start: int
    samples: int
    depth: int


def folded(stacks: Sequence[StackCount]) -> Iterator[str]:
    """Yield a line per stack, as flamegraph.pl and speedscope read them: ``a;b;c 12``."""
    for one in stacks:
        names = ";".join(printable(frame or "?").translate(_SEPARATORS) for frame in one.frames)
        yield f"{names or '?'} {one.samples}"


def flames(stacks: Sequence[StackCount], least: int) -> tuple[Flame, ...]:
    """Return the functions of stacks that are in order, without those of fewer than ``least`` samples."""
    return tuple(_flames(stacks, least, 0, 0))


def _flames(stacks: Sequence[StackCount], least: int, depth: int, start: int) -> Iterator[Flame]:
    for function, grouped in groupby(
        stacks, lambda one: one.frames[depth] if depth < len(one.frames) else None
    ):
        alike = list(grouped)
        samples = sum(one.samples for one in alike)
        if function is not None and samples >= least:
            yield Flame(function, start, samples, depth)
            yield from _flames(alike, least, depth + 1, start)
        start += samples
