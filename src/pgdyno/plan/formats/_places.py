"""Places that make a host change survive a reboot: every kernel file has one.

Sources: sysctl.d(5), tmpfiles.d(5), udev(7); Linux, Documentation/admin-guide/sysctl/.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from pgdyno.host.cache_allocation import RESCTRL
from pgdyno.host.kernel_file import COUPLED, SYSCTL_ROOT, display_name
from pgdyno.host.msr import register_of
from pgdyno.model.plans.plan import Change, Plan, PlanLine
from pgdyno.plan.formats._contract import counted, host_lines, setting_lines
from pgdyno.plan.formats._expressible import kernel_path, plain

_DEVICE = re.compile(r"^/sys/(?:class/)?(block|net)/([^/]+)/(.+)$")
_TMPFILES, _DASH = "tmpfiles.d", "\\x2d"
TMPFILES_PATH = "/etc/tmpfiles.d/60-pgdyno.conf"
_NOTHING = "The plan changes nothing of the machine; --layers all plans the machine too."


class Place(Enum):
    """The mechanism that sets a kernel file at boot."""

    SYSCTL = "sysctl.d (--format sysctl)"
    UDEV = "a udev rule (--format udev)"
    TMPFILES = "tmpfiles.d"
    INTERRUPTS = "a script at start, which finds the number that the interrupt then has"
    CACHES = "a script that runs whenever the server has been started"
    REGISTERS = "a script at start (wrmsr is in msr-tools)"


@dataclass(frozen=True)
class DeviceFile:
    """A file of one device, as udev names it: subsystem, device, attribute."""

    subsystem: str
    device: str
    attribute: str


def place_of(path: str) -> Place:
    """Return where a value of this file belongs."""
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
    """Return the device that a file belongs to; None if it is not one of a disk's or an interface's."""
    match = _DEVICE.match(path)
    return None if match is None else DeviceFile(*match.groups())


def lines_in(plan: Plan, *places: Place) -> tuple[PlanLine, ...]:
    """Return the planned changes of the machine that belong in these places."""
    return tuple(line for line in host_lines(plan) if place_of(line.change.key) in places)


def tmpfiles_line(change: Change) -> str:
    """Return a line of tmpfiles.d: ``w`` writes into a file that exists.

    Percent signs start specifiers there, backslashes escapes; a dash stands for nothing. Raises: FormatError
    for a path or value that such a line cannot hold.
    """
    value = plain(change.value, _TMPFILES).replace("\\", "\\\\").replace("%", "%%")
    return f"w {kernel_path(change.key, _TMPFILES)} - - - - {_DASH if value == '-' else value}"


def former_value(change: Change) -> str:
    """Describe how to restore the original value without a reboot."""
    if change.current == "0" and change.key in COUPLED:
        return f"write the former value of {display_name(COUPLED[change.key])}, which counted instead"
    return f"write {change.current} into {change.key}"


def elsewhere(plan: Plan, here: Collection[PlanLine], *, settings: bool = True) -> tuple[str, ...]:
    """Name the parts of the plan that this text cannot hold, with their places.

    ``here`` are the changes of the machine that it holds; ``settings`` False: it holds PostgreSQL's too.
    """
    strangers = [line for line in host_lines(plan) if line not in here]
    remarks = [remark for line in strangers for remark in _belongs(line)]
    count = len(setting_lines(plan))
    if settings and count:
        remarks.append(f"{counted(count, 'setting')} of PostgreSQL's own: --format conf or sql")
    return ("Planned, and not in this file:", *remarks) if remarks else ()


def head_of(plan: Plan, texts: Sequence[str]) -> tuple[str, ...]:
    """Return a head's remarks, with advice if no host change was planned."""
    return tuple(texts) if host_lines(plan) else (*texts, _NOTHING)


def _belongs(line: PlanLine) -> tuple[str, ...]:
    change, place = line.change, place_of(line.change.key)
    where = f"{display_name(change.key)}: {change.current or 'not set'} → {change.value}, in {place.value}"
    if register := register_of(change.key):
        return f"{where}:", f"wrmsr -p {register.cpu} {register.number:#x} {change.value}"
    return (f"{where}:", tmpfiles_line(change)) if place is Place.TMPFILES else (where,)
