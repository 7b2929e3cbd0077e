"""Places that make a host change survive a reboot: every kernel file has exactly one.

Sources: sysctl.d(5), tmpfiles.d(5), udev(7); Linux, Documentation/admin-guide/sysctl/.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from pgdyno.base.text import counted
from pgdyno.host.cache_allocation import RESCTRL
from pgdyno.host.kernel_file import COUPLED, SYSCTL_ROOT, display_name
from pgdyno.host.msr import register_of
from pgdyno.model.plans.plan import Change, Plan, PlanLine
from pgdyno.plan.formats._contract import host_lines, setting_lines
from pgdyno.plan.formats._expressible import kernel_path, plain

_DEVICE = re.compile(r"^/sys/(?:class/)?(block|net)/([^/]+)/(.+)$")
_TMPFILES, _DASH = "tmpfiles.d", "\\x2d"
TMPFILES_PATH = "/etc/tmpfiles.d/60-pgdyno.conf"
_NOTHING = "The plan does not change the machine; --layers all includes the machine."


class Place(Enum):
    """The mechanism that sets a kernel file at boot."""

    SYSCTL = "sysctl.d (--format sysctl)"
    UDEV = "a udev rule (--format udev)"
    TMPFILES = "tmpfiles.d"
    INTERRUPTS = "a script at boot that looks up the interrupt's current number"
    CACHES = "a script that runs after every start of the server"
    REGISTERS = "a script at boot (wrmsr is in msr-tools)"


@dataclass(frozen=True)
class DeviceFile:
    """A file of one device in udev's terms: subsystem, device, attribute."""

    subsystem: str
    device: str
    attribute: str


def place_of(path: str) -> Place:
    """Return the place for a value of this file."""
    if path.startswith(SYSCTL_ROOT):
        return Place.SYSCTL
    if _DEVICE.match(path):
        return Place.UDEV
    if register_of(path) is not None:
        return Place.REGISTERS
    if path.startswith(RESCTRL):
        return Place.CACHES
    return Place.TMPFILES if path.startswith("/sys/") else Place.INTERRUPTS


def device_file(path: str) -> DeviceFile | None:
    """Return the device file of a path; None if it does not belong to a disk or network interface."""
    match = _DEVICE.match(path)
    return None if match is None else DeviceFile(*match.groups())


def lines_in(plan: Plan, *places: Place) -> tuple[PlanLine, ...]:
    """Return the planned host changes that belong in these places."""
    return tuple(line for line in host_lines(plan) if place_of(line.change.key) in places)


def tmpfiles_line(change: Change) -> str:
    """Return a line of tmpfiles.d: ``w`` writes to an existing file.

    There, percent signs start specifiers, backslashes start escapes, and a dash means no argument. Raises:
    FormatError for a path or value that such a line cannot express.
    """
    value = plain(change.value, _TMPFILES).replace("\\", "\\\\").replace("%", "%%")
    return f"w {kernel_path(change.key, _TMPFILES)} - - - - {_DASH if value == '-' else value}"


def former_value(change: Change) -> str:
    """Describe how to restore the original value without a reboot."""
    if change.current == "0" and change.key in COUPLED:
        return f"write the former value of {display_name(COUPLED[change.key])}, which was in effect instead"
    return f"write {change.current} to {change.key}"


def elsewhere(plan: Plan, here: Collection[PlanLine], *, settings: bool = True) -> tuple[str, ...]:
    """Return remarks on the parts of the plan that a file does not contain, with their places.

    ``here`` are the host changes that it contains; ``settings`` False: it contains PostgreSQL's settings too.
    """
    missing = [line for line in host_lines(plan) if line not in here]
    remarks = [remark for line in missing for remark in _belongs(line)]
    count = len(setting_lines(plan))
    if settings and count:
        remarks.append(f"{counted(count, 'PostgreSQL setting')}: --format conf or sql")
    return ("Planned, but not in this file:", *remarks) if remarks else ()


def head_of(plan: Plan, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the head's remarks, with a hint if no host change was planned."""
    return tuple(texts) if host_lines(plan) else (*texts, _NOTHING)


def _belongs(line: PlanLine) -> tuple[str, ...]:
    change, place = line.change, place_of(line.change.key)
    where = f"{display_name(change.key)}: {change.current or 'not set'} → {change.value}, in {place.value}"
    if register := register_of(change.key):
        return f"{where}:", f"wrmsr -p {register.cpu} {register.number:#x} {change.value}"
    return (f"{where}:", tmpfiles_line(change)) if place is Place.TMPFILES else (where,)
