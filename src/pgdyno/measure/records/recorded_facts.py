"""Facts of a recorded experiment in words, where known. Pure.

Documents may come from another version of pgdyno, so any member may be missing. A fact that is unknown,
missing or redacted in a bundle is None, and None equals nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, TypeAlias

from pgdyno.base import numbers
from pgdyno.measure.design.isolation import CpuSplit, split_cpus
from pgdyno.model.experiments.experiment import CELL_OPTION, DesignKind, Experiment
from pgdyno.model.experiments.metric import CLIENT_CPU, SERVER_CPU

FactReader: TypeAlias = "Callable[[Experiment], str | None]"
"""Returns a fact of an experiment in words, or None."""

BETWEEN_MITIGATIONS = " / "
_MOST_CPUS = 1 << 16  # bound on a document's value; Linux supports at most 8192
_REDACTED = "********"


def fact_at(document: Mapping[str, Any], path: str) -> Any:
    """Return the value of a fact or a plain member at a dotted path; None if unknown or missing."""
    node: Any = document
    for step in path.split("."):
        node = _value(node)
        if not isinstance(node, Mapping) or step not in node:
            return None
        node = node[step]
    return _value(node)


def of_host(path: str, words: Callable[[Any], str] = str) -> FactReader:
    """Return a function that describes a fact of the host."""
    return lambda experiment: _worded(fact_at(experiment.host, path), words)


def of_server(path: str, words: Callable[[Any], str] = str) -> FactReader:
    """Return a function that describes a fact of the server."""
    return lambda experiment: _worded(fact_at(experiment.server, path), words)


def of_sysctl(name: str) -> FactReader:
    """Return a function that describes a kernel setting, with white space normalised."""
    return lambda experiment: _worded(sysctls(experiment).get(name), lambda text: " ".join(str(text).split()))


def sysctls(experiment: Experiment) -> dict[str, str]:
    """Return the known kernel settings."""
    found = fact_at(experiment.host, "kernel.sysctls")
    values = {name: _value(fact) for name, fact in found.items()} if isinstance(found, Mapping) else {}
    return {name: str(value) for name, value in values.items() if value is not None}


def size(value: Any) -> str:
    """Return a size in bytes in words."""
    return numbers.size(value) if isinstance(value, int) else str(value)


def number(value: Any) -> str:
    """Return a number without needless decimals."""
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def gigahertz(value: Any) -> str:
    """Return a frequency in MHz in words."""
    return f"{value / 1000:.3g} GHz" if isinstance(value, int | float) else str(value)


def yes_or_no(value: Any) -> str:
    """Return a boolean in words."""
    return "yes" if value else "no"


def disks(host: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the disks that hold a host's data, or all disks if these are unknown."""
    found = [one for one in _listed(host, "block_devices") if isinstance(one, Mapping)]
    below = [_value(mount.get("disk")) for mount in _mounts(host)]
    return [one for one in found if one.get("name") in below] or found


