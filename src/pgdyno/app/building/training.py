"""Train an instrumented program under load.

It runs the workloads that it is built for, then a mix of other features.

Connections are persistent, kept open for a whole workload: each process of the server adds up its counts only
when it ends. The server is shut down in order, because one that is ended at once keeps nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import LiteralString

from pgdyno.app.arenas.arm import Arm
from pgdyno.app.arenas.load import Loads
from pgdyno.app.arenas.opening import open_scratch_arena
from pgdyno.app.arenas.scratch_arena import ScratchArena
from pgdyno.model.document import to_document
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import DataSet, Workload
from pgdyno.model.plans.recipe import TRAINING_S
from pgdyno.model.ports import Progress
from pgdyno.model.variants.variant import Variant
from pgdyno.server.process.installation import Installation
from pgdyno.toolchain.run.stages import Watch

_OURS = "postgres"  # a database to which no copy of a user's is restored, which has code of its owners
_DESIGN = Design(clients=4, is_isolated=False)

_ID_LENGTH = 8  # of a digest
_CHORES: tuple[LiteralString, ...] = (
    "CREATE TABLE chore (id bigint, kind int, note text, amount numeric(12, 2), at timestamptz)",
    """
    INSERT INTO chore
    SELECT i, i % 97, md5(i::text), i * 1.01, '2026-01-01'::timestamptz + i * '1 s'::interval
    FROM generate_series(1, 200000) AS i
    """,
    "ALTER TABLE chore ADD PRIMARY KEY (id)",
    "CREATE INDEX ON chore (kind, at)",
    "CREATE INDEX ON chore (note)",
    "ANALYZE chore",
    "SELECT kind, count(*), sum(amount), avg(amount), max(note) FROM chore GROUP BY kind ORDER BY 2 DESC, 1",
    "SELECT count(*) FROM chore a JOIN chore b ON a.id = b.id + 1 WHERE a.kind < 50",
    "SELECT a.kind, count(*) FROM chore a JOIN chore b USING (note) GROUP BY a.kind HAVING count(*) > 10",
    "SELECT id, row_number() OVER (PARTITION BY kind ORDER BY at) FROM chore WHERE kind IN (1, 2, 3)",
    "SELECT count(*) FROM chore WHERE note LIKE 'ab%' OR at > '2026-01-02'",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 20000) SELECT sum(n) FROM t",
    "UPDATE chore SET amount = amount + 1, note = upper(note) WHERE kind % 7 = 0",
    "DELETE FROM chore WHERE kind % 11 = 0",
    "VACUUM (ANALYZE) chore",
    "CREATE TABLE chore_copy (LIKE chore INCLUDING ALL)",
    "TRUNCATE chore_copy",
    "INSERT INTO chore_copy SELECT * FROM chore ON CONFLICT DO NOTHING",
    "DROP TABLE chore_copy",
)
"""What servers do besides their transactions: definitions, loading, sorting, joining, vacuuming."""
_COPY_OUT: LiteralString = "COPY chore TO STDOUT"
_COPY_IN: LiteralString = "COPY chore_again FROM STDIN"


def identity(workload: Workload) -> str:
    """Return the name by which a build knows a workload; of a captured one its contents and copy are part."""
    if workload.captured is None:
        return workload.name
    text = json.dumps([to_document(workload.captured), workload.data_set.key], sort_keys=True)
    return f"{workload.name}-{hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]}"


def train(
    installation: Installation,
    plain: Installation,
    environment: Mapping[str, str],
    workloads: Sequence[Workload],
    progress: Progress,
    watch: Watch,
) -> None:
    """Run the workloads on a server of this installation, in this environment.

    Their data are loaded by ``plain``, a build of the same version: what counts is run for nothing else.
    ``progress`` is told which of them runs, ``watch`` which share is over.

    Raises: ServerError, GeneratorError, StorageError.
    """
    variant = Variant("training", {f"env.{name}": value for name, value in environment.items()})
    ordered = sorted(workloads, key=lambda one: one.data_set.key)
    groups = [list(group) for _, group in groupby(ordered, key=lambda one: one.data_set.key)]
    lessons = _Lessons(progress, watch, len(workloads) + len(groups))
    # What is counted is the same however slowly it runs.
    with open_scratch_arena(installation, [variant], progress, is_isolated=False, is_timed=False) as arena:
        for group in groups:
            arena.data_sets.ensure(group[0].data_set, plain)
            _train_on_one_data_set(arena, variant, group, lessons)


@dataclass
class _Lessons:
    """Workloads, and chores on each data set: parts of a training that take about as long as each other."""

    progress: Progress
    watch: Watch
    count: int
    training_s: float = TRAINING_S
    over: int = 0

    @contextmanager
    def give(self, name: str) -> Iterator[None]:
        """Report the current training workload, and the share done when it ends."""
        self.progress.step(f"training on {name}")
        yield
        self.over += 1
        self.watch(self.over / self.count)


def _train_on_one_data_set(
    arena: ScratchArena, variant: Variant, workloads: Sequence[Workload], lessons: _Lessons
) -> None:
    data_set = workloads[0].data_set
    arena.restore([variant], [0], data_set)
    with arena.arms([variant], [0], data_set) as (arm,):
        for workload in workloads:
            with lessons.give(workload.name):
                _run(arena.loads, arm, workload, lessons.training_s)
        with lessons.give("chores"):
            _do_chores(arm, data_set)
        arm.server.stop()


def _run(loads: Loads, arm: Arm, workload: Workload, training_s: float) -> None:
    label = f"training.{workload.name}"
    with closing(loads.prepare([arm], [label], workload, _DESIGN, training_s, [0])) as turns:
        turns.warm_up(0, training_s)
        turns.end()
    loads.forget(label)


def _do_chores(arm: Arm, data_set: DataSet) -> None:
    database = arm.database if data_set.dump is None else _OURS
    with closing(arm.server.connect(database)) as connection:
        for statement in _CHORES:
            connection.execute(statement)
        connection.execute("CREATE TABLE chore_again (LIKE chore)")
        with connection.cursor() as cursor, cursor.copy(_COPY_OUT) as rows:
            copied = b"".join(bytes(row) for row in rows)
        with connection.cursor() as cursor, cursor.copy(_COPY_IN) as target:
            target.write(copied)
        connection.execute("DROP TABLE chore, chore_again")
