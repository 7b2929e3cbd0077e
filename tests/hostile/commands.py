"""The commands that are attacked: all that connect to a server, and the load generator."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from pgdyno.plan.advise import format_names

QUERY = "SELECT count(*) FROM pg_class WHERE relname > 'p'"
TABLE = "CREATE TABLE public.attacked AS SELECT n, 'it''s ' || n AS what FROM generate_series(1, 1000) n"
"""Makes the table that ``_WORKLOAD`` is about; ANALYZE makes the statistics."""
_WORKLOAD = Path(__file__).with_name("workload.toml")
_DSN = ("--dsn", "{dsn}")

READING: dict[str, tuple[str, ...]] = {
    "inspect": ("inspect", *_DSN),
    "inspect --json": ("inspect", "--json", *_DSN),
    **{f"advise --format {name}": ("advise", "--format", name, *_DSN) for name in format_names()},
    "levers": ("levers", *_DSN),
    "levers --json": ("levers", "--json", *_DSN),
    "explain-degree": ("explain-degree", *_DSN, QUERY),
    "explain-degree --workload": ("explain-degree", *_DSN, "--workload", str(_WORKLOAD)),
    "status": ("status", *_DSN),
    "profile --json": ("profile", "--json", "--for", "8s", *_DSN),
    "apply --dry-run": ("apply", "--dry-run", "--layers", "all", *_DSN),
}
"""Commands that change nothing, by their names."""


def changing(restart: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the commands that change a server, which ``restart`` restarts."""
    allowed = ("--allow-restart", "--restart-command", shlex.join(restart))
    return {"apply": ("apply", *_DSN, *allowed), "revert": ("revert", "--all", *_DSN, *allowed)}


LOADING: dict[str, tuple[str, ...]] = {
    "run clients --allow-load": (
        "run", "clients", *_DSN, "--allow-load", "--budget", "20s", "--clients", "1",
    ),
    "accelerate": ("accelerate", *_DSN, "--as-booted", "--budget", "30s"),
    "accelerate --allow-load": (
        "accelerate", *_DSN, "--as-booted", "--allow-load", "--yes", "--budget", "30s",
    ),
}  # fmt: skip
"""Commands that put a server under load, or one beside it. Minutes each, if nothing keeps them from it."""

GENERATING: dict[str, tuple[str, ...]] = {
    "driver run pgbench-select": (
        "run", "pgbench-select", "{dsn}", "--clients=2", "--time=2", "--answer-limit=5",
    ),
    "driver run sysbench-read-write": (
        "run", "sysbench-read-write", "{dsn}", "--option=tables=1", "--option=table_size=1000", "--time=2",
        "--answer-limit=5",
    ),
    "driver load sysbench-read-write": (
        "load", "sysbench-read-write", "{dsn}", "--option=tables=1", "--option=table_size=1000",
        "--answer-limit=5",
    ),
}  # fmt: skip
"""Command lines of pgdyno-driver."""
