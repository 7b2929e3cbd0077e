"""debug_io_direct: new WAL segments bypass the page cache when filled. Reported only.

What it does:
    Changes nothing. Reports where debug_io_direct = wal_init could be tried in a variant: PostgreSQL 16 or
    later, with the WAL on ext4 and Linux 6.16 or later.

Why it helps:
    A new segment is filled with zeros before use. Since ext4 has large folios (Linux 6.16), buffered writes
    leave folios of 1 MB in the page cache, and each later 8 kB write into one walks all of its 256 blocks.
    Direct I/O creates no such folio.

When it hurts:
    It is a developer option without any guarantees. Direct I/O waits for the disk. A kernel with the fix
    gains nothing. The file system must support direct I/O.

How it is verified:
    pg_settings of the running server.

How it is undone:
    The value found is restored; requires a restart. Segments are the same either way.

Evidence:
    On the kernel mailing list: overwriting 8 kB of a cached large folio takes 4.7 µs with Linux 6.18 instead
    of 0.6 with 6.12. pgdyno, sysbench read-write on two virtual CPUs with Linux 6.18, segments ready
    beforehand: throughput -1.4 % (-4.2 ... 1.5), the slowest 5 % +29 % (-6 ... 79): no gain shown.

References:
    https://www.postgresql.org/docs/current/runtime-config-developer.html#GUC-DEBUG-IO-DIRECT
    https://docs.kernel.org/filesystems/ext4/index.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pgdyno.base.facts import Unknown
from pgdyno.host.host import Mount
from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Risk, Skipped

RELEASE, MOUNTS = "host.kernel.release", "host.mounts"
WAL_INIT = "wal_init"
FILE_SYSTEM = "ext4"
LARGE_FOLIOS_SINCE = (6, 16)

LEVER = Lever(
    name="debug_io_direct",
    title="new WAL segments filled with direct I/O",
    layer=Layer.APPLICATION,
    risk=Risk.RESTART,
    settings=("debug_io_direct",),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report whether it could be tried: where WAL writes go to large folios."""
    if found := ctx.settings.text("debug_io_direct"):
        return LEVER.skip(f"explicitly set to {found}")
    release, mounts = ctx.fact(RELEASE).value, ctx.fact(MOUNTS).value
    if isinstance(release, Unknown) or isinstance(mounts, Unknown):
        return LEVER.skip("the kernel or the server's file systems are not known")
    if (obstacle := _obstacle(release, mounts)) is not None:
        return LEVER.skip(obstacle)
    return LEVER.skip(
        "reported only: a developer option without a measured gain; to try in a variant: "
        f"debug_io_direct={WAL_INIT}",
    )


def _obstacle(release: str, mounts: Sequence[Mount]) -> str | None:
    """Return why its WAL writes do not go to large folios; None if they do."""
    others = [mount.filesystem for mount in mounts if mount.filesystem != FILE_SYSTEM]
    if others:
        return f"it applies to {FILE_SYSTEM}, but the server's data is on {', '.join(others)}"
    number = re.match(r"(\d+)\.(\d+)", release)
    if number is None:
        return f'the kernel release "{release}" contains no version'
    if (int(number[1]), int(number[2])) < LARGE_FOLIOS_SINCE:
        return f"{FILE_SYSTEM} has no large folios in Linux {release}"
    return None
