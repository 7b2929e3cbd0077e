"""Azure's flexible server: the values of its own tables."""

from __future__ import annotations

import pytest
from tests.fix_settings import GB
from tests.unit.plan.peers.test_amazon_rds import of

from pgdyno.plan.peers._contract import PeerFacts


@pytest.mark.parametrize(
    ("gib", "pages", "cache_pages", "maintenance_kb", "connections"),
    [
        (2, 32768, 229376, 99328, 50),
        (4, 131072, 393216, 157696, 429),
        (8, 262144, 786432, 216064, 859),
        (16, 524288, 1572864, 274432, 1718),
        (64, 2097152, 6291456, 392192, 5000),
    ],
)
def test_azure_as_its_own_tables_have_it(
    gib: int, pages: int, cache_pages: int, maintenance_kb: int, connections: int
) -> None:
    settings = of("azure-flexible", PeerFacts(gib * GB, 2, 17, "ssd"))
    assert settings["shared_buffers"] == f"{pages * 8}kB"
    assert settings["effective_cache_size"] == f"{cache_pages * 8}kB"
    assert settings["maintenance_work_mem"] == f"{maintenance_kb}kB"
    assert settings["max_connections"] == str(connections)
    assert "wal_compression" not in settings


@pytest.mark.parametrize(
    ("disk_bytes", "size"),
    [(None, None), (31 * GB, None), (40 * GB, "2048MB"), (128 * GB, "12288MB"), (9 << 40, "65536MB")],
)
def test_azure_sizes_wal_by_the_disk(disk_bytes: int | None, size: str | None) -> None:
    facts = PeerFacts(8 * GB, 2, 18, "ssd", disk_bytes=disk_bytes)
    assert of("azure-flexible", facts).get("max_wal_size") == size
