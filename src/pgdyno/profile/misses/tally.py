"""Misses counted by line and instruction, and added up by structure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pgdyno.profile.misses.lru import SplitCaches
from pgdyno.profile.misses.traces import Accesses, accesses_in
from pgdyno.profile.records.data_misses import StructureMisses

OTHERS = "others"
_LEAST_SHARE = 0.005
_MOST_FUNCTIONS = 3
_LEAST_OF_STRUCTURE = 0.05

Place = tuple[int, int]
"""The address of a line of data, and of an instruction."""
Naming = Callable[[int], str]
"""From an address to a name."""


@dataclass
class Tally:
    """Misses in the first cache by place, those in both, and how many instructions there were."""

    l1d: Counter[Place] = field(default_factory=Counter)
    l2: Counter[Place] = field(default_factory=Counter)
    instructions: int = 0

    def take(self, accesses: Accesses, caches: SplitCaches) -> None:
        """Add the misses of accesses in caches, which keep their lines."""
        self.instructions += int(accesses.is_code.sum())
        missed = caches.take(accesses)
        addresses = (missed.lines * caches.line_bytes).tolist()
        places = list(zip(addresses, missed.instructions.tolist(), strict=True))
        self.l1d.update(places)
        self.l2.update(places[at] for at in missed.in_neither.tolist())


def tally(pieces: Iterable[bytes], caches: SplitCaches) -> Tally:
    """Return the misses of a trace, of which each piece may end within a line."""
    found = Tally()
    for accesses in accesses_in(pieces):
        found.take(accesses, caches)
    return found


def by_structure(
    found: Tally, structure_of: Naming, function_of: Naming, transactions: int
) -> tuple[StructureMisses, ...]:
    """Return misses per transaction by structure, most first, the rare ones added up at the end."""
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


def _added(counts: Counter[Place], structure_of: Naming) -> Counter[str]:
    """Return misses by structure."""
    found: Counter[str] = Counter()
    for (address, _), count in counts.items():
        found[structure_of(address)] += count
    return found


def _most(functions: Counter[str]) -> tuple[str, ...]:
    least = _LEAST_OF_STRUCTURE * functions.total()
    most = functions.most_common(_MOST_FUNCTIONS)
    return tuple(name for name, count in most if name and count >= least)
