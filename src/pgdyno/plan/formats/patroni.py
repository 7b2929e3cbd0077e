"""Patroni's dynamic configuration, to be merged by ``patronictl edit-config``.

Source: Patroni's documentation, "Patroni configuration" and "patronictl edit-config".
"""

from __future__ import annotations

from pgdyno.model.plans.plan import Plan, PlanLine
from pgdyno.plan.formats._contract import Format, restart_settings, setting_lines, summary
from pgdyno.plan.formats._targets import select, target
from pgdyno.plan.formats._yaml import Entry, below, document
from pgdyno.postgres.server import STANDBY_FIRST_SETTINGS, Server

FORMAT = Format("patroni", "Patroni's dynamic configuration")


def render(plan: Plan, server: Server) -> str:
    """Return the configuration. Raises: SettingError for a setting that the server does not know."""
    selection = select(plan, server, target("patroni"))
    taken = selection.plan
    head = [
        f"pgdyno: {summary(taken, server)}.",
        "Apply: patronictl edit-config --apply FILE; it prompts, then merges it into the cluster's settings.",
        "Undo: the same with the former values, or with null for a setting that the cluster did not have.",
        "It overrides postgresql.conf. ALTER SYSTEM overrides it, except what Patroni passes as arguments.",
        *_restart(taken),
    ]
    entries = (
        Entry(line.change.key, line.change.value, selection.explain(line, _undo(line)))
        for line in setting_lines(taken)
    )
    return document(head, below(("postgresql", "parameters"), entries), selection.left_out)


def _undo(line: PlanLine) -> str:
    return (
        f'"{line.change.current}" again, or null if the cluster did not have it'
        if line.change.current
        else "null"
    )


def _restart(plan: Plan) -> tuple[str, ...]:
    """Return how to restart, and the order for settings that must not be lower on a standby."""
    restarts = restart_settings(plan)
    if not restarts:
        return ()
    order = [name for name in restarts if name in STANDBY_FIRST_SETTINGS]
    how = f"Restart for {', '.join(restarts)}: patronictl restart CLUSTER (systemctl might fail over)."
    if not order:
        return (how,)
    return (how, f"{', '.join(order)}: increase on standbys first, decrease on the primary first.")
