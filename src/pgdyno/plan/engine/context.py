"""The context of a lever: the server as planned so far, its resources, its host, and probes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.host.host import BlockDevice, Host, Owner
from pgdyno.host.kernel_file import value_in
from pgdyno.host.probes import PageCompression
from pgdyno.model.plans.plan import MemoryProof
from pgdyno.model.plans.recipe import KnownBuild
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.memory_proof import PLANNED_BELOW, memory_proof
from pgdyno.plan.engine.metadata import Goal, LeverMetadata
from pgdyno.plan.engine.resources import Resources, StorageKind
from pgdyno.postgres.guc import format_bytes
from pgdyno.postgres.server import Server
from pgdyno.postgres.statements import CommitGrouping, WorkloadStatements

T = TypeVar("T")


class Probe(Protocol):
    """Source of facts that only the server's own programs and files provide.

    Deterministic: equal arguments give equal results.
    """

    def shared_memory_bytes(self, settings: Mapping[str, str]) -> Fact[int]:
        """Return the size of the shared memory segment of a server with these settings changed."""
        ...

    def page_compression(self) -> Fact[PageCompression]:
        """Return LZ4's compression ratio and cost for pages of the server's data."""
        ...


@dataclass(frozen=True)
class PlanContext:
    """Everything a lever may read. ``host`` is None unless the server is proven to run on it.

    ``planned_files`` are the values that earlier levers write to kernel files, by path.
    ``may_change_host`` False: the user is not root; plan only changes that need no root. ``builds`` are the
    builds that can run the server's data, newest first; None: it keeps its build. ``statements`` are those
    of the workloads that a scratch server is measured with; None: it is not a scratch server. ``commits``
    describes how commits share flushes there. ``sessions`` is the number of concurrently active sessions in
    the workload with the fewest.
    """

    settings: EffectiveSettings
    resources: Resources
    connections: int | None = None  # as stated by the user
    host: Host | None = None
    goal: Goal = Goal.OLTP
    planned_files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    probe: Probe | None = None
    may_change_host: bool = True
    builds: tuple[KnownBuild, ...] | None = None
    statements: Fact[tuple[WorkloadStatements, ...]] | None = None
    commits: Fact[CommitGrouping] | None = None
    sessions: int | None = None

    @property
    def is_scratch(self) -> bool:
        """Whether pgdyno created the server, so that no one else uses or monitors it."""
        return self.statements is not None

    @property
    def server(self) -> Server:
        """The server as found."""
        return self.settings.server

    def unknown_need(self, lever: LeverMetadata) -> str | None:
        """Return why a fact that the lever needs is unknown; None if all are known."""
        needs: list[Fact[object]] = [getattr(self.resources, need.value) for need in lever.needs]
        for fact in needs:
            if isinstance(fact.value, Unknown):
                return fact.value.reason
        for fact in map(self.fact, lever.facts):
            if isinstance(fact.value, Unknown):
                return f"not available: {fact.source}: {fact.value.reason}"
        return None

    def fact(self, name: str) -> Fact[Any]:
        """Return a fact by its dotted name; unknown if the server is not proven to run on ``host``."""
        if self.host is None:
            return unknown("the server is not proven to run on an inspected host", name)
        found: Fact[Any] = attrgetter(name)(self)
        return found

    def known(self, name: str) -> Any:
        """Return the value of a fact that the lever declares in ``LEVER.facts``."""
        return _known(self.fact(name))

    @staticmethod
    def why_unknown(fact: Fact[T]) -> str:
        """Return why a fact has no value."""
        return fact.value.reason if isinstance(fact.value, Unknown) else f"read from {fact.source}"

    @property
    def memory_bytes(self) -> int:
        """The smallest memory limit."""
        return _known(self.resources.memory_bytes)

    @property
    def cpu_count(self) -> float:
        """CPUs the server may use."""
        return _known(self.resources.cpu_count)

    @property
    def storage(self) -> StorageKind:
        """Storage of the data directory."""
        return _known(self.resources.storage)

    @property
    def data_bytes(self) -> int:
        """Size of all databases."""
        return _known(self.resources.data_bytes)

    @property
    def free_disk_bytes(self) -> int:
        """Free space for the data directory and the WAL."""
        return _known(self.resources.free_disk_bytes)

    @property
    def disks(self) -> tuple[BlockDevice, ...]:
        """The data directory's disk, followed by the WAL's if different."""
        return _known(self.resources.disks)

    @property
    def default_work_mem(self) -> str:
        """The guaranteed minimum per session; levers that run before work_mem rely on it."""
        guc = self.settings.guc("work_mem")
        return guc.boot_val or guc.setting

    def owner_of(self, files: Sequence[str]) -> Owner | None:
        """Return the other tool that sets one of these files (paths or patterns); None if none is known."""
        owners = () if self.host is None else self.host.owners.or_else(())
        return next((owner for owner in owners if any(map(owner.sets, files))), None)

    def file(self, path: str) -> Fact[str]:
        """Return the first line of a kernel file as found."""
        found = None if self.host is None else self.host.kernel_files.get(path)
        return unknown("the host was not inspected", path) if found is None else found

    def value(self, path: str) -> str | None:
        """Return the value of a kernel file, as planned or found; None if the kernel does not have it."""
        text = self.file(path).or_none()
        return None if text is None else self.planned_files.get(path, value_in(text))

    def files(self, pattern: str) -> tuple[str, ...]:
        """Return this host's readable kernel files that match a pattern."""
        known = {} if self.host is None else self.host.kernel_files
        return tuple(path for path, fact in known.items() if fact.is_known and matches(path, pattern))

    def proof(self, **planned: str) -> MemoryProof | None:
        """Return the memory proof with more values planned."""
        return memory_proof(self.settings.plus(planned), self.resources)

    def largest_that_fits(self, name: str, sizes_bytes: Sequence[int], **planned: str) -> int | None:
        """Return the first of ``sizes_bytes``, largest first, with a worst case within ``PLANNED_BELOW``."""

        def fits(size_bytes: int) -> bool:
            proof = self.proof(**{**planned, name: format_bytes(size_bytes)})
            return proof is None or proof.share <= PLANNED_BELOW

        first = bisect_left(sizes_bytes, True, key=fits)  # noqa: FBT003 — the value to find
        return sizes_bytes[first] if first < len(sizes_bytes) else None


def _known(fact: Fact[T]) -> T:
    """Return a fact's value. Raises: LookupError if the lever did not declare its need."""
    known = fact.or_none()
    if known is None:
        raise LookupError(f"a lever used a fact that it does not declare in LEVER.needs or .facts: {fact}")
    return known


def matches(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern, component by component."""
    names, patterns = path.split("/"), pattern.split("/")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))
