"""The defaults of Azure Database for PostgreSQL, flexible server, where they differ from PostgreSQL's.

The published formula for max_connections takes MiB, although it states GiB: the published table shows that.

Source: MicrosoftDocs/azure-databases-docs, articles/postgresql/flexible-server/includes, at 0762f95:
param-18-*.md (2025-05-05) and server-parameters-azure-notes-*.md (2024-10-07).
"""

from __future__ import annotations

import math

from pgdyno.plan.peers._contract import GB, MB, Peer, PeerFacts

_PAGE_KB = 8
_WAL_MB = (
    (8 << 40, 65536), (2 << 40, 40960), (1 << 40, 30720), (512 * GB, 25600),
    (256 * GB, 20480), (128 * GB, 12288), (64 * GB, 4096), (32 * GB, 2048),
)  # fmt: skip
"""max_wal_size in MB by minimum disk size in bytes, descending."""


def settings(facts: PeerFacts) -> dict[str, str]:
    """Return the initial values of a server of this size."""
    gib = facts.memory_bytes / GB
    buffers = int(gib * (16384 if gib <= 2 else 32768))
    return {
        "shared_buffers": f"{buffers * _PAGE_KB}kB",
        "effective_cache_size": f"{int(gib * 131072 - buffers) * _PAGE_KB}kB",
        "maintenance_work_mem": f"{max(1, int(82.5 * math.log(gib) + 40)) * 1024}kB",
        "max_connections": str(_connections(facts.memory_bytes)),
        "random_page_cost": "2",
        "checkpoint_timeout": "600",
        "checkpoint_completion_target": "0.9",
        "min_wal_size": "80MB",
        **_max_wal_size(facts.disk_bytes),
        "bgwriter_delay": "20",
        **({"wal_compression": "zstd"} if facts.major >= 18 else {}),
    }


def _connections(memory_bytes: int) -> int:
    if memory_bytes <= 2 * GB:
        return max(1, int(memory_bytes / GB * 25))
    return min(int(memory_bytes / MB * 0.1049164697034809), 5000)


def _max_wal_size(disk_bytes: int | None) -> dict[str, str]:
    """Return the value for the largest offered disk that is not larger; empty below 32 GiB."""
    known = next((size for limit, size in _WAL_MB if disk_bytes is not None and disk_bytes >= limit), None)
    return {} if known is None else {"max_wal_size": f"{known}MB"}


PEER = Peer(
    title="Azure Database for PostgreSQL, flexible server",
    source="MicrosoftDocs/azure-databases-docs at 0762f95, pages of 2024-10-07 and 2025-05-05",
    settings=settings,
)
