"""Network interfaces with a device: queues, receive packet steering, interrupts."""

from __future__ import annotations

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import NO_SUCH_FILE, Tree, parsed, together
from pgdyno.host.host import Nic

_DIRECTORY = "/sys/class/net"


def inspect_nics(tree: Tree) -> Fact[tuple[Nic, ...]]:
    """Return the interfaces behind which there is a device; bridges, loopback and veth pairs are left out."""
    names = tree.names(_DIRECTORY)
    return parsed(
        names,
        lambda known: tuple(
            _nic(tree, name)
            for name in known
            if tree.names(f"{_DIRECTORY}/{name}/device").value != NO_SUCH_FILE
        ),
    )


def _nic(tree: Tree, name: str) -> Nic:
    directory = f"{_DIRECTORY}/{name}"
    queues = tree.names(f"{directory}/queues")
    return Nic(
        name=name,
        rx_queues=parsed(queues, lambda names: _count(names, "rx-")),
        tx_queues=parsed(queues, lambda names: _count(names, "tx-")),
        rps_cpus=_rps(tree, queues),
        irq_affinity=_irq_affinity(tree, f"{directory}/device"),
    )


def _count(names: tuple[str, ...], prefix: str) -> int:
    return sum(name.startswith(prefix) for name in names)


def _rps(tree: Tree, queues: Fact[tuple[str, ...]]) -> Fact[tuple[str, ...]]:
    """Return the CPU mask of every receive queue; zero means that steering is off."""
    receiving = sorted((name for name in queues.or_else(()) if name.startswith("rx-")), key=_queue_number)
    if isinstance(queues.value, Unknown):
        return Fact(queues.value, queues.source)
    masks = {name: tree.text(f"{queues.source}/{name}/rps_cpus") for name in receiving}
    return parsed(together(masks, queues.source), lambda known: tuple(known.values()))


def _queue_number(name: str) -> int:
    digits = name.partition("-")[2]
    return int(digits) if digits.isdecimal() else -1


def _irq_affinity(tree: Tree, device: str) -> Fact[dict[str, str]]:
    """Return the CPUs of each of the device's interrupts.

    A virtio interface is a child of the PCI device that has the interrupts, hence the second place to look.
    """
    interrupts = tree.names(f"{device}/msi_irqs")
    if interrupts.value == NO_SUCH_FILE:
        interrupts = tree.names(f"{device}/../msi_irqs")
    if isinstance(interrupts.value, Unknown):
        return Fact(interrupts.value, interrupts.source)
    numbers = sorted((name for name in interrupts.value if name.isdecimal()), key=int)
    return together(
        {name: tree.text(f"/proc/irq/{name}/smp_affinity_list") for name in numbers}, interrupts.source
    )
