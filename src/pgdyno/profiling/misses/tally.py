"""Misses counted by line and instruction, and added up by structure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pgdyno.model.facts import Unknown
from pgdyno.model.profiles.data_misses import StructureMisses
from pgdyno.profiling.misses.lru import SplitCaches
from pgdyno.profiling.misses.structures import Structures
from pgdyno.profiling.misses.traces import parse_accesses

OTHERS = "others"
_LEAST_SHARE = 0.005
_MOST_FUNCTIONS = 3
_LEAST_OF_STRUCTURE = 0.05

Place = tuple[int, int]
"""The address of a line of data, and of an instruction."""


@dataclass
class Tally:
    """Misses in the first cache by place, those in both, and how many instructions there were."""

    l1d: Counter[Place] = field(default_factory=Counter)
    l2: Counter[Place] = field(default_factory=Counter)
    instructions: int = 0


def tally(pieces: Iterable[bytes], caches: SplitCaches) -> Tally:
    """Return the misses of a trace, of which each piece may end within a line."""
    found = Tally()
    for lines in _whole_lines(pieces):
        accesses = parse_accesses(lines)
        found.instructions += int(accesses.is_code.sum())
        missed = caches.take(accesses)
        addresses = (missed.lines * caches.line_bytes).tolist()
        places = list(zip(addresses, missed.instructions.tolist(), strict=True))
        found.l1d.update(places)
        found.l2.update(places[at] for at in missed.in_neither.tolist())
    return found


def _whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        lines, end, rest = (rest + piece).rpartition(b"\n")
        yield lines + end


def by_structure(
    found: Tally,
    structures: Structures,
    kinds: Mapping[int, str],
    function_of: Callable[[int], str],
    transactions: int,
) -> tuple[StructureMisses, ...]:
    """Return misses per transaction by structure, most first, the rare ones added up at the end.

    ``kinds`` are those of pages, by the address at which each begins.
    """
    blocks = structures.blocks

    def structure_of(address: int) -> str:
        page = blocks.page_of(address) if not isinstance(blocks, Unknown) else None
        return structures.of(address) if page is None else kinds.get(page, structures.of(address))

    l1d, l2 = (_added(counts, structure_of) for counts in (found.l1d, found.l2))
    functions: dict[str, Counter[str]] = {}
    for (address, instruction), count in found.l1d.items():
        functions.setdefault(structure_of(address), Counter())[function_of(instruction)] += count
    rows = [
        StructureMisses(name, count / transactions, l2[name] / transactions, _most(functions[name]))
        for name, count in l1d.most_common()
    ]
    least = _LEAST_SHARE * sum(one.l1d for one in rows), _LEAST_SHARE * sum(one.l2 for one in rows)
    shown = [one for one in rows if one.l1d >= least[0] or one.l2 > least[1]]
    rare = [one for one in rows if one not in shown]
    if rare:
        shown.append(StructureMisses(OTHERS, sum(one.l1d for one in rare), sum(one.l2 for one in rare)))
    return tuple(shown)


def _added(counts: Counter[Place], structure_of: Callable[[int], str]) -> Counter[str]:
    added: Counter[str] = Counter()
    for (address, _), count in counts.items():
        added[structure_of(address)] += count
    return added


def _most(functions: Counter[str]) -> tuple[str, ...]:
    least = _LEAST_OF_STRUCTURE * functions.total()
    most = functions.most_common(_MOST_FUNCTIONS)
    return tuple(name for name, count in most if name and count >= least)
