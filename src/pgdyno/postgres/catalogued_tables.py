"""A database's tables as described by its catalogs and planner statistics, and samples of columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Relation:
    """A table's name. ``has_parts``: it is partitioned, so its rows are in its partitions."""

    schema: str
    name: str
    has_parts: bool = False

    @property
    def path(self) -> str:
        """The schema-qualified name for display, unquoted."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class KeyColumn:
    """A column of a foreign key or of the referenced key; ``type`` in SQL, for domains the base type."""

    name: str
    type: str


@dataclass(frozen=True)
class Link:
    """A foreign key. ``table`` and ``target_table`` are the OIDs of both ends; for partitions, of the root.

    ``operators`` compare a referenced column with a referencing one, in SQL. ``is_required``: all referencing
    columns are NOT NULL. ``is_temporal``: several referenced rows together may cover a row's period
    (PostgreSQL 18). ``is_valid``: every row was checked; otherwise some may reference nothing.
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
    """A table, including the rows of its partitions.

    ``rows`` is the server's estimate, None if it has none. ``columns`` excludes generated columns. ``key``
    identifies rows: the primary key, else a unique index; empty if the table has neither.
    """

    oid: int
    relation: Relation
    rows: float | None
    size_bytes: int
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The schema-qualified name for display, unquoted."""
        return self.relation.path


@dataclass(frozen=True)
class AllRows:
    """Every row."""


@dataclass(frozen=True)
class ByHash:
    """Rows sampled by a hash of these columns; of the row's physical location if there are none."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class ByLinkHash:
    """Rows sampled by a hash of the foreign key, equal to the hash of the referenced key."""

    link: Link


@dataclass(frozen=True)
class OfChosen:
    """Rows whose foreign key references a row selected in the other table by any of ``chosen``."""

    link: Link
    chosen: tuple[Choice, ...]


@dataclass(frozen=True)
class Unlinked:
    """Rows whose foreign key is NULL, sampled by a hash."""

    link: Link
    own: ByHash


Choice: TypeAlias = AllRows | ByHash | ByLinkHash | OfChosen | Unlinked


@dataclass(frozen=True)
class IndexScan:
    """The server's estimates for a scan in a column's order, by an index that begins with the column.

    ``correlation`` is that of this order with the rows' places in the table, from -1 to 1. An index-only scan
    does not read ``visible_blocks`` of the table.
    """

    rows: float
    table_blocks: float
    visible_blocks: float
    index_blocks: float
    correlation: float

    def rows_in(self, blocks: float, *, is_index_only: bool) -> float:
        """Return the number of rows that a scan from its beginning passes while it reads ``blocks``.

        A row in order is mostly in the block of the row before, which is not read again. The planner weighs
        rows in order and rows at random by the square of the correlation, too.
        """
        in_order = self.correlation**2
        in_table = in_order * self.table_blocks / self.rows + (1 - in_order)
        if is_index_only:
            in_table *= max(0.0, 1 - self.visible_blocks / self.table_blocks)
        descent = math.ceil(math.log(max(2, self.rows), self._rows_in_index_block))
        return max(0.0, blocks - descent - 1) / (self.index_blocks / self.rows + in_table)

    @property
    def _rows_in_index_block(self) -> float:
        return max(2.0, self.rows / max(1, self.index_blocks - 1))  # the first block is no part of the tree


@dataclass(frozen=True)
class Column:
    """A column. ``is_key``: a unique index on this column alone exists.

    ``is_visible``: the search path finds its table by the unqualified name. ``type`` is format_type's output.
    ``references`` is the path of the column that a single-column foreign key references; None: no such key.
    For a domain, ``type`` is its base type. ``length`` is its largest number of characters; None: any number.
    ``is_required``: it takes no NULL. ``is_checked``: a CHECK constraint names it. ``is_empty``: its table
    has no blocks, and a foreign key references the column.
    ``is_readable``: the role has SELECT on it. ``view`` is the query of a view's column, empty if it was not
    read; None: a table's column. ``scan`` is None if it was not read, or no index begins with the column.
    """

    schema: str
    table: str
    name: str
    type: str
    is_key: bool
    is_visible: bool
    references: str | None = None
    is_readable: bool = True
    view: str | None = None
    scan: IndexScan | None = None
    length: int | None = None
    is_required: bool = False
    is_checked: bool = False
    is_empty: bool = False

    @property
    def path(self) -> str:
        """The column's qualified name, as workloads write it."""
        return f"{self.schema}.{self.table}.{self.name}"

    @property
    def is_integer(self) -> bool:
        """Whether the type is smallint, integer or bigint."""
        return self.type in {"smallint", "integer", "bigint"}


@dataclass(frozen=True)
class ColumnStatistics:
    """A row of pg_stats; values are in the server's text form.

    ``distinct`` as n_distinct: a count if positive, a fraction of the rows if negative, 0 if unknown.
    ``width_bytes`` is the average stored width, including the varlena header. ``correlation`` None: the
    type has no order. For arrays, ``elements`` are the most common elements and ``element_count`` is the
    average number of distinct elements.
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
    """A column. ``type`` is its type's name, for domains the base type's; ``modifier`` is its typmod.

    ``labels`` are an enum's labels; ``element`` is an array's element type. ``is_readable``: the role may
    read the column; otherwise pg_stats hides its statistics.
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
    """A foreign key of a stored table. ``table`` is the OID of the referenced table."""

    name: str
    columns: tuple[str, ...]
    table: int
    referenced: tuple[str, ...]


@dataclass(frozen=True)
class Dependency:
    """A functional dependency from extended statistics: ``columns`` determine ``determined``.

    ``degree`` is the fraction of rows in which they do.
    """

    columns: tuple[str, ...]
    determined: str
    degree: float


@dataclass(frozen=True)
class StoredTable:
    """A plain table or leaf partition, or a whole hash-partitioned table, which routes its own rows.

    ``rows`` None: it has rows but was never analysed. ``size_bytes`` includes indexes and TOAST.
    ``columns`` excludes generated columns. ``keys`` are the columns of unique indexes and of exclusion
    constraints on equality and overlap, the primary key's first. ``literals`` are string constants in its
    constraints, defaults and indexes. ``parent`` is the OID of the topmost partitioned table, or the table's
    own. ``hidden`` are extended statistics that the server shows only to the table's owner.
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
        """The schema-qualified name for display, unquoted."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class Policy:
    """A condition of a table's row-level security, in SQL; empty if it was not read, because of a lock."""

    schema: str
    table: str
    condition: str


@dataclass(frozen=True)
class ColumnValues:
    """Values of a column. ``dense``: the lowest and highest of integer keys with few gaps.

    ``sample``: values of random rows, as text, of about ``rows`` that have one. ``highest``: that of an
    integer key. ``unreadable`` is the number of values left out of the sample because they are not UTF-8.
    """

    sample: tuple[str, ...] = ()
    dense: tuple[int, int] | None = None
    highest: int | None = None
    unreadable: int = 0
    rows: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether any values are known."""
        return bool(self.sample) or self.dense is not None
