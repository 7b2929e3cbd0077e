"""wal_device: whether the WAL has a disk of its own; reported only.

What it does:
    Says on which disks the data and the WAL lie, and how it is found out whether another would be faster. It
    changes nothing: moving the WAL takes a stop of the server and a disk.

Why it helps:
    A commit waits until its WAL is on the disk. On a disk of its own it does not queue behind a checkpoint's
    writes and the reads of others.

When it hurts:
    Two disks are two that can fail: without either the server is lost. Two volumes that one virtual disk, or
    one limit on operations per second, lies below gain nothing.

How it is verified:
    pg_test_fsync in each place: its figures say how long one commit waits there at least.

How it is undone:
    Nothing is changed. By hand: stop the server, move the directory back in place of the link, start it.

Evidence:
    PostgreSQL's manual advises it where the disk is what limits. No figure of our own yet.

References:
    https://www.postgresql.org/docs/current/wal-internals.html
    https://www.postgresql.org/docs/current/pgtestfsync.html
    https://www.postgresql.org/docs/current/app-initdb.html#APP-INITDB-OPTION-WALDIR
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    Risk,
    Skipped,
    detect_report,
    verify_files,
)
from pgdyno.model.hosts.host import Mount

MOUNTS = "host.mounts"
DIRECTORY = "server.data_directory"  # where it is unknown, the host tells the mount of the root

LEVER = Lever(
    name="wal_device",
    title="a separate disk for the WAL",
    layer=Layer.SYSTEM,
    risk=Risk.RESTART,
    maturity=Maturity.PREVIEW,
    facts=(MOUNTS, DIRECTORY),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report, with the commands that measure a commit's wait."""
    places, wal = _places(ctx), f"{ctx.known(DIRECTORY)}/pg_wal"
    if _is_in_use(ctx):
        return Skipped(LEVER.name, f"reported only: the data lie on {places[0]}, the WAL on {places[1]}")
    return Skipped(
        LEVER.name,
        f"reported only: the WAL lies on {places[0]} with the data; what a commit waits for there, and on "
        "another disk, says pg_test_fsync -f FILE, with FILE on the disk and outside the data directory, "
        f"while nothing else writes. To move it: stop the server, mv {wal} there, ln -s from there to {wal}",
    )


def _places(ctx: PlanContext) -> tuple[str, ...]:
    """Return the disk of the data, and after it that of the WAL if it is another."""
    mounts: Sequence[Mount] = ctx.known(MOUNTS)
    return tuple(dict.fromkeys(mount.disk.or_else(mount.device) for mount in mounts))


def _is_in_use(ctx: PlanContext) -> bool:
    return len(_places(ctx)) > 1


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
