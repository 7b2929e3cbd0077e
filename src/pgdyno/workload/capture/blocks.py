"""Infers kinds of blocks (BEGIN …) from statements that sessions ran in one transaction, and from counts.

Statements that were seen together belong together. A statement of several kinds links them, so the kinds
are what remains connected without such statements. BlockKinds that are then more than the server counted are
parts of others: those called equally often are joined first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from pgdyno.postgres.statement_counts import Sighting

_SAME = 0.05  # counts that differ by less are treated as equal: snapshots split transactions
_ALIKE = 0.02  # difference between counts in one transaction: each session has at most one in progress
_AGREE = 0.1  # difference between two counts of the same transactions; the database's come late
_MANY = 20  # transactions in which a statement was seen: enough to see others of its kind with it
_MOST_COMPARED = 100  # parts of which every two are compared: otherwise neighbours by count

Part = dict[int, float]
"""Statements of one kind of block, with their calls in all blocks of this kind."""


@dataclass(frozen=True)
class BlockKinds:
    """Kinds of blocks; ``joined`` are those put together only because the server counted fewer blocks."""

    parts: list[Part]
    joined: list[Part]


def blocks_of(parts: Iterable[Part], sightings: Iterable[Sighting], counted: float) -> BlockKinds:
    """Return kinds of blocks; ``parts`` are statements that were seen together, directly or transitively.

    ``counted`` is the number of blocks, 0 if unknown: then the parts are the kinds.
    """
    if not counted:
        return BlockKinds(list(parts), [])
    transactions: defaultdict[tuple[int, str], set[int]] = defaultdict(set)
    for one in sightings:
        transactions[one.session, one.transaction].add(one.statement)
    linked: defaultdict[int, set[int]] = defaultdict(set)
    for its in transactions.values():
        for statement in its:
            linked[statement] |= its
    seen = Counter(one for its in transactions.values() for one in its)
    joined: list[Part] = []
    kinds = [kind for part in parts for kind in _divided(part, linked, seen, counted, joined)]
    return BlockKinds(_fitting(kinds, seen, counted, joined), joined)


def connected(members: Sequence[int], pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return groups of statements that pairs connect, directly or transitively."""
    parent = {one: one for one in members}

    def root(one: int) -> int:
        while parent[one] != one:
            one = parent[one]
        return one

    for first, second in pairs:
        if first in parent and second in parent:
            parent[root(first)] = root(second)
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for one in members:
        groups[root(one)].append(one)
    return list(groups.values())


def transactions_in(part: Mapping[int, float]) -> float:
    """Return the number of a part's transactions: the count shared by most of its statements.

    If no two share a count, each transaction is assumed to call the rarest statement once.
    """
    best, most = float(min(part.values())), 1
    for its in part.values():
        close = [other for other in part.values() if abs(other - its) <= _SAME * its]
        if len(close) > most:
            best, most = sum(close) / len(close), len(close)
    return best


def _divided(
    part: Part,
    linked: Mapping[int, set[int]],
    seen: Mapping[int, int],
    counted: float,
    joined: list[Part],
    *,
    is_whole: bool = True,
) -> Iterator[Part]:
    """Yield the kinds of block in a part that the statements called most often connect.

    ``linked`` has the statements seen with each, ``seen`` the number of transactions. ``counted`` is the
    largest number of blocks. Kinds that are put together because of it are added to ``joined``. ``is_whole``:
    the part is not itself of kinds that a statement connects.
    """
    most = max(part.values())
    base = [one for one, its in part.items() if abs(its - most) <= _SAME * most]
    shared: list[int] = []
    found: list[list[int]] = []
    for one in sorted(part, key=lambda one: (one not in base, -part[one])):
        shared.append(one)
        rest = [other for other in part if other not in shared]
        found = connected(rest, ((a, b) for a in rest for b in linked[a] if b in part and a < b))
        if len(shared) >= len(base) and len(found) != 1:
            break
    limit = min(most, counted)
    parts = [{one: part[one] for one in its} for its in found]
    kinds = [kind for one in parts for kind in _divided(one, linked, seen, limit, joined, is_whole=False)]
    kinds = _fitting(kinds, seen, limit, joined)
    whole = [part]
    if len(kinds) > 1:
        calls = {one: part[one] for one in shared}
        whole = list(_with_shared(kinds, calls, base, linked, limit if is_whole else 0.0))
    for kind, its in zip(kinds, whole, strict=False):  # without the blocks of shared statements alone
        joined[:] = [its if one is kind else one for one in joined]
    yield from whole


