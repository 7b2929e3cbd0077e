"""Find the executed places of a program's code from counts by address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.host.processes.elf import CodeSegment
from pgdyno.profile.records.microarchitecture import (
    PAGE_BYTES,
    SHARES,
    Elsewhere,
    HotCode,
    PageHeat,
    TextLayout,
)

_LINE_BYTES = 64
_LARGE_PAGE_BYTES = 2 << 20
_LONGEST_INSTRUCTION = 15  # bytes, on x86-64; a larger gap between executed instructions is unexecuted code
_USUAL_INSTRUCTION = 4  # bytes assumed for the last instruction before a gap: fixed on Arm, mean on x86-64
_LEAST_ELSEWHERE = 0.005


@dataclass(frozen=True)
class ExecutedCode:
    """Executions and functions by address in a program file, and executions in other files by name."""

    counts: Mapping[int, int]
    functions: Mapping[int, str]
    elsewhere: Mapping[str, int]


@dataclass(frozen=True)
class HowKnown:
    """The source of executions. ``is_complete``: all instructions were counted, not sampled."""

    source: str
    unit: str
    is_complete: bool
    is_simulated: bool


def text_layout(
    program: str, segments: Sequence[CodeSegment], execution: ExecutedCode, seen: HowKnown
) -> TextLayout | None:
    """Return the layout of a program's executed code; None if nothing in it was executed."""
    placed = {at: n for at, n in execution.counts.items() if n > 0 and any(one.has(at) for one in segments)}
    counted = sum(placed.values())
    if not counted:
        return None
    whole = counted + sum(execution.elsewhere.values())
    others = (Elsewhere(name, n / whole) for name, n in execution.elsewhere.items())
    return TextLayout(
        program=program,
        source=seen.source,
        unit=seen.unit,
        is_simulated=seen.is_simulated,
        counted=counted,
        pages=sum(len(one.pages) for one in segments),
        heat=tuple(_heat(segments, placed, execution.functions)),
        coverage=tuple(_coverage(placed, share, is_complete=seen.is_complete) for share in SHARES),
        elsewhere=tuple(
            sorted((one for one in others if one.share >= _LEAST_ELSEWHERE), key=lambda one: -one.share)
        ),
    )


def fewest(counts: Iterable[int], share: float) -> int:
    """Return the smallest number of counts that together reach a share of the total."""
    ordered = sorted(counts, reverse=True)
    wanted, reached = share * sum(ordered), 0
    for number, count in enumerate(ordered, start=1):
        reached += count
        if reached >= wanted:
            return number
    return len(ordered)


def by_place(counts: Mapping[int, int], size_bytes: int) -> Counter[int]:
    """Return counts by blocks of ``size_bytes``, such as pages."""
    places: Counter[int] = Counter()
    for address, count in counts.items():
        places[address // size_bytes] += count
    return places


def hot_bytes(counts: Mapping[int, int], share: float) -> int:
    """Return the approximate size of the fewest instructions that reach a share of all executions."""
    ordered = sorted(counts)
    sizes = dict(zip(ordered, _sizes(ordered), strict=True))
    most = sorted(counts, key=lambda at: -counts[at])[: fewest(counts.values(), share)]
    return sum(sizes[at] for at in most)


def _sizes(addresses: Sequence[int]) -> Iterator[int]:
    for address, following in zip(addresses, (*addresses[1:], None), strict=True):
        gap = _LONGEST_INSTRUCTION + 1 if following is None else following - address
        yield gap if gap <= _LONGEST_INSTRUCTION else _USUAL_INSTRUCTION


def _coverage(counts: Mapping[int, int], share: float, *, is_complete: bool) -> HotCode:
    sizes = (_LINE_BYTES, PAGE_BYTES, _LARGE_PAGE_BYTES)
    lines, pages, large = (fewest(by_place(counts, size).values(), share) for size in sizes)
    return HotCode(share, hot_bytes(counts, share) if is_complete else None, lines, pages, large)


def _heat(
    segments: Sequence[CodeSegment], counts: Mapping[int, int], functions: Mapping[int, str]
) -> Iterator[PageHeat]:
    index = {page: at for at, page in enumerate(page for one in segments for page in one.pages)}
    whole = sum(counts.values())
    names: dict[int, Counter[str]] = {}
    for address, count in counts.items():
        names.setdefault(address // PAGE_BYTES, Counter())[functions.get(address, "")] += count
    for page, of_page in sorted(names.items()):
        [(name, _)] = of_page.most_common(1)
        yield PageHeat(index[page], sum(of_page.values()) / whole, name)
