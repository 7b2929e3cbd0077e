"""Verify an optimised build against the baseline, before it is installed.

The build must contain no instrumentation, pass PostgreSQL's own tests, give results that are bit-identical to
the plain build of the same source, exchange data with it in both directions, and lose no acknowledged commit
in a crash. All checks run on temporary data.

The compared queries depend on every single floating-point operation. A compiler that contracts multiply and
add, keeps more precision than the type has, or sums in another order, changes the last bit of some results.
Results are compared as PostgreSQL prints them, in the shortest text that identifies one value, and plans
together with their costs.

One data directory is moved between the two builds, both ways, and its contents are compared. It contains what
PostgreSQL's own tests leave behind: objects of nearly every kind.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import LiteralString

from pgdyno.base.errors import InstallationError
from pgdyno.base.ports import Progress
from pgdyno.builds.compiling.regression import ISOLATION, REGRESSION, Suite, run_suite, suites_of
from pgdyno.builds.make import Making, Stage, Watch, share_of_all
from pgdyno.builds.optimise.huge_text import moved_bytes
from pgdyno.builds.product.manifest import Passed, Verified
from pgdyno.builds.verifying.crashes import survive_crashes
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.processes import children, read_process
from pgdyno.postgres.process.workspace import Workspace

ROUNDS = 20  # crashes of each build
SECONDS = 280.0  # for all checks; measured: 205 s in parallel with a training
_CHECKSUMS = ("--data-checksums",)  # equal for all majors: they are initdb's default from 18 on
_PORT = 5432  # of a socket in a private directory
_TESTING = {"fsync": "off", "max_prepared_transactions": "10"}
"""For tests that do not depend on durability; crashes are tested without these settings."""
_OF_MODULES = {"pg_stat_statements": {**_TESTING, "shared_preload_libraries": "pg_stat_statements"}}
"""Only for its own tests: it computes query identifiers, which plans in other modules' tests would show."""
_STARTS = 2  # the code is moved again at each start
_CORPUS = files(__package__) / "corpus"
Answers = Mapping[str, tuple[str, ...]]
"""The lines of each query's result, by the query's text."""
_LIMIT_S = 600.0  # arbitrary; each takes seconds
_AMCHECK = "SELECT 1 FROM pg_available_extensions WHERE name = 'amcheck'"
_WRITTEN: tuple[LiteralString, ...] = (
    "CREATE TABLE IF NOT EXISTS moved (id bigint PRIMARY KEY, x float8, note text)",
    "CREATE INDEX IF NOT EXISTS moved_sum ON moved ((sin(x) * x + id))",
    """
    INSERT INTO moved SELECT i, i / 7.0, repeat(md5(i::text), 1 + (i % 97)::int)
    FROM (SELECT coalesce(max(id), 0) AS last FROM moved) AS known, generate_series(last + 1, last + 5000) i
    """,
    "UPDATE moved SET x = x * 1.1 WHERE id % 3 = 0",
    "DELETE FROM moved WHERE id % 11 = 0",
    "VACUUM (ANALYZE) moved",
)


@dataclass(frozen=True)
class Candidate:
    """A build, and its source tree. ``reference``: a baseline build of the same source; None: it is plain."""

    tested: Installation
    reference: Installation | None
    making: Making
    variables: Mapping[str, str]  # make's, as used for its tree
    extensions: tuple[str, ...]  # contrib modules with tests; those of every build come last
    is_on_huge_pages: bool = False  # whether its machine code should be


def verify(subject: Candidate, place: Workspace, progress: Progress, watch: Watch) -> Verified:
    """Run all checks on temporary data.

    Raises: InstallationError for the first failed check; errors of servers.
    """
    require_no_instrumentation(subject.tested.bin_directory.parent)
    with place.scratch() as scratch, place.sockets(scratch) as sockets:
        return _Verifying(subject, place, scratch, sockets).run(progress, watch)


