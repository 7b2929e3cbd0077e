"""Amazon RDS's default parameter group for PostgreSQL.

Formulas as printed by ``describe-db-parameters``, in its units. DBInstanceClassMemory is the machine's memory
minus the service's own use; here it is all of the stated memory.

Huge pages are on by default for all classes but micro, small and medium, which have at most 4 GB ("Huge pages
for RDS for PostgreSQL" in Amazon's user guide, read 2026-11-28). The rule ignores that large instances were
observed with max_wal_size = 6 GB although the group has 2 GB: no source states from which size on.

Source: the default parameter group of PostgreSQL 16.1 with the values of two instances (a public benchmark
of 2024-04-24); the same formulas in utrains/rds_migration, module/db_params.tfvars (PostgreSQL 11) and in
AWS's Prescriptive Guidance, "Tuning PostgreSQL parameters in Amazon RDS and Amazon Aurora" (2024).
"""

from __future__ import annotations

import math

from pgdyno.plan.peers._contract import GB, Peer, PeerFacts

_PAGE_KB = 8
_MEDIUM_BYTES = 4 * GB


def settings(facts: PeerFacts) -> dict[str, str]:
    """Return the parameter group's values for an instance of this size."""
    memory = facts.memory_bytes
    return {
        "shared_buffers": f"{memory // 32768 * _PAGE_KB}kB",
        "effective_cache_size": f"{memory // 16384 * _PAGE_KB}kB",
        "maintenance_work_mem": f"{max(memory * 1024 // 63963136, 65536)}kB",
        "max_connections": str(min(memory // 9531392, 5000)),
        "checkpoint_completion_target": "0.9",
        "max_wal_size": "2048MB",
        "min_wal_size": "192MB",
        "max_worker_processes": str(max(facts.cpus * 2, 8)),
        "max_parallel_workers": str(max(facts.cpus // 2, 8)),
        "autovacuum_max_workers": str(max(memory // 64371566592, 3)),
        "autovacuum_vacuum_cost_limit": str(_cost_limit(memory)),
        "autovacuum_analyze_scale_factor": "0.05",
        "autovacuum_vacuum_scale_factor": "0.1",
        "autovacuum_naptime": "15",
        **({"huge_pages": "on"} if memory > _MEDIUM_BYTES else {}),
        **({"autovacuum_work_mem": f"{max(memory // 32768, 65536)}kB"} if facts.major >= 16 else {}),
    }


def _cost_limit(memory: int) -> int:
    """Return GREATEST({log(DBInstanceClassMemory/21474836480)*600},200); the log has base 2."""
    return max(int(math.log2(memory / 21474836480) * 600), 200)


PEER = Peer(
    title="Amazon RDS, default parameter group",
    source="default parameter group of PostgreSQL 16.1, 2024-04-24",
    settings=settings,
)
