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
from pgdyno.plan.engine.metadata import Goal, Lever
from pgdyno.plan.engine.resources import Resources, StorageKind
from pgdyno.postgres.guc import format_bytes
from pgdyno.postgres.server import Server
from pgdyno.postgres.statements import CommitGrouping, WorkloadStatements

T = TypeVar("T")


class Probe(Protocol):
    """Asks the server's own programs and files for facts not available otherwise.

    Equal questions have equal answers.
    """

    def shared_memory_bytes(self, settings: Mapping[str, str]) -> Fact[int]:
        """Return the size of the shared memory segment of a server with these settings changed."""
        ...

    def page_compression(self) -> Fact[PageCompression]:
        """Return LZ4's compression ratio and cost for pages of the server's data."""
        ...


@dataclass(frozen=True)
class PlanContext:
    """Everything a lever may look at. ``host`` is None unless the server is proven to run on it.

    ``planned_files`` are what levers before this one write into the kernel's files, by path.
    ``may_change_host`` False: whoever asks is not root, and wants what can be done without. ``builds`` are
    those that its data could be run by, the newest first; None: it stays with its own. ``statements`` are
    those of the workloads that a scratch server is measured with; None: the server is somebody's own.
    ``commits`` is how commits share flushes there, ``sessions`` how many of these workloads' sessions are
    busy at once: of the one with the fewest.
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
        """Whether it is a server of pgdyno's own, which nobody else uses or watches."""
        return self.statements is not None

    @property
    def server(self) -> Server:
        """The server as found."""
        return self.settings.server

    def unknown_need(self, lever: Lever) -> str | None:
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
        """Return a fact by its dotted name; none is known of a host that the server may not run on."""
        if self.host is None:
            return unknown("the server is not proven to run on a host that was inspected", name)
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
        """Free space where the data directory lies."""
        return _known(self.resources.free_disk_bytes)

    @property
    def disks(self) -> tuple[BlockDevice, ...]:
        """The disk of the data directory, and after it that of the WAL if it is another."""
        return _known(self.resources.disks)

    @property
    def default_work_mem(self) -> str:
        """The minimum per session, whatever other items take: levers before work_mem rely on it."""
        guc = self.settings.guc("work_mem")
        return guc.boot_val or guc.setting

    def owner_of(self, files: Sequence[str]) -> Owner | None:
        """Return who else sets one of these files, paths or patterns, by himself; None if nobody is known."""
        owners = () if self.host is None else self.host.owners.or_else(())
        return next((owner for owner in owners if any(map(owner.sets, files))), None)

    def file(self, path: str) -> Fact[str]:
        """Return the first line of a file of the kernel as it was found."""
        found = None if self.host is None else self.host.kernel_files.get(path)
        return unknown("the host was not inspected", path) if found is None else found

    def value(self, path: str) -> str | None:
        """Return the kernel's value, as planned or found; None where it has no such file."""
        text = self.file(path).or_none()
        return None if text is None else self.planned_files.get(path, value_in(text))

    def files(self, pattern: str) -> tuple[str, ...]:
        """Return the files that a pattern stands for on this host."""
        known = {} if self.host is None else self.host.kernel_files
        return tuple(path for path, fact in known.items() if fact.is_known and matches(path, pattern))

    def proof(self, **planned: str) -> MemoryProof | None:
        """Return the memory proof with more values planned."""
        return memory_proof(self.settings.plus(planned), self.resources)

    def largest_that_fits(self, name: str, sizes_bytes: Sequence[int], **planned: str) -> int | None:
        """Return the first of ``sizes_bytes``, largest first, whose worst case stays in ``PLANNED_BELOW``."""

        def fits(size_bytes: int) -> bool:
            proof = self.proof(**{**planned, name: format_bytes(size_bytes)})
            return proof is None or proof.share <= PLANNED_BELOW

        first = bisect_left(sizes_bytes, True, key=fits)  # noqa: FBT003 — what is looked for
        return sizes_bytes[first] if first < len(sizes_bytes) else None


def _known(fact: Fact[T]) -> T:
    """Return a fact's value. Raises: LookupError if the lever forgot to declare its need."""
    known = fact.or_none()
    if known is None:
        raise LookupError(f"a lever used a fact that it does not declare in LEVER.needs or .facts: {fact}")
    return known


def matches(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern, name by name."""
    names, patterns = path.split("/"), pattern.split("/")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))
