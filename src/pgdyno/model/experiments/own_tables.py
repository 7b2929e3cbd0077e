"""Names of loads whose clients have tables of their own.

The number of tables is in the name: it decides how many rows each has, so that loads on other numbers of
tables are other work.
"""

from __future__ import annotations

_WORDS = "own tables"


def name_on_own_tables(load: str, count: int) -> str:
    """Return the name of a load on N clients' own tables."""
    return f"{load}, {count} {_WORDS}"


def name_on_shared_tables(load: str) -> str | None:
    """Return the name of the same load on shared tables; None for one that is on them itself."""
    name, _, words = load.rpartition(", ")
    return name if words.endswith(f" {_WORDS}") else None
