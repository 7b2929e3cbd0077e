"""Derive findings, each with the next step, from the answers of a cell's hosts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pgdyno.base import numbers
from pgdyno.base.facts import Unknown
from pgdyno.model.cells.cell import CellHost, HostRole
from pgdyno.model.cells.check import (
    CellCheck,
    CellHostFacts,
    CheckedHost,
    ClockOffset,
    FoundPgdyno,
    HostFinding,
    ReachedHost,
    TrialWrite,
    Trouble,
)

MOST_OFFSET_S = 0.05
"""Between two clocks: an arm's shortest turn. Load that starts later would miss whole turns."""

_CHRONY = "on {}: sudo systemctl enable --now chrony (Red Hat: chronyd), then wait for: chronyc waitsync"


def judged(hosts: Sequence[CheckedHost], own_machine: str, carried_by: str | None) -> CellCheck:
    """Return the check of a cell. ``own_machine`` is this machine's type, such as x86_64.

    ``carried_by`` is the version of pgdyno that forwards commands to the server's host; None if that is this
    machine. Shapes: the server's host first.
    """
    found = [finding for host in hosts for finding in _of_host(host, own_machine)]
    if hosts and isinstance(hosts[0].answer, ReachedHost):  # otherwise load hosts are not the cause
        found += [finding for load in hosts[1:] for finding in _of_network(load)]
    found += _of_pairs(hosts)
    if hosts and carried_by is not None and isinstance(server := hosts[0].answer, ReachedHost):
        found += _of_pgdyno(hosts[0].host, server.facts.pgdyno, carried_by)
    merged = sorted(_merged(found), key=lambda one: not one.is_obstacle)
    return CellCheck(tuple(hosts), tuple(merged), is_usable=not any(one.is_obstacle for one in merged))


def _merged(found: Sequence[HostFinding]) -> list[HostFinding]:
    """Merge findings that differ only in their hosts."""
    hosts: dict[HostFinding, tuple[str, ...]] = {}
    for one in found:
        same = replace(one, hosts=())
        hosts[same] = hosts.get(same, ()) + one.hosts
    return [replace(one, hosts=names) for one, names in hosts.items()]


def _of_host(checked: CheckedHost, own_machine: str) -> Iterator[HostFinding]:
    name, answer = checked.host.name, checked.answer
    if isinstance(answer, Trouble):
        yield _obstacle(name, answer.said, answer.next_step)
        return
    is_server = checked.host.role is HostRole.SERVER
    yield from _of_clock(name, answer, is_server=is_server)
    yield from _of_disk(name, answer.trial_write)
    yield from _of_cpus(checked, answer.facts)
    yield from (
        _of_server(checked, answer.facts) if is_server else _of_load(checked, answer.facts, own_machine)
    )


def _of_clock(name: str, answer: ReachedHost, *, is_server: bool) -> Iterator[HostFinding]:
    offset = answer.clock
    if is_server and abs(offset.offset_s) - offset.error_s > MOST_OFFSET_S:
        yield _warning(
            name,
            f"its clock is {_ahead(offset.offset_s, offset.error_s)} this machine's",
            _CHRONY.format("both"),
        )
    if answer.facts.is_synchronised is False:
        yield _warning(name, "its clock drifts: no service synchronises it", _CHRONY.format("the host"))


def _of_disk(name: str, trial: TrialWrite) -> Iterator[HostFinding]:
    if trial.trouble:
        yield _obstacle(
            name,
            f"could not write a program to {trial.directory}: {trial.trouble[:1].lower()}{trial.trouble[1:]} "
            f"({numbers.size(trial.free_bytes)} free)",
            f"on {name}: df -h {trial.directory}, and free space there",
        )
    elif not trial.may_run_programs:
        yield _obstacle(
            name,
            f"{trial.directory} is mounted noexec: programs cannot run there",
            f"on {name}: sudo mount -o remount,exec {trial.directory}, or set TMPDIR for ssh logins",
        )


def _of_cpus(checked: CheckedHost, facts: CellHostFacts) -> Iterator[HostFinding]:
    missing = sorted(set(checked.host.cpus) - set(facts.cpus))
    if missing:
        shown = ", ".join(map(str, missing[:8])) + (", …" if len(missing) > 8 else "")
        name = checked.host.name
        yield _obstacle(
            name,
            f"hosts.toml names CPUs that are not available there: {shown}",
            f"correct cpus of [hosts.{name}]; on {name}, taskset -p $$ and nproc show the available ones",
        )


