"""Train an instrumented server: run the training workloads, then a mix of other features.

Connections stay open for a whole workload, because a server process writes its counts only when it exits.
The server is stopped without an immediate shutdown, which would lose the counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import LiteralString

from pgdyno.base.ports import Progress
from pgdyno.builds.make import Watch
from pgdyno.builds.training_workloads import Lesson
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import DataSet, Workload
from pgdyno.model.plans.recipe import TRAINING_S
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.installation import Installation

_OURS = "postgres"  # no user's copy, with code of its owners, is restored into this database
_DESIGN = Design(clients=4, is_isolated=False)
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
"""Server work other than transactions: DDL, loading, sorting, joining, vacuuming."""
_COPY_OUT: LiteralString = "COPY chore TO STDOUT"
_COPY_IN: LiteralString = "COPY chore_again FROM STDIN"


def check_settings(plain: Installation, lessons: Sequence[Lesson], progress: Progress) -> None:
    """Check the lessons' settings on a plain build's server, before compiling.

    Raises: SettingError with the server's message.
    """
    variants = [lesson.variant for lesson in lessons if lesson.variant.settings]
    if variants:
        with open_scratch_arena(plain, variants, progress, is_isolated=False, is_timed=False) as arena:
            arena.check(variants)


def train(
    installation: Installation,
    plain: Installation,
    environment: Mapping[str, str],
    lessons: Sequence[Lesson],
    progress: Progress,
    watch: Watch,
) -> None:
    """Run the lessons' workloads on servers of this installation, in this environment.

    Lessons with the same data and settings share a server.

    ``plain``, a build of the same version, loads the data, so that the instrumented server runs only the
    training. ``progress`` gets the current workload, ``watch`` the completed share.

    Raises: ServerError, GeneratorError, StorageError.
    """
    variables = {f"env.{name}": value for name, value in environment.items()}
    groups = [list(group) for _, group in groupby(sorted(lessons, key=_server_of), key=_server_of)]
    variants = [Variant("training", {**group[0].variant.settings, **variables}) for group in groups]
    course = _Course(progress, watch, len(lessons) + len(groups))
    # Counts do not depend on speed, so isolation and timing are unnecessary.
    with open_scratch_arena(installation, variants, progress, is_isolated=False, is_timed=False) as arena:
        for variant, group in zip(variants, groups, strict=True):
            arena.data_sets.ensure(group[0].workload.data_set, plain)
            _train_on_one_server(arena, variant, group, course)


def _server_of(lesson: Lesson) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the key of a lesson's server: data set and settings."""
    return lesson.workload.data_set.key, tuple(lesson.variant.settings.items())


@dataclass
class _Course:
    """The parts of a training: lessons, and chores on each server. All take about equally long."""

    progress: Progress
    watch: Watch
    count: int
    training_s: float = TRAINING_S
    over: int = 0

    @contextmanager
    def give(self, name: str) -> Iterator[None]:
        """Report the current training workload, and at its end the completed share."""
        self.progress.step(f"training on {name}")
        yield
        self.over += 1
        self.watch(self.over / self.count)


def _train_on_one_server(
    arena: ScratchArena, variant: Variant, lessons: Sequence[Lesson], course: _Course
) -> None:
    data_set = lessons[0].workload.data_set
    arena.restore([variant], [0], data_set)
    with arena.arms([variant], [0], data_set) as (arm,):
        for lesson in lessons:
            with course.give(str(lesson.variant)):
                _run(arena.loads, arm, lesson.workload, course.training_s)
        with course.give("chores"):
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
