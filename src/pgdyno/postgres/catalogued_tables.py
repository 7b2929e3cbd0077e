"""A database's tables as its catalogue and the planner's statistics describe them: no row is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Relation:
    """A table by its name. ``has_parts``: it is partitioned, and its rows are those of its partitions."""

    schema: str
    name: str
    has_parts: bool = False

    @property
    def path(self) -> str:
        """Its name for people."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class KeyColumn:
    """A column of a foreign key or of the key at its end; ``type`` in SQL, of domains the type below."""

    name: str
    type: str


@dataclass(frozen=True)
class Link:
    """A foreign key. ``table`` and ``target_table`` are those of its ends: of a partition, the root.

    ``operators`` compare a column of the key with one of the foreign key, in SQL. ``is_required``: none of
    its columns is ever NULL. ``is_temporal``: several rows together have the period of one (PostgreSQL 18).
    ``is_valid``: every row was checked; else some may refer to nothing.
    """

    name: str
    table: int
    source: Relation
    columns: tuple[KeyColumn, ...]
    target_table: int
    target: Relation
    key: tuple[KeyColumn, ...]
    operators: tuple[str, ...]
    is_required: bool = True
    is_cascading: bool = False
    is_temporal: bool = False
    is_valid: bool = True


@dataclass(frozen=True)
class LinkedTable:
    """A table with the rows of its partitions.

    ``rows`` is the server's estimate, None where it has none. ``columns`` are without generated ones. ``key``
    tells rows apart: the primary key, else a unique index; nothing if there is neither.
    """

    oid: int
    relation: Relation
    rows: float | None
    size_bytes: int
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Its name for people."""
        return self.relation.path


@dataclass(frozen=True)
class AllRows:
    """Every row."""


@dataclass(frozen=True)
class ByHash:
    """The share of the rows that a hash of these columns falls to; without any, of the row's place."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class ByLinkHash:
    """Rows whose foreign key has a hash within the share, as the key at its end has it there."""

    link: Link


@dataclass(frozen=True)
class OfChosen:
    """Rows whose foreign key refers to a row that is chosen there, by any of these."""

    link: Link
    chosen: tuple[Choice, ...]


@dataclass(frozen=True)
class Unlinked:
    """Of the rows whose foreign key is NULL, the share that a hash falls to."""

    link: Link
    own: ByHash


Choice: TypeAlias = AllRows | ByHash | ByLinkHash | OfChosen | Unlinked


@dataclass(frozen=True)
class Column:
    """A column. ``is_key``: no two rows have the same value, by an index over it alone.

    ``is_visible``: its table is found by its name without a schema. ``type`` is as format_type shows it.
    ``references`` is the path of the column whose values it may have alone, by a foreign key; None: any.
    """

    schema: str
    table: str
    name: str
    type: str
    is_key: bool
    is_visible: bool
    references: str | None = None

    @property
    def path(self) -> str:
        """How a workload names it."""
        return f"{self.schema}.{self.table}.{self.name}"

    @property
    def is_integer(self) -> bool:
        """Whether its values are whole numbers."""
        return self.type in {"smallint", "integer", "bigint"}


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