def _with_shared(
    kinds: Sequence[Part],
    shared: Mapping[int, float],
    base: Collection[int],
    linked: Mapping[int, set[int]],
    counted: float,
) -> Iterator[Part]:
    """Yield kinds with the statements that they share, and one of only these if more blocks were counted.

    Those of ``base`` are in each, others in those that they were seen with.
    """
    counts = [transactions_in(kind) for kind in kinds]
    others, rest = Part(), max(0.0, counted - sum(counts))
    if rest <= _SAME * counted:
        rest = 0.0
    added: list[Part] = [{} for _ in kinds]
    for one, calls in shared.items():
        its = [at for at, kind in enumerate(kinds) if one in base or not linked[one].isdisjoint(kind)]
        its = its or list(range(len(kinds)))
        whole = sum(counts[at] for at in its)
        if rest and one in base:
            others[one] = calls * rest / (whole + rest)
        elif rest and calls > whole and not _is_multiple(calls / whole):
            others[one] = calls - whole
        for at in its:
            added[at][one] = (calls - others.get(one, 0.0)) * counts[at] / whole
    yield from (more | kind for more, kind in zip(added, kinds, strict=True))
    if others:
        yield others


def _fitting(parts: list[Part], seen: Mapping[int, int], counted: float, joined: list[Part]) -> list[Part]:
    """Return parts of which some are joined, such that blocks are not more than those counted.

    Two parts that were often seen, and never together, are not joined. ``joined`` becomes the list of those
    that are.
    """
    while True:
        counts = [transactions_in(part) for part in parts]
        if sum(counts) <= (1 + _AGREE) * counted:
            break
        order = sorted(range(len(parts)), key=counts.__getitem__)
        pairs = combinations(order, 2) if len(order) <= _MOST_COMPARED else pairwise(order)
        often = _often_seen(parts, seen)
        open_pairs = [pair for pair in pairs if not often.issuperset(pair)]
        if not open_pairs:
            break
        less, more = min(open_pairs, key=lambda pair: _distance(counts[pair[0]], counts[pair[1]]))
        new = _sum(parts[more], parts[less])
        joined[:] = [one for one in joined if one is not parts[less] and one is not parts[more]]
        joined.append(new)
        parts = [*(part for at, part in enumerate(parts) if at not in {less, more}), new]
    return parts


def _often_seen(parts: Sequence[Part], seen: Mapping[int, int]) -> set[int]:
    """Return the places of parts with a statement of no other part that was often seen."""
    shared = Counter(one for part in parts for one in part)
    return {
        at for at, part in enumerate(parts) if any(shared[one] == 1 and seen[one] >= _MANY for one in part)
    }


def _distance(less: float, more: float) -> tuple[int, float]:
    """Return how much speaks against one kind of block for two parts, from their counts.

    Equal ones are of one kind, above all large ones: small ones are often equal by chance. A count that is a
    multiple of the other one is that of repeated statements.
    """
    if more <= (1 + _ALIKE) * less:
        return 0, -less
    return (1, -less) if _is_multiple(more / less) else (2, more / less)


def _is_multiple(ratio: float) -> bool:
    return round(ratio) > 1 and abs(ratio - round(ratio)) <= _ALIKE


def _sum(one: Part, other: Part) -> Part:
    return {key: one.get(key, 0.0) + other.get(key, 0.0) for key in {**one, **other}}
