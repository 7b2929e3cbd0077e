"""Clients and network path of a server: shared by the levers of the network."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.host.host import Nic
from pgdyno.plan.levers._contract import PlanContext

CONTAINER = "container:"


def nothing_to_gain(ctx: PlanContext) -> str | None:
    """Say why the network is nothing to this server; None if its clients may come over one."""
    addresses = ctx.settings.text("listen_addresses")
    if all(map(_is_local, addresses.split(","))):
        return f"all clients are on this machine: listen_addresses = '{addresses}'"
    if why := other_network(ctx):
        return why
    if not nics(ctx):
        return "this machine has no network card that is known"
    return None


def other_network(ctx: PlanContext) -> str | None:
    """Say why the settings of the network that are seen here may not be the server's; None if they are."""
    is_contained = ctx.host is not None and ctx.host.cpu.virtualisation.or_else("").startswith(CONTAINER)
    return "the server runs in a container, whose network may be one of its own" if is_contained else None


def nics(ctx: PlanContext) -> tuple[Nic, ...]:
    """Return the interfaces that are devices: loopback, bridges and veth pairs are none."""
    return () if ctx.host is None else ctx.host.nics.or_else(())


def cpus(ctx: PlanContext) -> tuple[int, ...]:
    """Return the CPUs that the server may use."""
    return () if ctx.host is None else ctx.host.limits.cpuset.or_else(())


def mask_of(numbers: Sequence[int]) -> str:
    """Return CPUs as the kernel writes masks: hexadecimal, in groups of 32 CPUs, the highest first."""
    digits = f"{sum(1 << number for number in numbers):x}"
    first = len(digits) % 8 or 8
    return ",".join([digits[:first], *(digits[at : at + 8] for at in range(first, len(digits), 8))])


def is_empty(mask: str) -> bool:
    """Whether a mask has no CPU."""
    return not mask.strip("0,")


def _is_local(address: str) -> bool:
    address = address.strip()
    return address in ("", "localhost", "::1") or address.startswith("127.")
