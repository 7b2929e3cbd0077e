"""A database's tables as its catalogue and the planner's statistics describe them: no row is read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ColumnStatistics:
    """A row of pg_stats; values are the server's texts of them.

    ``distinct`` as there: a count if positive, a share of the rows if negative, 0 if it is not known.
    ``width_bytes`` is the average on disk, with the header of a varying length. ``correlation`` None: the
    type has no order. Of arrays, ``elements`` are the most frequent elements, ``element_count`` their mean.
    """

    null_fraction: float
    width_bytes: int
    distinct: float
    common: tuple[str, ...] = ()
    frequencies: tuple[float, ...] = ()
    bounds: tuple[str, ...] = ()
    correlation: float | None = None
    elements: tuple[str, ...] = ()
    element_frequencies: tuple[float, ...] = ()
    element_count: float | None = None


@dataclass(frozen=True)
class TableColumn:
    """A column. ``type`` is the name of its type, of domains that of the type below, ``modifier`` its length.

    ``labels`` are those of an enumeration, ``element`` is the type of an array's elements. ``is_readable``:
    the role may read it, without which pg_stats hides its statistics.
    """

    name: str
    type: str
    modifier: int
    is_not_null: bool
    is_readable: bool = True
    labels: tuple[str, ...] = ()
    element: str | None = None
    statistics: ColumnStatistics | None = None


@dataclass(frozen=True)
class ForeignKey:
    """Columns of a table that have values of another one's, or are NULL."""

    name: str
    columns: tuple[str, ...]
    table: int
    referenced: tuple[str, ...]


@dataclass(frozen=True)
class Dependency:
    """Of extended statistics: the share of rows in which ``columns`` determine that of ``determined``."""

    columns: tuple[str, ...]
    determined: str
    degree: float


@dataclass(frozen=True)
class StoredTable:
    """A table with rows of its own, or one partitioned by hash, whose rows find their partitions.

    ``rows`` None: it has some, and was never analysed. ``size_bytes`` counts indexes and long values too.
    ``columns`` are without generated ones. ``keys`` are the columns of unique indexes, the primary key's
    first. ``literals`` are texts that its constraints, defaults and indexes name. ``parent`` is the
    partitioned table that it is a part of, in the end; else itself. ``hidden`` are extended statistics that
    the server shows to its owner alone.
    """

    oid: int
    schema: str
    name: str
    rows: float | None
    size_bytes: int
    columns: tuple[TableColumn, ...]
    keys: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    literals: frozenset[str] = frozenset()
    parent: int = 0
    hidden: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """How people name it."""
        return f"{self.schema}.{self.name}"
