"""Show the hosts of a cell as a table with a column per host, and the next steps. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence

from pgdyno.base import numbers
from pgdyno.base.facts import Fact, Unknown
from pgdyno.base.text import counted, wrapped
from pgdyno.model.cells.cell import HostRole
from pgdyno.model.cells.check import (
    CellCheck,
    CheckedHost,
    FoundPrograms,
    HostFinding,
    NetworkProbe,
    ReachedHost,
)
from pgdyno.report.elements.tables import NOTHING

_HOSTS_PER_TABLE = 3  # with more, columns are too narrow
_TITLE_WIDTH = 22
_INDENT = "   "


def cell_text(check: CellCheck, width: int) -> str:
    """Return tables of three hosts each, the findings with their next steps, and the conclusion."""
    hosts = check.hosts
    groups = [hosts[start : start + _HOSTS_PER_TABLE] for start in range(0, len(hosts), _HOSTS_PER_TABLE)]
    tables = [_table(group, width) for group in groups]
    steps = [line for number, one in enumerate(check.findings, 1) for line in _step(number, one, width)]
    parts = [*tables, *(["\n".join(["Next steps", *steps])] if steps else []), _answer(check)]
    return "\n\n".join(parts) + "\n"


def _answer(check: CellCheck) -> str:
    if check.is_usable:
        return "The cell can be used."
    count = sum(one.is_obstacle for one in check.findings)
    return f"The cell cannot be used: {counted(count, 'obstacle')}."


def _table(hosts: Sequence[CheckedHost], width: int) -> str:
    column = (width - _TITLE_WIDTH) // len(hosts) - 2
    heads = [f"{one.host.name} ({one.host.role})" for one in hosts]
    lines = _row("", heads, column)
    for title, shown in _ROWS:
        lines += _row(title, [_shown(one, shown) for one in hosts], column)
    return "\n".join(lines)


def _row(title: str, cells: Sequence[str], column: int) -> list[str]:
    """Return the lines of a row; texts too long for their column are wrapped."""
    wrapped = [textwrap.wrap(cell, column, break_on_hyphens=False) or [""] for cell in cells]
    lines = []
    for at in range(max(map(len, wrapped))):
        parts = [part[at] if at < len(part) else "" for part in wrapped]
        start = (title if at == 0 else "").ljust(_TITLE_WIDTH)
        lines.append((start + "  ".join(part.ljust(column) for part in parts)).rstrip())
    return lines


def _shown(checked: CheckedHost, shown: Callable[[CheckedHost, ReachedHost], str]) -> str:
    return shown(checked, checked.answer) if isinstance(checked.answer, ReachedHost) else NOTHING


def _reached(_: CheckedHost, answer: ReachedHost) -> str:
    facts = answer.facts
    where = "this machine" if facts.is_here else facts.address or "unknown address"
    return f"{facts.user}@{facts.host_name}, {where}"


def _round_trip(_: CheckedHost, answer: ReachedHost) -> str:
    if answer.facts.is_here:
        return NOTHING
    return numbers.short_duration(answer.clock.round_trip_s)


def _clock(_: CheckedHost, answer: ReachedHost) -> str:
    if answer.facts.is_here:
        return NOTHING
    offset, error = answer.clock.offset_s, answer.clock.error_s
    sign = "+" if offset > 0 else ""
    return f"{sign}{numbers.short_duration(offset)} ±{numbers.SPACE}{numbers.short_duration(error)}"


def _clock_is_synchronised(_: CheckedHost, answer: ReachedHost) -> str:
    found = answer.facts.is_synchronised
    return f"unknown: {found.reason}" if isinstance(found, Unknown) else "yes" if found else "no"


def _cpus(checked: CheckedHost, answer: ReachedHost) -> str:
    count, used = len(answer.facts.cpus), checked.host.cpus
    model = f" ({answer.facts.cpu_model})" if answer.facts.cpu_model else ""
    return f"{len(used)} of {count}{model}" if used else f"{count}{model}"


def _postgresql(checked: CheckedHost, answer: ReachedHost) -> str:
    if checked.host.role is HostRole.LOAD:
        return NOTHING
    found = answer.facts.postgresql
    return "; ".join(f"{_version(one)} in {one.directory}" for one in found) or "none found"


def _version(found: FoundPrograms) -> str:
    return "broken" if found.trouble else found.version.removeprefix("postgres (PostgreSQL) ")


def _pgdyno(checked: CheckedHost, answer: ReachedHost) -> str:
    found = answer.facts.pgdyno
    if checked.host.role is HostRole.LOAD or answer.facts.is_here:
        return NOTHING
    if found is None:
        return "none found"
    return f"{'broken' if found.trouble else found.version}: {found.program}"


def _wake_up(_: CheckedHost, answer: ReachedHost) -> str:
    idle, busy = answer.wake_up.idle_us, answer.wake_up.busy_us
    if isinstance(idle.value, Unknown):
        return f"unknown: {idle.value.reason}"
    return f"{_us(idle)} idle, {_us(busy)} kept busy"


def _us(time_us: Fact[float]) -> str:
    return "unknown" if isinstance(time_us.value, Unknown) else f"{time_us.value:.1f}{numbers.SPACE}µs"


def _network(shown: Callable[[NetworkProbe], str]) -> Callable[[CheckedHost, ReachedHost], str]:
    def cell(checked: CheckedHost, _: ReachedHost) -> str:
        if isinstance(checked.network, NetworkProbe):
            return shown(checked.network)
        return "not measured" if checked.host.role is HostRole.LOAD else NOTHING

    return cell


def _per_second(rate: float) -> str:
    return f"{numbers.size(rate)}/s"


_ROWS: tuple[tuple[str, Callable[[CheckedHost, ReachedHost], str]], ...] = (
    ("reached as", _reached),
    ("round trip, by ssh", _round_trip),
    ("clock offset", _clock),
    ("clock synchronised", _clock_is_synchronised),
    ("CPUs", _cpus),
    ("memory", lambda _, answer: numbers.size(answer.facts.memory_bytes)),
    ("kernel", lambda _, answer: f"{answer.facts.kernel} {answer.facts.machine}"),
    ("Python", lambda _, answer: answer.facts.python),
    ("root privileges", lambda _, answer: f"no: {answer.facts.sudo}" if answer.facts.sudo else "yes"),
    (
        "free disk",
        lambda _, answer: f"{numbers.size(answer.trial_write.free_bytes)} in {answer.trial_write.directory}",
    ),
    ("PostgreSQL", _postgresql),
    ("pgdyno", _pgdyno),
    ("CPU wake-up", _wake_up),
    ("round trip to server", _network(lambda probe: numbers.short_duration(probe.round_trip_s))),
    ("sends to server", _network(lambda probe: _per_second(probe.to_server_bytes_per_s))),
    ("receives from server", _network(lambda probe: _per_second(probe.from_server_bytes_per_s))),
)


def _step(number: int, finding: HostFinding, width: int) -> Iterator[str]:
    kind = "" if finding.is_obstacle else "warning: "
    hosts = f"{number}. {', '.join(finding.hosts)}: {kind}{finding.said}"
    yield textwrap.fill(hosts, width, subsequent_indent=_INDENT)
    yield wrapped(f"→ {finding.next_step}", width, _INDENT, "  ")
