"""A file for sysctl.d: the plan's changes in /proc/sys, by sysctl name.

Source: sysctl.d(5), sysctl.conf(5).
"""

from __future__ import annotations

from pgdyno.base.text import counted
from pgdyno.host.kernel_file import SYSCTL_ROOT
from pgdyno.model.plans.plan import Change, Plan, PlanLine
from pgdyno.plan.formats._contract import Format, comments, explanation, joined
from pgdyno.plan.formats._expressible import kernel_path, plain
from pgdyno.plan.formats._places import Place, elsewhere, former_value, head_of, lines_in
from pgdyno.postgres.server import Server

FORMAT = Format("sysctl", "file for /etc/sysctl.d")
_LANGUAGE = "sysctl.d"
PATH = "/etc/sysctl.d/60-pgdyno.conf"


def render(plan: Plan, server: Server) -> str:
    """Return the file. Comments list the changes that belong in other places."""
    lines = lines_in(plan, Place.SYSCTL)
    head = [
        f"pgdyno: {counted(len(lines), 'sysctl')} for the machine of PostgreSQL {server.version}.",
        f"Install as {PATH}, then: sysctl -p {PATH}",
        "Undo: delete the file, then restart the machine, or write the former values named below.",
        "Files in sysctl.d with names that sort after this one override it; so does TuneD if active.",
    ]
    return joined(comments(head_of(plan, head)), settings(plan), comments(elsewhere(plan, lines)))


def settings(plan: Plan) -> str:
    """Return only the settings, each below its explanation."""
    return "\n\n".join(map(_block, lines_in(plan, Place.SYSCTL)))


def _block(line: PlanLine) -> str:
    undo = f"delete this file; until the next restart: {former_value(line.change)}"
    return f"{comments(explanation(line, undo))}\n{setting(line.change)}"


def setting(change: Change) -> str:
    """Return a change as a line of sysctl.d. Raises: FormatError for an inexpressible value."""
    return f"{sysctl_name(kernel_path(change.key, _LANGUAGE))} = {plain(change.value, _LANGUAGE)}"


def sysctl_name(path: str) -> str:
    """Return a file's name in sysctl.d's form: a dot within a component, eth0.100, is written as a slash."""
    return ".".join(part.replace(".", "/") for part in path.removeprefix(SYSCTL_ROOT).split("/"))
