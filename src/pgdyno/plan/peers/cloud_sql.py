"""The defaults of Google Cloud SQL for PostgreSQL that are published as a share of memory.

All other settings keep PostgreSQL's defaults: Cloud SQL's are the same, or published without a rule.

Source: its documentation, "Configure database flags" (effective_cache_size: 40 % of the memory) and "Manage
memory usage" (shared_buffers: 33 %); read on 2026-11-25.
"""

from __future__ import annotations

from pgdyno.plan.peers._contract import KB, Peer, PeerFacts


def settings(facts: PeerFacts) -> dict[str, str]:
    """Return shared_buffers and effective_cache_size."""
    memory_kb = facts.memory_bytes // KB
    return {
        "shared_buffers": f"{memory_kb * 33 // 100}kB",
        "effective_cache_size": f"{memory_kb * 40 // 100}kB",
    }


PEER = Peer(
    title="Google Cloud SQL, as far as published",
    source="documentation of Cloud SQL for PostgreSQL, read on 2026-11-25",
    settings=settings,
)
