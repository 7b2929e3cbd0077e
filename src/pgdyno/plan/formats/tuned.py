"""A TuneD profile: the plan's host changes on top of TuneD's own profile for PostgreSQL.

TuneD sets the values when it starts and restores the former ones when it switches to another profile.

A device belongs to the first matching section of its kind, and included profiles come first: the disks
named here are therefore excluded from the included section ``disk``.

Source: tuned.conf(5); TuneD's plugins sysctl, vm, disk and sysfs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pgdyno.base.text import counted
from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.plan import Plan, PlanLine
from pgdyno.plan.formats._contract import Format, comments, explanation, joined
from pgdyno.plan.formats._expressible import kernel_path, plain
from pgdyno.plan.formats._places import Place, device_file, elsewhere, head_of, lines_in, place_of
from pgdyno.postgres.server import Server

FORMAT = Format("tuned", "TuneD profile, on top of TuneD's own for PostgreSQL")
_LANGUAGE = "a TuneD profile"
_REFUSED = "#;$\\\"'"  # comments, variables and functions, escapes, quotes
PATH = "/etc/tuned/pgdyno/tuned.conf"
_HERE = (Place.SYSCTL, Place.UDEV, Place.TMPFILES)
_TRANSPARENT_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
_DISK_OPTIONS = {"queue/scheduler": "elevator", "queue/read_ahead_kb": "readahead"}  # readahead is in kB
_UNDO = "tuned-adm profile with the former profile's name"


def render(plan: Plan, server: Server) -> str:
    """Return the profile. Comments list the changes that TuneD cannot make.

    Raises: FormatError for a path or value that a profile cannot express.
    """
    lines = [line for line in lines_in(plan, *_HERE) if not _is_unnameable(line)]
    for line in lines:
        kernel_path(line.change.key, _LANGUAGE)
    head = [
        f"pgdyno: {counted(len(lines), 'change')} for the machine of PostgreSQL {server.version}.",
        f"Install as {PATH}, then: tuned-adm profile pgdyno",
        "Undo: tuned-adm profile NAME, with the name of the former profile, then delete the directory.",
        "TuneD then restores the values that it found.",
        "include=postgresql also sets the rest of TuneD's profile of that name, which was not planned.",
        "If that profile is not installed (package tuned-profiles-postgresql), remove the line.",
    ]
    return joined(
        comments(head_of(plan, head)),
        f"[main]\nsummary=PostgreSQL {_value(server.version)}, as planned by pgdyno\ninclude=postgresql",
        *_sections(lines),
        comments(elsewhere(plan, lines)),
    )


def _is_unnameable(line: PlanLine) -> bool:
    """Whether a sysctl has a dot within a component, eth0.100: TuneD reads every dot as a slash."""
    return place_of(line.change.key) is Place.SYSCTL and "." in line.change.key


def _sections(lines: Sequence[PlanLine]) -> Iterator[str]:
    """Yield the sections in TuneD's order of application."""
    disks = _disk_options(lines)
    of_disks = [line for options in disks.values() for _, line in options]
    memory = [line for line in lines if line.change.key == _TRANSPARENT_HUGE_PAGES]
    sysctls = [line for line in lines if place_of(line.change.key) is Place.SYSCTL]
    others = [line for line in lines if line not in (*of_disks, *memory, *sysctls)]
    yield from _section("vm", (("transparent_hugepages", line) for line in memory))
    if disks:
        yield "[disk]\ndevices=" + ",".join(f"!{disk}" for disk in disks)
    for disk, options in disks.items():
        yield from _section(f"disk_{disk}", options, f"type=disk\ndevices={disk}\n")
    yield from _section("sysctl", ((display_name(line.change.key), line) for line in sysctls))
    yield from _section("sysfs", ((line.change.key, line) for line in others))


def _section(name: str, options: Iterable[tuple[str, PlanLine]], settings: str = "") -> Iterator[str]:
    """Yield a section unless it has no options."""
    texts = [
        f"{comments(explanation(line, _UNDO))}\n{option}={_value(line.change.value)}"
        for option, line in options
    ]
    if texts:
        yield f"[{name}]\n{settings}" + "\n\n".join(texts)


def _value(text: str) -> str:
    return plain(text, _LANGUAGE, _REFUSED)


def _disk_options(lines: Sequence[PlanLine]) -> Mapping[str, list[tuple[str, PlanLine]]]:
    """Return the options of TuneD's disk plugin, by disk."""
    found: dict[str, list[tuple[str, PlanLine]]] = {}
    for line in lines:
        file = device_file(line.change.key)
        if file is not None and file.subsystem == "block" and file.attribute in _DISK_OPTIONS:
            found.setdefault(file.device, []).append((_DISK_OPTIONS[file.attribute], line))
    return found