@dataclass
class _Verifying:
    """The checks to run, in order, and their results so far."""

    subject: Candidate
    place: Workspace
    scratch: Path
    sockets: Path
    _passed: list[Passed] = field(default_factory=list, init=False)
    _answers: int = field(default=0, init=False)
    _crashes: int = field(default=0, init=False)
    _huge_text_bytes: int | None = field(default=None, init=False)

    def run(self, progress: Progress, watch: Watch) -> Verified:
        began_s, done_s = time.monotonic(), 0.0
        for check in (checks := tuple(self._checks())):
            progress.step(f"verifying: {check.name}")
            check.run(share_of_all(watch, done_s, check.expected_s, sum(one.expected_s for one in checks)))
            done_s += check.expected_s
        return Verified(
            suites=tuple(self._passed),
            reference=self.subject.reference.name if self.subject.reference else "",
            answers=self._answers,
            crashes=self._crashes,
            huge_text_bytes=self._huge_text_bytes,
            seconds=round(time.monotonic() - began_s, 1),
            is_emulated=self.subject.tested.foreign_machine != "",
        )

    def _checks(self) -> Iterator[Stage]:
        first = self.subject.reference or self.subject.tested
        yield Stage(
            "new data directory", 3, lambda _: initialise(first, self.place.account, self._data, _CHECKSUMS)
        )
        if self.subject.is_on_huge_pages:
            yield Stage("machine code on huge pages", 2, self._look_at_code)
        for suite in (REGRESSION, ISOLATION):
            yield self._suite(suite, _TESTING)
        # Each suite recreates the test database. The last ones are of modules that both builds have, so both
        # can read what is left.
        for suite in suites_of(self.subject.extensions):
            yield self._suite(suite, _OF_MODULES.get(suite.name, _TESTING))
        if self.subject.reference is not None:
            yield Stage("bit-identical results", 6, partial(self._compare_answers, self.subject.reference))
            yield Stage("data moved both ways", 25, partial(self._move_data, self.subject.reference))
        yield Stage("crashes under load", 2.5 * ROUNDS * len(self._builds), self._crash)

    def _suite(self, suite: Suite, settings: Mapping[str, str]) -> Stage:
        return Stage(
            f"PostgreSQL's own tests: {suite.name}", suite.seconds, partial(self._test, suite, settings)
        )

    def _test(self, suite: Suite, settings: Mapping[str, str], watch: Watch) -> None:
        server = self._server(self.subject.tested, self._data, settings)
        programs = self.subject.tested.bin_directory
        address = {"PGHOST": server.host, "PGPORT": str(server.port), "PGUSER": server.user}
        variables = {
            **self.subject.variables,
            **address,
            "bindir": str(programs),
            "LD_LIBRARY_PATH": str(programs.parent / "lib"),  # else test programs find the system's libpq
        }
        if suite.directory.startswith("contrib/"):  # in some tests the server connects to itself
            server.environment = address
        with server.running():
            number = run_suite(self.subject.making, suite, variables, watch)
        self._passed.append(Passed(suite.name, number))

    def _look_at_code(self, _: Watch) -> None:
        """Record the minimum size of code on huge pages over all processes.

        Zero is not a failure: the kernel may have no free huge pages.
        """
        self._huge_text_bytes = least_moved_bytes(self._server(self.subject.tested, self._data, _TESTING))

    def _compare_answers(self, reference: Installation, _: Watch) -> None:
        answers = []
        for build in (reference, self.subject.tested):
            server = self._server(build, self._data, _TESTING)
            with server.running():
                answers.append(query_all(server))
        self._answers = require_equal(*answers)

    def _move_data(self, reference: Installation, _: Watch) -> None:
        require_same_data(
            self._server(self.subject.tested, self._data, _TESTING),
            self._server(reference, self._data, _TESTING),
        )

    def _crash(self, watch: Watch) -> None:
        data = self.scratch / "crashed"
        initialise(self._builds[0], self.place.account, data, _CHECKSUMS)
        servers = [self._server(build, data, {}) for build in self._builds]
        self._crashes = survive_crashes(servers, ROUNDS, watch)

    @property
    def _builds(self) -> tuple[Installation, ...]:
        builds = (self.subject.tested, self.subject.reference)
        return tuple(build for build in builds if build is not None)

    @property
    def _data(self) -> Path:
        return self.scratch / "data"

    def _server(self, build: Installation, data: Path, settings: Mapping[str, str]) -> Instance:
        return Instance(build, self.place.account, data, self.sockets, _PORT, settings)


def least_moved_bytes(server: Instance) -> int:
    """Return the minimum size of code on huge pages over a server's processes, before and after a restart.

    The processes are the postmaster, its auxiliary processes, and one backend.
    """
    return min(_moved_by_any(server) for _ in range(_STARTS))


def _moved_by_any(server: Instance) -> int:
    with server.running(), closing(server.connect()) as client:
        backend = client.info.backend_pid
        of_children = (read_process(pid, "smaps") for pid in children(server.pid) if pid != backend)
        smaps = [read_process(server.pid, "smaps"), read_process(backend, "smaps"), *of_children]
        return min(moved_bytes(text) for text in smaps if text)  # empty for a process that has exited


def query_all(server: Instance) -> Answers:
    """Return the results of all queries on a running server, in a temporary database."""
    with closing(server.connect()) as connection:
        connection.execute("CREATE DATABASE answers TEMPLATE template0")
        try:
            return _ask_in_database(server)
        finally:
            connection.execute("DROP DATABASE answers")


