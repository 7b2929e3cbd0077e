"""Verify an optimised build against the baseline, before it is installed.

Nothing in it counts any more; it passes PostgreSQL's own tests; it gives the same answers as the plain build
of the same source, to the last bit; each reads what the other has written; and no crash takes a commit that
was acknowledged. All of that on data of its own, which are thrown away.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pgdyno.base.ports import Progress
from pgdyno.builds.compiling.regression import ISOLATION, REGRESSION, Suite, run_suite, suites_of
from pgdyno.builds.optimise.residue import require_nothing_counts
from pgdyno.builds.product.manifest import Passed, Verified
from pgdyno.builds.run.making import Making
from pgdyno.builds.run.resumed_stages import Stage, Watch, share_of_all
from pgdyno.builds.verifying.crashes import survive_crashes
from pgdyno.builds.verifying.machine_code import least_moved_bytes
from pgdyno.builds.verifying.same_answers import ask_all, require_equal
from pgdyno.builds.verifying.same_data import require_same_data
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.workspace import Workspace

ROUNDS = 20  # of crashes, for either build
SECONDS = 280.0  # measured, all of it together: 205 s beside a training
_CHECKSUMS = ("--data-checksums",)  # equal for all majors: initdb switches them on by itself from 18 on
_PORT = 5432  # of a socket in a private directory
_TESTING = {"fsync": "off", "max_prepared_transactions": "10"}
"""Nothing of what is tested needs the disk; crashes are tried without this."""
_OF_MODULES = {"pg_stat_statements": {**_TESTING, "shared_preload_libraries": "pg_stat_statements"}}
"""It numbers queries, which the plans of other modules' tests would show."""


@dataclass(frozen=True)
class Candidate:
    """A build, and its tree. ``reference``: a baseline build of the same source; None: it is plain itself."""

    tested: Installation
    reference: Installation | None
    making: Making
    variables: Mapping[str, str]  # that its tree was made with
    extensions: tuple[str, ...]  # contrib modules that have tests; those that every build has are the last
    is_on_huge_pages: bool = False  # is its machine code to be


def verify(subject: Candidate, place: Workspace, progress: Progress, watch: Watch) -> Verified:
    """Try everything on data of its own, which are thrown away.

    Raises: InstallationError for the first thing that is not as it should be; errors of servers.
    """
    require_nothing_counts(subject.tested.bin_directory.parent)
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
            progress.step(f"trying {check.name}")
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
            "a data directory", 3, lambda _: initialise(first, self.place.account, self._data, _CHECKSUMS)
        )
        if self.subject.is_on_huge_pages:
            yield Stage("where its machine code lies", 2, self._look_at_code)
        for suite in (REGRESSION, ISOLATION):
            yield self._suite(suite, _TESTING)
        # Each makes the tests' database anew: what both builds read is left by modules that both have.
        for suite in suites_of(self.subject.extensions):
            yield self._suite(suite, _OF_MODULES.get(suite.name, _TESTING))
        if self.subject.reference is not None:
            yield Stage("answers to the last bit", 6, partial(self._compare_answers, self.subject.reference))
            yield Stage("data that move both ways", 25, partial(self._move_data, self.subject.reference))
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
        if suite.directory.startswith("contrib/"):  # some let the server connect to itself
            server.environment = address
        with server.running():
            number = run_suite(self.subject.making, suite, variables, watch)
        self._passed.append(Passed(suite.name, number))

    def _look_at_code(self, _: Watch) -> None:
        """Record how much code every process has on huge pages.

        Zero is no failure: the kernel may have no huge pages to give.
        """
        self._huge_text_bytes = least_moved_bytes(self._server(self.subject.tested, self._data, _TESTING))

    def _compare_answers(self, reference: Installation, _: Watch) -> None:
        answers = []
        for build in (reference, self.subject.tested):
            server = self._server(build, self._data, _TESTING)
            with server.running():
                answers.append(ask_all(server))
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
