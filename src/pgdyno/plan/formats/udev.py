"""Udev rules: planned changes of disks (scheduler, read-ahead, requests) and network interfaces.

A rule is applied when the device appears, at boot or later. Source: udev(7).
"""

from __future__ import annotations

from pgdyno.base.text import counted
from pgdyno.model.plans.plan import Change, Plan, PlanLine
from pgdyno.plan.formats._contract import Format, comments, explanation, joined
from pgdyno.plan.formats._expressible import kernel_path, plain
from pgdyno.plan.formats._places import Place, device_file, elsewhere, former_value, head_of, lines_in
from pgdyno.postgres.server import Server

FORMAT = Format("udev", "udev rules for disks and network interfaces")
_LANGUAGE = "a udev rule"
PATH = "/etc/udev/rules.d/60-pgdyno.rules"
RELOAD = "udevadm control --reload"
TRIGGER = "udevadm trigger --action=change --subsystem-match=block --subsystem-match=net"


def render(plan: Plan, server: Server) -> str:
    """Return the rules. Comments list the changes that belong in other places."""
    lines = lines_in(plan, Place.UDEV)
    head = [
        f"pgdyno: {counted(len(lines), 'value')} for the machine of PostgreSQL {server.version}.",
        f"Install as {PATH}, then: {RELOAD} && {TRIGGER}",
        "Undo: delete the file, then restart the machine, or write the former values named below.",
        "With several disks, their names may change from boot to boot. Then match a serial number:",
        'ENV{ID_SERIAL}=="…" instead of KERNEL; udevadm info --query=property --name=DEVICE shows it.',
    ]
    return joined(comments(head_of(plan, head)), rules(plan), comments(elsewhere(plan, lines)))


def rules(plan: Plan) -> str:
    """Return only the rules, each below its explanation."""
    return "\n\n".join(map(_block, lines_in(plan, Place.UDEV)))


def _block(line: PlanLine) -> str:
    undo = f"delete this file; until the next restart: {former_value(line.change)}"
    return f"{comments(explanation(line, undo))}\n{rule(line.change)}"


def rule(change: Change) -> str:
    """Return a change as a rule. An interface renamed at boot has the action ``move``.

    Percent and dollar signs start substitutions in rules. Raises: FormatError for inexpressible values.
    """
    file = device_file(kernel_path(change.key, _LANGUAGE))
    value = plain(change.value, _LANGUAGE, refused='"\\').replace("%", "%%").replace("$", "$$")
    assert file is not None  # noqa: S101 — its place is a udev rule
    actions = "add|change|move" if file.subsystem == "net" else "add|change"
    return (
        f'ACTION=="{actions}", SUBSYSTEM=="{file.subsystem}", KERNEL=="{file.device}", '
        f'ATTR{{{file.attribute}}}="{value}"'
    )
