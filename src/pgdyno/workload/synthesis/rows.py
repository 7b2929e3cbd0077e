"""Generated rows of a table in blocks of COPY's text format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pgdyno.workload.synthesis.distribution import Places
from pgdyno.workload.synthesis.fillers import Fill
from pgdyno.workload.synthesis.keys import Follower
from pgdyno.workload.synthesis.ordered_values import OrderedValues
from pgdyno.workload.synthesis.ordering import Integers, Ordering, fractions, shuffled

NULL = "\\N"
_BLOCK_BYTES = 8 << 20  # of text: arbitrary; large enough for a negligible fixed cost per block
_MOST_ROWS = 20_000


@dataclass(frozen=True)
class Determined:
    """Dependency on part number ``by`` with ``values`` distinct values, in a share ``degree`` of the rows."""

    by: int
    values: int
    degree: float


@dataclass(frozen=True)
class DrawnColumns:
    """Columns of a table that are drawn together.

    ``ordering`` gives the ranks of rows that are not NULL; ``follower`` and ``determined`` derive them from
    another part, given by its number. If ``values`` is None, ``fill`` generates the texts, or all rows are
    NULL if it is None too. ``nulls`` is the number of rows with NULL.
    """

    columns: tuple[str, ...]
    seed: int
    values: OrderedValues | None = None
    ordering: Ordering | None = None
    follower: tuple[int, Follower] | None = None
    determined: Determined | None = None
    fill: Fill | None = None
    nulls: int = 0


@dataclass(frozen=True)
class TableRows:
    """The rows of a table; ``width_bytes`` is the approximate size of one.

    Parts come after those that they depend on.
    """

    rows: int
    parts: tuple[DrawnColumns, ...]
    width_bytes: int

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names in the order of the rows' fields."""
        return tuple(name for part in self.parts for name in part.columns)

    def blocks(self, emptied: frozenset[str] = frozenset()) -> Iterator[tuple[int, bytes]]:
        """Yield blocks as a number of rows and their text, with NULL in columns that are ``emptied``."""
        length = max(1, min(_MOST_ROWS, _BLOCK_BYTES // max(1, self.width_bytes)))
        seen = [0] * len(self.parts)
        for first in range(0, self.rows, length):
            positions = np.arange(first, min(first + length, self.rows), dtype=np.int64)
            yield len(positions), _block(self, positions, seen, emptied)


def _block(table: TableRows, positions: Integers, seen: list[int], emptied: frozenset[str]) -> bytes:
    places: list[Places | None] = []
    columns: list[Sequence[str]] = []
    for number, part in enumerate(table.parts):
        missing = _missing(part, table.rows, positions)
        placed, texts = _texts(part, positions, missing, seen[number], places, table.rows)
        seen[number] += len(positions) - int(missing.sum())
        places.append(placed)
        columns += _with_nulls(texts, missing, len(part.columns))
    for place, name in enumerate(table.columns):
        if name in emptied:
            columns[place] = [NULL] * len(positions)
    lines = map("\t".join, zip(*columns, strict=True)) if columns else [""] * len(positions)
    return ("\n".join(lines) + "\n").encode()


def _missing(part: DrawnColumns, rows: int, positions: Integers) -> NDArray[np.bool_]:
    """Return a mask of the rows with NULL, exactly ``part.nulls`` in the whole table."""
    if part.values is None and part.fill is None:
        return np.ones(len(positions), dtype=np.bool_)
    if part.nulls == 0:
        return np.zeros(len(positions), dtype=np.bool_)
    return shuffled(positions, rows, part.seed) < part.nulls


def _texts(
    part: DrawnColumns,
    positions: Integers,
    missing: NDArray[np.bool_],
    before: int,
    places: Sequence[Places | None],
    rows: int,
) -> tuple[Places | None, list[list[str]]]:
    """Return the places of rows, None without values, and the texts of rows that are not NULL.

    Parts that others depend on have places for all rows.
    """
    if part.values is None:
        return None, [[] if part.fill is None else part.fill(positions[~missing])]
    made = part.values.distribution
    if not made.rows:
        return None, [[] for _ in part.columns]
    if part.follower is not None:
        by, follower = part.follower
        leading = places[by]
        assert leading is not None  # noqa: S101 — parts come after those that they depend on
        ranks = follower.ranks(leading)
    elif part.ordering is not None and part.ordering.rows == rows:
        ranks = part.ordering.ranks(positions)
    else:
        assert part.ordering is not None  # noqa: S101 — a part has a follower or an ordering
        ranks = np.zeros(len(positions), dtype=np.int64)
        ranks[~missing] = part.ordering.ranks(before + np.arange(len(positions) - int(missing.sum())))
    if part.determined is not None:
        ranks = _determined(part, ranks, positions, places)
    placed = made.places(ranks)
    shown = placed if not missing.any() else _some(placed, ~missing)
    return placed, part.values.render(shown)


def _determined(
    part: DrawnColumns, ranks: Integers, positions: Integers, places: Sequence[Places | None]
) -> Integers:
    """Return ranks that depend on another part's values in a share of the rows."""
    assert part.determined is not None  # noqa: S101 — the caller has checked
    assert part.values is not None  # noqa: S101 — it has ranks
    by = places[part.determined.by]
    assert by is not None  # noqa: S101 — parts come after those that they depend on
    made = part.values.distribution
    # Determined values are spread evenly over all ranks, which roughly preserves their frequencies.
    each = made.rows / max(1, part.determined.values)
    theirs = ((shuffled(by.ordinal, part.determined.values, part.seed) + 0.5) * each).astype(np.int64)
    follows = fractions(positions, part.seed + 1) < part.determined.degree
    return np.where(follows, theirs, ranks)


def _some(places: Places, chosen: NDArray[np.bool_]) -> Places:
    return Places(
        places.segment[chosen],
        places.within[chosen],
        places.ordinal[chosen],
        places.repeat[chosen],
        places.repeats[chosen],
    )


def _with_nulls(texts: list[list[str]], missing: NDArray[np.bool_], columns: int) -> list[Sequence[str]]:
    if not missing.any():
        return [*map(_escaped, texts)]
    if missing.all():
        return [[NULL] * len(missing) for _ in range(columns)]
    found: list[Sequence[str]] = []
    for column in texts:
        whole = np.full(len(missing), NULL, dtype=object)
        whole[~missing] = np.array(_escaped(column), dtype=object)
        found.append(whole.tolist())
    return found


def _escaped(texts: list[str]) -> list[str]:
    """Return texts escaped for COPY: labels and kept texts may contain special characters."""
    joined = "\x00".join(texts)
    if not any(one in joined for one in "\\\t\n\r"):
        return texts
    escapes = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
    return joined.translate(escapes).split("\x00")
