"""Clients and network path of a server, shared by the network levers."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.host.host import Nic
from pgdyno.plan.levers._contract import PlanContext

CONTAINER = "container:"


def nothing_to_gain(ctx: PlanContext) -> str | None:
    """Return why network levers do not apply to this server; None if clients may use the network."""
    addresses = ctx.settings.text("listen_addresses")
    if all(map(_is_local, addresses.split(","))):
        return f"all clients are on this machine: listen_addresses = '{addresses}'"
    if why := other_network(ctx):
        return why
    if not nics(ctx):
        return "no network card is known on this machine"
    return None


def other_network(ctx: PlanContext) -> str | None:
    """Return why the network settings seen here may not apply to the server; None if they do."""
    is_contained = ctx.host is not None and ctx.host.cpu.virtualisation.or_else("").startswith(CONTAINER)
    return "the server runs in a container, which may have a separate network" if is_contained else None


def nics(ctx: PlanContext) -> tuple[Nic, ...]:
    """Return the interfaces that are devices, without loopback, bridges and veth pairs."""
    return () if ctx.host is None else ctx.host.nics.or_else(())


def cpus(ctx: PlanContext) -> tuple[int, ...]:
    """Return the CPUs that the server may use."""
    return () if ctx.host is None else ctx.host.limits.cpuset.or_else(())


def mask_of(numbers: Sequence[int]) -> str:
    """Return CPUs as a mask in the kernel's format: hexadecimal, in groups of 32 CPUs, the highest first."""
    digits = f"{sum(1 << number for number in numbers):x}"
    first = len(digits) % 8 or 8
    return ",".join([digits[:first], *(digits[at : at + 8] for at in range(first, len(digits), 8))])


def is_empty(mask: str) -> bool:
    """Whether a mask has no CPU."""
    return not mask.strip("0,")


def _is_local(address: str) -> bool:
    address = address.strip()
    return address in ("", "localhost", "::1") or address.startswith("127.")