def require_equal(expected: Answers, found: Answers) -> int:
    """Return the number of compared lines. Raises: InstallationError showing the first difference."""
    for question, lines in expected.items():
        for line, other in zip(lines, found[question], strict=False):
            if line != other:
                raise _differ(question, line, other)
        if len(lines) != len(found[question]):
            raise _differ(question, f"{len(lines)} lines", f"{len(found[question])} lines")
    return sum(len(lines) for lines in expected.values())


def _ask_in_database(server: Instance) -> Answers:
    with closing(server.connect("answers")) as connection:
        for statement in _read("preparation"):
            connection.execute(statement)
        answers = {}
        for question in _read("questions"):
            with connection.cursor() as cursor, cursor.copy(f"COPY ({question}) TO STDOUT".encode()) as rows:
                answers[question] = tuple(bytes(row).decode() for row in rows)
        for question in _read("plans"):
            plan = connection.execute(f"EXPLAIN (VERBOSE) {question}".encode()).fetchall()
            answers[f"EXPLAIN {question}"] = tuple(line for (line,) in plan)
    return answers


def _read(name: str) -> list[str]:
    """Return the statements in a file of the corpus, without comments."""
    text = (_CORPUS / f"{name}.sql").read_text()
    statements = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return [statement.strip() for statement in f"{statements}\n".split(";\n") if statement.strip()]


def _differ(question: str, expected: str, found: str) -> InstallationError:
    return InstallationError(
        "the finished build gives a different result than the plain build of the same source",
        detail=f"{question}\n         plain:     {expected.strip()}\n         optimised: {found.strip()}",
        hint="do not use it for data; try another compiler or a lower optimisation level",
    )


def require_same_data(first: Instance, second: Instance) -> None:
    """Check that two stopped servers of one data directory can read and write it in turns.

    Raises: InstallationError for different dumps, or with pg_amcheck's findings; errors of servers.
    """
    left = _write_and_dump(first)
    for server in (second, first):
        with server.running():
            _require_equal(left, _dump(server), server)
            _check(server)
        left = _write_and_dump(server)


def _write_and_dump(server: Instance) -> list[bytes]:
    with server.running():
        with closing(server.connect()) as connection:
            for statement in _WRITTEN:
                connection.execute(statement)
        return _dump(server)


def _dump(server: Instance) -> list[bytes]:
    """Return the lines of a dump of all databases, by the server's own pg_dumpall."""
    output = _run(server, "pg_dumpall", "--no-sync")
    # These lines have a random key that differs in every dump.
    return [line for line in output.split(b"\n") if not line.startswith((b"\\restrict ", b"\\unrestrict "))]


def _check(server: Instance) -> None:
    """Check every table and index with pg_amcheck, unless amcheck is missing, as in older plain builds."""
    with closing(server.connect()) as connection:
        if connection.execute(_AMCHECK).fetchone() is None:
            return
    _run(server, "pg_amcheck", "--all", "--install-missing", "--heapallindexed", "--rootdescend")


def _run(server: Instance, program: str, *options: str) -> bytes:
    address = (f"--host={server.host}", f"--port={server.port}", f"--username={server.user}")
    done = server.account.run([server.installation.program(program), *address, *options], limit_s=_LIMIT_S)
    if done.returncode != 0:
        output = (done.stdout + done.stderr).decode(errors="replace").splitlines()
        raise InstallationError(
            f'"{program}" of {server.installation.title} failed with status {done.returncode}',
            detail="\n         ".join(output[-12:]) or None,
        )
    return done.stdout


def _require_equal(expected: Sequence[bytes], found: Sequence[bytes], server: Instance) -> None:
    for line, other in zip_longest(expected, found, fillvalue=b"(nothing)"):
        if line != other:
            written, read = line.decode(errors="replace"), other.decode(errors="replace")
            raise InstallationError(
                f"{server.installation.title} reads different data than the other build wrote",
                detail=f"in a dump of all databases:\n         written: {written}\n         read:    {read}",
                hint="do not use it for data; try another compiler or a lower optimisation level",
            )


_MARKS = (b"__gcov_", b"__llvm_prf_", b"__llvm_profile_", b"__bolt_instr")
"""Symbols and sections that only instrumented files contain, by gcc, clang and BOLT."""


def require_no_instrumentation(prefix: Path) -> None:
    """Raise InstallationError if any file of an installation is instrumented."""
    counting = [path for path in sorted(prefix.rglob("*")) if path.is_file() and _counts(path)]
    if counting:
        raise InstallationError(
            f"{len(counting)} files of the finished build are still instrumented",
            detail=f"for example {counting[0].relative_to(prefix)}",
            hint="this is a bug in pgdyno: a stage left files of an earlier stage behind",
        )


def _counts(path: Path) -> bool:
    content = path.read_bytes()
    return any(mark in content for mark in _MARKS)
