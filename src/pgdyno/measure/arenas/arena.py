"""The arena: the servers of an experiment, with their data and their load.

scratch_arena.py     servers that pgdyno starts, running at the same time on byte-identical data
attached_arena.py    a user's running server, in databases that pgdyno creates
opening.py           opens arenas; ``OwnDataArena`` is a running server with the user's own data

A pass runs all steps of a benchmark in an arena, each as a whole, on one arm alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeAlias

from pgdyno.base.errors import LoadHostLostError
from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.meters import MeterModule
from pgdyno.model.experiments.experiment import Block, Design, Experiment
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import DataSet, Workload
from pgdyno.model.variants.schema_sql import SchemaChange
from pgdyno.model.variants.variant import Variant

NOT_NEEDED = "no further round needs it"


class Arena(Protocol):
    """The servers, data and loads that rounds need.

    A *seat* is a place for an arm's data; arms change seats from round to round.
    """

    @property
    def loads(self) -> Loads:
        """Starts load generators on arms."""
        ...

    @property
    def installation_name(self) -> str | None:
        """The installation of variants that name no server; None if no command line can name it."""
        ...

    def why_uncounted(self, variants: Sequence[Variant]) -> str:
        """Return why not all variants' servers can count statements; empty if they can."""
        ...

    def check(self, variants: Sequence[Variant]) -> None:
        """Let servers validate all variants' settings, before any data set is loaded.

        Raises: SettingError with the server's message.
        """
        ...

    def load(self, variant: Variant, data_set: DataSet) -> None:
        """Load the data set for a variant's server, unless already loaded.

        Raises: StorageError, GeneratorError.
        """
        ...

    def schema_changes(
        self, variants: Sequence[Variant], workloads: Sequence[Workload]
    ) -> tuple[SchemaChange, ...]:
        """Return the costs of all variants' SQL on the data of each workload; empty if none has any."""
        ...

    def build_notes(self, variants: Sequence[Variant]) -> tuple[str, ...]:
        """Return notes on the variants' builds, and on differences other than the version.

        Empty if there is only one build.
        """
        ...

    def memory_note(self, limit_bytes: int) -> str:
        """Return a note on the limit of servers' memory. Raises: PgdynoError if it cannot be limited."""
        ...

    def has_seats(self, variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet) -> bool:
        """Whether every variant's seat holds the data set."""
        ...

    def restore(
        self, variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet, writing_s: float = 0.0
    ) -> None:
        """Put the data set in its initial state on every variant's seat.

        Each will be written to for ``writing_s``; servers that pgdyno starts get WAL segments for that.
        """
        ...

    def discard(self, variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet) -> None:
        """Free the disk space of data that are no longer needed."""
        ...

    def prepared_for(self, study: Study) -> AbstractContextManager[Arena]:
        """Provide the arena with the machine prepared for all rounds of a study.

        Raises: SettingError if the kernel rejects a value; PrivilegeError.
        """
        ...

    def arms(
        self,
        variants: Sequence[Variant],
        seats: Sequence[int],
        data_set: DataSet,
        server_memory_bytes: int | None = None,
    ) -> AbstractContextManager[list[Arm]]:
        """Provide the variants' servers, running and warm; they are released at the end."""
        ...


@dataclass(frozen=True)
class Regained:
    """The load hosts after a loss: the arena, their names, and ``how`` for the note."""

    arena: Arena
    hosts: tuple[str, ...]
    how: str


AfterLoss: TypeAlias = Callable[[Arena, LoadHostLostError], Regained]
"""Returns the arena and load hosts to continue with. Raises: the error, or another one, if none is left."""


def end_without_host(_: Arena, lost: LoadHostLostError) -> NoReturn:
    """End the experiment. Raises: the error."""
    raise lost


@dataclass(frozen=True)
class OneArm:
    """The arm of a pass, and the context of its round; ``round`` counts from 0."""

    arm: Arm
    loads: Loads
    design: Design
    round: int
    meters: Sequence[MeterModule]
    announce: Callable[[str], None] = lambda _: None  # reports progress


class Passes(Protocol):
    """Measures a benchmark. One object serves all passes of an experiment."""

    def checked(
        self, experiment: Experiment, arena: Arena, workloads: Sequence[Workload], progress: Progress
    ) -> Experiment:
        """Check the servers before the first pass; return the experiment with the results.

        Raises: MeasurementError for a server whose answers are wrong.
        """
        ...

    def measured(self, on: OneArm, workloads: Sequence[Workload]) -> list[Block]:
        """Run a pass on an arm, and return a block for each of its workloads.

        Raises: GeneratorError, StorageError, ServerCrashedError; MeasurementError.
        """
        ...
