"""The commands that are attacked: those that connect to a server and change nothing."""

from __future__ import annotations

from pgdyno.app.planning.advise import format_names

QUERY = "SELECT count(*) FROM pg_class WHERE relname > 'p'"
_DSN = ("--dsn", "{dsn}")

READING: dict[str, tuple[str, ...]] = {
    "inspect": ("inspect", *_DSN),
    "inspect --json": ("inspect", "--json", *_DSN),
    **{f"advise --format {name}": ("advise", "--format", name, *_DSN) for name in format_names()},
    "levers": ("levers", *_DSN),
    "levers --json": ("levers", "--json", *_DSN),
    "explain-degree": ("explain-degree", *_DSN, QUERY),
    "status": ("status", *_DSN),
    "apply --dry-run": ("apply", "--dry-run", "--layers", "all", *_DSN),
}
"""Commands that change nothing, by their names."""
