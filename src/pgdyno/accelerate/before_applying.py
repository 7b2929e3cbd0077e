"""Consequences of applying a plan to a running server, described in sentences.

They are reported before measuring and before the change.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.base import numbers
from pgdyno.base.facts import Unknown
from pgdyno.model.plans.plan import Plan
from pgdyno.plan import formats
from pgdyno.plan.engine.effective import EffectiveSettings, owner_of
from pgdyno.postgres.server import ConfigurationManager, Server

_AWAY_S = 5.0  # a guess at a stop and a start; measured on idle machines: below 2 s
_WRITTEN_BYTES_PER_S = 200e6  # a guess at how fast a checkpoint writes
_FORMATS = {
    "Patroni": "patroni",
    "CloudNativePG": "cnpg",
    "Amazon RDS or Aurora": "rds",
    "Azure Database for PostgreSQL": "azure",
    "Google Cloud SQL": "cloudsql",
}
"""In which format a plan is handed to who manages a configuration; to all others as a file of settings."""


def before_applying(plan: Plan, server: Server) -> tuple[str, ...]:
    """Return a sentence each on restarts, on memory here and on standbys, and on who owns the settings."""
    if not plan.lines:
        return ()
    return (_restart(plan, server), _memory(plan, server), *_owners(plan, server))


def manager_of(server: Server) -> ConfigurationManager | None:
    """Return who manages a server's configuration instead of its files; None if nobody is known to."""
    return next(iter(server.managers), None)


def for_manager(manager: ConfigurationManager, plan: Plan, server: Server) -> str:
    """Return the plan as the manager's users write it down."""
    return formats.load(_FORMATS.get(manager.name, "conf")).render(plan, server)


def _restart(plan: Plan, server: Server) -> str:
    if not plan.needs_restart:
        return "Applying the plan takes a reload and no restart."
    dirty_bytes = EffectiveSettings(server).size_bytes("shared_buffers")
    longest_s = _AWAY_S + dirty_bytes / _WRITTEN_BYTES_PER_S
    return (
        f"Applying the plan takes one restart: about {_AWAY_S:.0f} s without the server, and up to "
        f"{longest_s:.0f} s if all of its shared_buffers ({numbers.size(dirty_bytes)}) have to be written "
        "first. Both are estimates."
    )


def _memory(plan: Plan, server: Server) -> str:
    proof = plan.memory_proof
    if proof is None:
        return f"Memory: the limit is not known, so nothing is proven. {_standbys(server)}"
    total, limit = numbers.size(proof.total_bytes), numbers.size(proof.limit_bytes)
    return f"Memory: at worst {total} of {limit} on this server. {_standbys(server)}"


def _standbys(server: Server) -> str:
    standbys = server.standbys.value
    if isinstance(standbys, Unknown):
        return f"Whether it has standbys is not known: {standbys.reason}."
    if not standbys:
        return "It has no standbys."
    count = len(standbys)
    return (
        f"It has {count} standby{'' if count == 1 else 's'}, which the plan does not reach: given the same "
        f"settings, {'it takes' if count == 1 else 'each takes'} as much."
    )


def _owners(plan: Plan, server: Server) -> Iterator[str]:
    manager = manager_of(server)
    if manager is not None:
        yield (
            f"{manager.name} manages this configuration ({manager.evidence}): nothing is applied, and the "
            f"plan is written down for it ({manager.how_to_change})."
        )
        return
    for name in plan.settings:
        owner = owner_of(server.settings[name]) if name in server.settings else None
        if owner is not None:
            yield f"{name} is set {owner}."
