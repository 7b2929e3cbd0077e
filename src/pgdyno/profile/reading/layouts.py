"""The executed code of a server's program by address, from samples and from a simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pgdyno.base.facts import Unknown
from pgdyno.host.files.tree import Tree
from pgdyno.host.processes.elf import CodeSegment, read_code_segments
from pgdyno.profile.callgrind import CodeCounts
from pgdyno.profile.cycles import Cycle
from pgdyno.profile.records.microarchitecture import TextLayout
from pgdyno.profile.text_layout import ExecutedCode, HowKnown, text_layout

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
