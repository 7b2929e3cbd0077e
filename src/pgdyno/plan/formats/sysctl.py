"""A file for sysctl.d: the plan's changes in /proc/sys, by sysctl name.

Source: sysctl.d(5), sysctl.conf(5).
"""

from __future__ import annotations

from pgdyno.host.kernel_file import SYSCTL_ROOT
from pgdyno.model.plans.plan import Change, Plan, PlanLine
from pgdyno.plan.formats._comments import comments, joined
from pgdyno.plan.formats._contract import Format, counted, explanation
from pgdyno.plan.formats._expressible import kernel_path, plain
from pgdyno.plan.formats._places import Place, elsewhere, former_value, head_of, lines_in
from pgdyno.postgres.server import Server

FORMAT = Format("sysctl", "file for /etc/sysctl.d")
_LANGUAGE = "sysctl.d"
PATH = "/etc/sysctl.d/60-pgdyno.conf"


def render(plan: Plan, server: Server) -> str:
    """Return the file. Values of other places are named in comments, with where they belong."""
    lines = lines_in(plan, Place.SYSCTL)
    head = [
        f"pgdyno: {counted(len(lines), 'sysctl')} of the machine of PostgreSQL {server.version}.",
        f"Install as {PATH}, then: sysctl -p {PATH}",
        "Undo: delete the file, then restart the machine, or write the former values named below.",
        "Files in sysctl.d whose names sort after this one's win over it; so does TuneD where it is active.",
    ]
    return joined(comments(head_of(plan, head)), settings(plan), comments(elsewhere(plan, lines)))


def settings(plan: Plan) -> str:
    """Return the settings alone, each below its explanation."""
    return "\n\n".join(map(_block, lines_in(plan, Place.SYSCTL)))


def _block(line: PlanLine) -> str:
    undo = f"delete this file; until the next restart: {former_value(line.change)}"
    return f"{comments(explanation(line, undo))}\n{setting(line.change)}"


def setting(change: Change) -> str:
    """Return a change as a line of sysctl.d. Raises: FormatError for an inexpressible value."""
    return f"{sysctl_name(kernel_path(change.key, _LANGUAGE))} = {plain(change.value, _LANGUAGE)}"


def sysctl_name(path: str) -> str:
    """Return a file's name as sysctl.d takes it: a dot within a name, eth0.100, is written as a slash."""
    return ".".join(part.replace(".", "/") for part in path.removeprefix(SYSCTL_ROOT).split("/"))
