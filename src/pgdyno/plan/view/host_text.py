"""A host as text: one line per fact, with its source or the reason why it is unknown. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pgdyno.base import numbers
from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.cpu_list import format_cpu_list
from pgdyno.host.host import BlockDevice, Host, HugePagePool, Mount, Nic
from pgdyno.host.probes import Probes

_NAME_WIDTH = 24
_SYSCTL_WIDTH = 36
_MOST_ITEMS = 16  # longer lists are cut: /proc/cpuinfo shows more than a hundred features
_SHM = "/dev/shm"  # noqa: S108 — a title, not a path to write to
# Shown from a long list of features: they decide which code PostgreSQL, libc or a compiler can use.
_TELLING_FEATURES = (
    *("sse4_2", "popcnt", "pclmulqdq", "avx2", "avx512f", "avx512bw", "avx512_vpopcntdq", "vpclmulqdq"),
    *("atomics", "crc32", "pmull", "asimd", "sve", "sve2", "spe"),
)
# Soft limits relevant to PostgreSQL; io_uring needs locked memory before Linux 5.12.
_TELLING_RLIMITS = ("Max open files", "Max processes", "Max locked memory", "Max core file size")
_TITLES = {
    "isa_features": "instruction set",
    "logical_count": "CPUs online",
    "core_count": "cores",
    "socket_count": "sockets",
    "numa_nodes": "NUMA nodes",
    "is_smt_active": "SMT",
    "l1d_bytes": "L1 data cache",
    "l2_bytes": "L2 cache",
    "l3_bytes": "L3 cache",
    "has_pmu": "hardware counters",
    "page_bytes": "page size",
    "cgroup_version": "control groups",
    "cpu_count": "CPUs",
    "pids_max": "processes",
    "hugetlb_bytes": "huge pages",
    "shm_bytes": _SHM,
    "frequency_mhz": "frequency",
    "owners": "values also set by",
    "rlimits": "resource limits",
}
_PROBE_WIDTH = 36


def host_text(host: Host) -> str:
    """Return the readable description of a host."""
    return "\n\n".join("\n".join(lines) for lines in _sections(host)) + "\n"


def _sections(host: Host) -> Iterator[list[str]]:
    kernel: dict[str, Fact[Any]] = {
        "hostname": host.hostname,
        "kernel": host.kernel.release,
        "distribution": host.kernel.distribution,
        "owners": host.owners,
    }
    yield ["Host", *(_line(name, fact) for name, fact in kernel.items())]
    yield ["Processor", *_fact_lines(host.cpu)]
    yield ["Memory", *_fact_lines(host.memory)]
    yield ["Limits", *_fact_lines(host.limits)]
    yield ["Storage", *_item_lines("disks", host.block_devices)]
    yield ["Mounts", *_item_lines("mounts", host.mounts)]
    yield ["Network", *_item_lines("interfaces", host.nics)]
    yield ["Kernel settings", *(_line(k, fact, _SYSCTL_WIDTH) for k, fact in host.kernel.sysctls.items())]


def _fact_lines(part: Any) -> list[str]:
    """Return one line per field of a dataclass; all fields must be facts."""
    return [_line(field.name, getattr(part, field.name)) for field in dataclasses.fields(part)]


def _item_lines(name: str, items: Fact[tuple[Any, ...]]) -> list[str]:
    if isinstance(items.value, Unknown) or not items.value:
        return [_line(name, items)]
    return [line for item in items.value for line in _lines(item)]


def _lines(item: BlockDevice | Mount | Nic) -> Iterator[str]:
    if isinstance(item, Mount):
        yield f"  {item.target}"
        yield f"    {item.device}, {item.filesystem}, {','.join(item.options)}"
    else:
        yield f"  {item.name}"
    facts = ((field.name, getattr(item, field.name)) for field in dataclasses.fields(item))
    yield from (f"  {_line(n, fact, _NAME_WIDTH - 2)}" for n, fact in facts if isinstance(fact, Fact))


def _line(name: str, fact: Fact[Any], width: int = _NAME_WIDTH) -> str:
    words = name.removesuffix("_bytes").removeprefix("is_").replace("_", " ")
    title = _TITLES.get(name, name if "." in name else words)  # kernel settings keep their names
    return f"  {title:<{width}}{_value(name, fact)}  ({fact.source})"


def _value(name: str, fact: Fact[Any]) -> str:
    if isinstance(fact.value, Unknown):
        return f"unknown: {fact.value.reason}"
    if name in _READABLE:
        return _READABLE[name](fact.value)
    if name.endswith("_bytes") and isinstance(fact.value, int):
        return numbers.size(fact.value)
    return _plain(fact.value)


def _plain(value: Any) -> str:
    """Format a value by its type."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return _listed([f"{key}: {item}" for key, item in value.items()], "; ")
    if isinstance(value, tuple):
        return _listed([str(item) for item in value], ", ")
    return " ".join(str(value).split())