def _of_server(checked: CheckedHost, facts: CellHostFacts) -> Iterator[HostFinding]:
    name, named = checked.host.name, checked.host.postgresql
    if all(one.trouble for one in facts.postgresql):
        none = f"no PostgreSQL in {named}" if named else "no PostgreSQL found there"
        broken = "; ".join(f"{one.directory}/postgres {one.trouble}" for one in facts.postgresql)
        yield _obstacle(
            name,
            broken or none,
            f"install it, or name the directory of postgres: postgresql = … in [hosts.{name}]",
        )
    if facts.sudo:
        yield _warning(
            name,
            f"{facts.user} has no root privileges there without a password: {facts.sudo}",
            "without them, kernel settings cannot be changed; "
            f"to grant them: {facts.user} ALL=(ALL) NOPASSWD: ALL in a file of /etc/sudoers.d (visudo -f)",
        )


def _of_pgdyno(host: CellHost, found: FoundPgdyno | None, ours: str) -> Iterator[HostFinding]:
    """Yield a warning if commands cannot be forwarded from this machine to the server's host."""
    key = f'pgdyno = "/…/pgdyno" in [hosts.{host.name}]'
    install = f"install pgdyno {ours} there, or "
    if found is None:
        missing = "commands with --cell cannot run there: pgdyno is not on the login's PATH"
        yield _warning(host.name, missing, f"{install}give its path: {key}")
    elif found.trouble:
        yield _warning(
            host.name,
            f"its pgdyno, {found.program}, {found.trouble}",
            f"{install}name another installation: {key}",
        )
    elif found.version != ours:
        yield _warning(
            host.name,
            f"commands with --cell cannot run there: its pgdyno is {found.version}, but this is {ours}",
            f"{install}name another installation: {key}",
        )


def _of_load(checked: CheckedHost, facts: CellHostFacts, own_machine: str) -> Iterator[HostFinding]:
    name = checked.host.name
    if facts.machine != own_machine:
        yield _obstacle(
            name,
            f"its machine type is {facts.machine}, but pgdyno's driver here is for {own_machine}",
            f"use a {own_machine} host for load, or run pgdyno on a {facts.machine} host",
        )


def _of_network(checked: CheckedHost) -> Iterator[HostFinding]:
    if isinstance(checked.network, Unknown):
        yield _obstacle(
            checked.host.name,
            f"the network to the server was not measured: {checked.network.reason}",
            "open a port of the server's host to it (probe_port = 5433 in hosts.toml names one); "
            "or set address = in the server's table to the server's address for load hosts",
        )


def _of_pairs(hosts: Sequence[CheckedHost]) -> Iterator[HostFinding]:
    """Yield findings about pairs of a load host and the server, or of two load hosts."""
    reached = [(one.host.name, one.answer) for one in hosts if isinstance(one.answer, ReachedHost)]
    seen: dict[str, str] = {}
    for name, answer in reached:
        machine = answer.facts.boot_id
        if machine in seen:
            yield _warning(
                name,
                f"it is the same machine as {seen[machine]}: they compete for CPUs and memory",
                "use another machine, or separate them with cpus = in hosts.toml",
            )
        elif machine:
            seen[machine] = name
    if hosts and isinstance(server := hosts[0].answer, ReachedHost):
        yield from _of_offsets(hosts[0].host.name, server, reached[1:])


def _of_offsets(
    server_name: str, server: ReachedHost, loads: Sequence[tuple[str, ReachedHost]]
) -> Iterator[HostFinding]:
    for name, load in loads:
        offset_s, error_s = difference(load.clock, server.clock)
        if abs(offset_s) - error_s > MOST_OFFSET_S:
            yield _obstacle(
                name,
                f"its clock is {_ahead(offset_s, error_s)} {server_name}'s; the limit is "
                f"{numbers.short_duration(MOST_OFFSET_S)}",
                _CHRONY.format(f"{name} and {server_name}"),
            )
        elif abs(offset_s) + error_s > MOST_OFFSET_S:
            yield _warning(
                name,
                f"its clock is {_ahead(offset_s, error_s)} {server_name}'s; the round trip is too long to "
                f"tell whether the limit of {numbers.short_duration(MOST_OFFSET_S)} is kept",
                f"run pgdyno closer to both hosts; or on {name} and {server_name}: chronyc tracking",
            )


def _ahead(offset_s: float, error_s: float) -> str:
    where = "ahead of" if offset_s > 0 else "behind"
    return (
        f"{numbers.short_duration(abs(offset_s))} (±{numbers.SPACE}{numbers.short_duration(error_s)}) {where}"
    )


def _obstacle(host: str, said: str, next_step: str) -> HostFinding:
    return HostFinding((host,), is_obstacle=True, said=said, next_step=next_step)


def _warning(host: str, said: str, next_step: str) -> HostFinding:
    return HostFinding((host,), is_obstacle=False, said=said, next_step=next_step)


def difference(one: ClockOffset, other: ClockOffset) -> tuple[float, float]:
    """Return how far the first host's clock is ahead of the second's, and the error bound, in s."""
    return one.offset_s - other.offset_s, one.error_s + other.error_s
