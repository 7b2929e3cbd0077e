"""Tables of a database, the foreign keys between them, and rows that a sample takes of a table."""

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
