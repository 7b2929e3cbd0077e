"""An arena on someone's running server as it is: its own data are queried, nothing of it is changed.

Nothing is loaded, and nothing restarted: rounds differ in their order alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pgdyno.app.arm import Arm
from pgdyno.app.attached_server import find_attached_server
from pgdyno.app.load import Loads
from pgdyno.model.errors import UsageError
from pgdyno.model.study import Study
from pgdyno.model.variant import Variant
from pgdyno.model.workload import DataSet


@dataclass(frozen=True)
class VisitedArena:
    """One running server, and the database of it that queries are about."""

    dsn: str
    data_directory: str
    database: str
    loads: Loads

    @property
    def installation_name(self) -> None:
        """No command line that lacks the connection measures this server."""
        return

    def build_notes(self, _variants: Sequence[Variant]) -> tuple[str, ...]:
        """Say nothing: it is one server."""
        return ()

    def memory_note(self, limit_bytes: int) -> str:
        """Refuse: someone's server keeps the memory that it has. Raises: UsageError."""
        raise UsageError(
            f"the memory of a running server cannot be limited to {limit_bytes} bytes",
            hint="measure on servers that pgdyno starts: --embedded or --pg-bin",
        )

    def check(self, _variant: Variant, _data_set: DataSet) -> None:
        """Accept: the data are there."""

    def has_seats(self, _variants: Sequence[Variant], _seats: Sequence[int], _data_set: DataSet) -> bool:
        """Return true: the one seat is the database itself."""
        return True

    def restore(self, _variants: Sequence[Variant], _seats: Sequence[int], _data_set: DataSet) -> None:
        """Leave the data: whoever queries them here only reads."""

    def discard(self, _variants: Sequence[Variant], _seats: Sequence[int], _data_set: DataSet) -> None:
        """Leave the data."""

    @contextmanager
    def prepared_for(self, _study: Study) -> Iterator[VisitedArena]:
        """Provide the arena as it is."""
        yield self

    @contextmanager
    def arms(
        self,
        variants: Sequence[Variant],
        seats: Sequence[int],  # noqa: ARG002 — there is one
        data_set: DataSet,  # noqa: ARG002 — it is there
        server_memory_bytes: int | None = None,  # noqa: ARG002 — memory_note has refused it
    ) -> Iterator[list[Arm]]:
        """Provide the server as it runs."""
        (variant,) = variants
        server, environment = find_attached_server(self.dsn, self.data_directory)
        arm = Arm(variant, server, self.database, environment)
        try:
            yield [arm]
        finally:
            arm.close()