def _features(features: Sequence[str]) -> str:
    if len(features) <= _MOST_ITEMS:
        return " ".join(features)
    telling = [name for name in _TELLING_FEATURES if name in features]
    return f"{' '.join(telling)} (and {len(features) - len(telling)} more)"


def _pools(pools: Mapping[int, HugePagePool]) -> str:
    found = ((numbers.size(size), pool) for size, pool in pools.items())
    shown = (f"{one.total} × {size} ({one.free} free, {one.reserved} reserved)" for size, one in found)
    return "; ".join(shown) or "none"


def _sizes(limits: Mapping[int, int]) -> str:
    """Describe the limits for pages of each size."""
    shown = (f"{numbers.size(limit)} on pages of {numbers.size(size)}" for size, limit in limits.items())
    return "; ".join(shown) or "none"


def _mitigations(answers: Mapping[str, str]) -> str:
    """Describe the vulnerabilities that affect this CPU, and count the rest."""
    affected = {name: answer for name, answer in answers.items() if answer != "Not affected"}
    shown = [f"{name}: {answer}" for name, answer in affected.items()]
    return "; ".join([*shown, f"{len(answers) - len(affected)} not affected"])


def _rlimits(limits: Mapping[str, str]) -> str:
    shown = (f"{name.removeprefix('Max ')} {limits[name]}" for name in _TELLING_RLIMITS if name in limits)
    return ", ".join(shown)


def _listed(items: Sequence[str], separator: str) -> str:
    if not items:
        return "none"
    rest = len(items) - _MOST_ITEMS
    return separator.join(items[:_MOST_ITEMS]) + (f" (and {rest} more)" if rest > 0 else "")


_READABLE: dict[str, Callable[[Any], str]] = {
    "frequency_mhz": lambda frequency_mhz: f"{frequency_mhz / 1000:.3g} GHz",
    "isa_features": _features,
    "cpuset": format_cpu_list,
    "huge_pages": _pools,
    "hugetlb_bytes": _sizes,
    "mitigations": _mitigations,
    "owners": lambda found: ", ".join(f"{one.name}, which {one.does}" for one in found) or "no known program",
    "rlimits": _rlimits,
}


def probes_text(probes: Probes) -> str:
    """Return the results of the probes, one line each."""
    lines = (
        _probe_line("wake-up on an idle CPU", probes.wake_up.idle_us, "{:.1f} µs".format),
        _probe_line("wake-up on a CPU kept busy", probes.wake_up.busy_us, "{:.1f} µs".format),
        _probe_line("system call", probes.system_call_ns, "{:,.0f} ns".format),
        _probe_line("page fault", probes.page_fault_ns, "{:,.0f} ns".format),
        _probe_line("write and fsync of 8 kB", probes.fsync_8kb_us, "{:,.0f} µs".format),
        _probe_line("stolen CPU time", probes.stolen_share, lambda part: numbers.share(part, 1)),
    )
    return "\n".join(("Probes of this machine", *lines)) + "\n"


def _probe_line(title: str, fact: Fact[float], form: Callable[[float], str]) -> str:
    value = f"unknown: {fact.value.reason}" if isinstance(fact.value, Unknown) else form(fact.value)
    return f"  {title:<{_PROBE_WIDTH}}{value}  ({fact.source})"