def _mounts(host: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the file systems that hold data and WAL."""
    return [one for one in _listed(host, "mounts") if isinstance(one, Mapping)]


def of_disks(words: Callable[[Mapping[str, Any]], str | None]) -> FactReader:
    """Return a function that describes one fact of every disk with data; None if unknown for any disk."""
    return lambda experiment: _all_joined([words(one) for one in disks(experiment.host)])


def of_mounts(words: Callable[[Mapping[str, Any]], str | None]) -> FactReader:
    """Return a function that describes one fact of every file system; None if unknown for any."""
    return lambda experiment: _all_joined([words(one) for one in _mounts(experiment.host)])


def member(name: str, words: Callable[[Any], str] = str) -> Callable[[Mapping[str, Any]], str | None]:
    """Return a function that describes a member of a disk or a file system."""
    return lambda item: _worded(_value(item.get(name)), words)


def frequency_mhz(experiment: Experiment) -> float | None:
    """Return the processor's frequency in MHz; None if unknown or impossible."""
    found = fact_at(experiment.host, "cpu.frequency_mhz")
    return float(found) if isinstance(found, int | float) and 0 < found < float("inf") else None


def frequency_source(experiment: Experiment) -> str:
    """Return the source of the frequency, which determines its meaning."""
    node = experiment.host.get("cpu", {})
    fact = node.get("frequency_mhz") if isinstance(node, Mapping) else None
    return str(fact.get("source", "")) if isinstance(fact, Mapping) else ""


def mitigations(experiment: Experiment) -> str | None:
    """Return the kernel's mitigations for the processor's vulnerabilities."""
    found = fact_at(experiment.host, "cpu.mitigations")
    if not isinstance(found, Mapping):
        return None
    answers = {name: str(answer) for name, answer in found.items() if answer != "Not affected"}
    shown = [f"{name}: {answer.removeprefix('Mitigation: ')}" for name, answer in answers.items()]
    return BETWEEN_MITIGATIONS.join(shown) or "none"


def stolen_share(experiment: Experiment) -> float | None:
    """Return the mean steal share of CPU time over all blocks, void ones included."""
    shares = [block.audit["steal_share"] for block in experiment.blocks if "steal_share" in block.audit]
    return fmean(shares) if shares else None


def client_share(experiment: Experiment, workload: str, variant: str) -> float | None:
    """Return the client's mean share in the CPU time of client and server together."""
    shares = []
    for block in experiment.blocks:
        if block.workload != workload or block.void_for(variant):
            continue
        for arm in (one for one in block.arms if one.variant == variant):
            client, server = arm.values.get(CLIENT_CPU), arm.values.get(SERVER_CPU)
            if client is not None and server is not None and client + server > 0:
                shares.append(client / (client + server))
    return fmean(shares) if shares else None


def client_place(experiment: Experiment) -> str:
    """Return where the client runs, in words."""
    if CELL_OPTION in experiment.options:
        return "on a load host"
    split = _split(experiment.host, is_isolated=experiment.design.is_isolated)
    is_apart = experiment.design.is_isolated if split is None else split.is_isolated
    return "on separate CPUs" if is_apart else "on the server's CPUs"


def server_cpus(experiment: Experiment) -> str | None:
    """Return the server's CPU count in words."""
    return _worded(cpus_of_server(experiment.host, is_isolated=is_split(experiment)), number)


def is_split(experiment: Experiment) -> bool:
    """Whether server and client had separate CPUs of this machine; load hosts have their own."""
    return experiment.design.is_isolated and CELL_OPTION not in experiment.options


def cpus_of_server(host: Mapping[str, Any], *, is_isolated: bool) -> float | None:
    """Return the server's CPU count: CPUs within its limits, without those of the client.

    Limits may have been read before or after the server was pinned; the smaller number applies.
    """
    count, split = fact_at(host, "limits.cpu_count"), _split(host, is_isolated=is_isolated)
    if split is None or not isinstance(count, int | float):
        return None
    return min(count, len(split.server))


def _split(host: Mapping[str, Any], *, is_isolated: bool) -> CpuSplit | None:
    """Return how CPUs were divided between server and client; None if their number is unknown."""
    count = fact_at(host, "cpu.logical_count")
    if not isinstance(count, int) or not 0 < count <= _MOST_CPUS:
        return None
    return split_cpus(range(count), is_wanted=is_isolated)


def arms_in_turns(experiment: Experiment) -> str:
    """Describe the turns of the arms, and the servers that run with the measured one."""
    others = len(experiment.variants) - 1
    if experiment.design.kind is DesignKind.ALTERNATING:
        return "whole trials, one server at a time"
    alongside = {0: "alone", 1: "alongside another server"}.get(others, f"alongside {others} other servers")
    reading_s, writing_s = experiment.design.slice_s, experiment.design.for_writing().slice_s
    longer = "" if writing_s == reading_s else f" ({writing_s * 1000:g} ms for write workloads)"
    return f"in turns of {reading_s * 1000:g} ms{longer}, {alongside}"


def idling(experiment: Experiment) -> str | None:
    """Return whether idle CPUs were kept awake, in words; None if not recorded."""
    if experiment.awake is None:
        return None
    return "as booted" if experiment.awake.means is None else "kept awake"


def _listed(host: Mapping[str, Any], path: str) -> Sequence[Any]:
    found = fact_at(host, path)
    return found if isinstance(found, list | tuple) else ()


def _value(node: Any) -> Any:
    """Return a fact's value, None if it is unknown; other nodes unchanged."""
    if isinstance(node, Mapping) and "source" in node and ("value" in node or "unknown" in node):
        return node.get("value")
    return None if node == _REDACTED else node


def _worded(value: Any, words: Callable[[Any], str]) -> str | None:
    return None if value is None else words(value)


def _all_joined(texts: Sequence[str | None]) -> str | None:
    known = [text for text in texts if text is not None]
    return "; ".join(known) if known and len(known) == len(texts) else None
