"""Common behaviour of arenas on an attached server: one server, kept as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import DataSet
from pgdyno.model.variants.variant import Variant


class AttachedBase:
    """Behaviour of attached arenas that differs from arenas of scratch servers."""

    @property
    def installation_name(self) -> None:
        """No command line measures this server again as it was found."""
        return

    def build_notes(self, _variants: Sequence[Variant]) -> tuple[str, ...]:
        """Say nothing: it is one server."""
        return ()

    def memory_note(self, limit_bytes: int) -> str:
        """Refuse: the memory of an attached server is never limited. Raises: UsageError."""
        raise UsageError(
            f"the memory of a running server cannot be limited to {limit_bytes} bytes",
            hint="measure on servers that pgdyno starts: --embedded or --pg-bin",
        )

    def shared_memory_bytes(self, _variant: Variant) -> int:
        """Return nothing: no pool of huge pages is made for this server."""
        return 0

    def check(self, _variants: Sequence[Variant]) -> None:
        """Accept: the server itself judges settings when they are applied."""

    def discard(self, _variants: Sequence[Variant], _seats: Sequence[int], _data_set: DataSet) -> None:
        """Leave the data: its owner's stay, and ours go with the arena."""

    @contextmanager
    def prepared_for(self, _study: Study) -> Iterator[Self]:
        """Provide the arena as it is: the machine is not prepared for anything."""
        yield self
