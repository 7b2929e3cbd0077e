"""An arena on an attached server's own data, which are queried and never changed.

Nothing is loaded, and nothing restarted: rounds differ in their order alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.attached_base import AttachedBase
from pgdyno.measure.arenas.attached_server import find_attached_server
from pgdyno.measure.arenas.load import Loads
from pgdyno.model.experiments.workload import DataSet
from pgdyno.model.variants.variant import Variant


@dataclass(frozen=True)
class OwnDataArena(AttachedBase):
    """One running server, and the database of it that queries are about."""

    dsn: str
    data_directory: str
    database: str
    loads: Loads

    def load(self, _variant: Variant, _data_set: DataSet) -> None:
        """Load nothing: the data are there."""

    def has_seats(self, _variants: Sequence[Variant], _seats: Sequence[int], _data_set: DataSet) -> bool:
        """Return true: the one seat is the database itself."""
        return True

    def restore(
        self,
        _variants: Sequence[Variant],
        _seats: Sequence[int],
        _data_set: DataSet,
        _writing_s: float = 0.0,
    ) -> None:
        """Leave the data: queries only read, or are rolled back."""

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
