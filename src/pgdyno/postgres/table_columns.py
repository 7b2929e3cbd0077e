"""Columns of a database's tables, as far as parameters of statements are drawn from them."""

from __future__ import annotations

from dataclasses import dataclass


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
