"""The executed code of a server's program by address, from samples and from a simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.base.facts import Unknown
from pgdyno.host.files.tree import Tree
from pgdyno.host.processes.elf import CodeSegment, read_code_segments
from pgdyno.profile.callgrind import CodeCounts
from pgdyno.profile.cycles import Cycle
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


_SAMPLES = HowKnown("samples of stacks (perf, cpu-clock)", "samples", is_complete=False, is_simulated=False)
_NO_FILE = "code in no file (JIT, vDSO)"
_STRIPPED = "its functions have no names: the program is stripped"
_FEW_SAMPLES = "samples miss code that runs rarely: the number of lines is a lower bound"


def sampled_layout(program: Path, cycles: Sequence[Cycle]) -> TextLayout | None:
    """Return the layout from samples of sessions; None without samples in the program."""
    code: Counter[tuple[str, int, str]] = Counter()
    for cycle in cycles:
        if cycle.sampled is not None:
            code.update(cycle.sampled.code)
    found = _segments(program)
    if isinstance(found, Unknown) or not code:
        return None
    counts: Counter[int] = Counter()
    functions: dict[int, str] = {}
    elsewhere: Counter[str] = Counter()
    for (file, offset, function), samples in code.items():
        addresses = (one.address_of(offset) for one in found) if file == str(program) else ()
        address = next((one for one in addresses if one is not None), None)
        if address is None:
            elsewhere[_name(file)] += samples
        else:
            counts[address] += samples
            functions[address] = function if _is_name(function) else ""
    return _remarked(text_layout(program.name, found, ExecutedCode(counts, functions, elsewhere), _SAMPLES))


def simulated_layout(program: Path, counts: CodeCounts, source: str) -> TextLayout | None:
    """Return the layout from a simulation's counts; None if it counted nothing in the program."""
    found = _segments(program)
    executed = counts.executed.get(str(program), {})
    if isinstance(found, Unknown) or not executed:
        return None
    elsewhere = {
        _name(file): sum(n for n in of_file.values() if n > 0)
        for file, of_file in counts.executed.items()
        if file != str(program)
    }
    seen = HowKnown(source, "instructions", is_complete=True, is_simulated=True)
    return _remarked(
        text_layout(
            program.name, found, ExecutedCode(executed, named_functions(program, counts), elsewhere), seen
        )
    )


def named_functions(program: Path, counts: CodeCounts) -> dict[int, str]:
    """Return a program's functions by instruction address; "" for a function without a name."""
    found = counts.functions.get(str(program), {})
    return {at: name if _is_name(name) else "" for at, name in found.items()}


def _segments(program: Path) -> tuple[CodeSegment, ...] | Unknown:
    return Tree().scan_plain(str(program), read_code_segments).value


def _remarked(layout: TextLayout | None) -> TextLayout | None:
    if layout is None:
        return None
    remarks = [_FEW_SAMPLES] if not layout.is_simulated else []
    if not _any_named(page.function for page in layout.heat):
        remarks.append(_STRIPPED)
    return replace(layout, remarks=tuple(remarks))


def _any_named(functions: Iterable[str]) -> bool:
    return any(functions)


def _name(file: str) -> str:
    """Return a code file's display name; perf and callgrind use placeholders for code without a file."""
    return Path(file).name if file.startswith("/") and not file.startswith("//anon") else _NO_FILE


def _is_name(function: str) -> bool:
    """Return whether it is a name rather than an address or a placeholder."""
    return bool(function) and not function.startswith(("0x", "???", "[unknown]"))
