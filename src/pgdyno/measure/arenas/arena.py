"""The arena: where the servers of an experiment are and are set to work.

scratch_arena.py     servers that pgdyno starts, side by side on byte-identical data
attached_arena.py    an owner's running server itself, in databases of our own
opening.py           opens them; ``OwnDataArena`` is the running server on its owner's data
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeAlias

from pgdyno.base.errors import LoadHostLostError
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.load import Loads
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import DataSet
from pgdyno.model.variants.variant import Variant

NOT_NEEDED = "no round was left to go on with"


class Arena(Protocol):
    """The servers, data and loads that rounds need.

    A *seat* is a place for an arm's data; arms change seats from round to round.
    """

    @property
    def loads(self) -> Loads:
        """The starter of generators on arms."""
        ...

    @property
    def installation_name(self) -> str | None:
        """The installation of variants that name no server.

        None means that no command line could name it again.
        """
        ...

    def check(self, variants: Sequence[Variant]) -> None:
        """Let servers judge all variants' settings, before any data set is loaded.

        Raises: SettingError with the server's own words.
        """
        ...

    def load(self, variant: Variant, data_set: DataSet) -> None:
        """Load the data set for a variant's server, unless it is there.

        Raises: StorageError, GeneratorError.
        """
        ...

    def build_notes(self, variants: Sequence[Variant]) -> tuple[str, ...]:
        """Describe the variants' builds, and their differences besides the version.

        Empty if there is only one build.
        """
        ...

    def memory_note(self, limit_bytes: int) -> str:
        """Say how servers' memory will be limited. Raises: PgdynoError if it cannot be."""
        ...

    def has_seats(self, variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet) -> bool:
        """Whether the seat of every variant holds the data set."""
        ...

    def restore(
        self, variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet, writing_s: float = 0.0
    ) -> None:
        """Put the data set, as it was loaded, on the seat of every variant.

        Each will be written to for ``writing_s``; servers that pgdyno starts get WAL segments for that.
        """
        ...

    def discard(self, variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet) -> None:
        """Give back the room of data that will not be used again."""
        ...

    def prepared_for(self, study: Study) -> AbstractContextManager[Arena]:
        """Provide the arena with the machine prepared for all rounds of a study.

        Raises: SettingError if the kernel does not take what they ask of it; PrivilegeError.
        """
        ...

    def arms(
        self,
        variants: Sequence[Variant],
        seats: Sequence[int],
        data_set: DataSet,
        server_memory_bytes: int | None = None,
    ) -> AbstractContextManager[list[Arm]]:
        """Provide the variants' servers, running and warm; they are given up at the end."""
        ...


@dataclass(frozen=True)
class Regained:
    """Load hosts after a loss: the arena that they load, their names, and the rest of a note."""

    arena: Arena
    hosts: tuple[str, ...]
    how: str


AfterLoss: TypeAlias = Callable[[Arena, LoadHostLostError], Regained]
"""Returns where to go on with which load hosts. Raises: the error, or another one, if there are none."""


def end_without_host(_: Arena, lost: LoadHostLostError) -> NoReturn:
    """Let the experiment end. Raises: the error."""
    raise lost
