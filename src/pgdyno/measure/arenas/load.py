"""Start load generators on arms, provide their scripts, and find their logs."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from psycopg.conninfo import make_conninfo

from pgdyno.load import driver, sysbench
from pgdyno.load._contract import MOST_GIVEN_UP, Generator, LoadRequest, Target
from pgdyno.load.captured import captured_options
from pgdyno.load.discovery import find_tpchgen
from pgdyno.load.driver import ArmTarget, Driver
from pgdyno.load.driver_process import DriverProcess
from pgdyno.load.process import LoadProcess, run_to_end
from pgdyno.load.step_results import StepResult
from pgdyno.load.timed_run import RestingRun, TimedRun, longest_s, run_counted, run_for, run_step
from pgdyno.load.tpch_tables import filling
from pgdyno.load.tpchgen import ReportShare, Tpchgen
from pgdyno.load.turns import FrozenTurns, SwitchedTurns, Turns
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.placement import ArmsLoad, Here, Placement
from pgdyno.measure.arenas.step_failure import failures_named
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import DRIVER, TPCHGEN, DataSet, PgbenchScripts, Step, Workload
from pgdyno.postgres.connection.connection import Connection, connect
from pgdyno.postgres.connection.control_connection import READING, ControlConnection
from pgdyno.postgres.connection.libpq_environment import libpq_variables_unset
from pgdyno.postgres.process.dump import COPY_ROLE
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.store.files import open_plain
from pgdyno.workload.column_draws import read_draws
from pgdyno.workload.invariants import Invariants

_LOAD_TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class Loads:
    """The loads of one experiment: generators, scratch directory, CPU split, and placement."""

    workspace: Workspace
    find_generator: Callable[[str], Generator]
    find_driver: Callable[[], Driver]
    scratch: Path
    split: CpuSplit
    placement: Placement = field(default_factory=Here, kw_only=True)

    def prepare(
        self,
        arms: Sequence[Arm],
        labels: Sequence[str],
        workload: Workload,
        design: Design,
        duration_s: float,
        order: Sequence[int],
    ) -> Turns:
        """Return the turns of a workload's loads on all arms, ready for warm-up.

        ``order`` is the order in which arms connect.
        """
        for label in labels:
            self.forget(label)
        request = self._request(workload, design, duration_s)
        turns = (
            self._by_jobs(arms, labels, workload, request, order)
            if self.placement.takes_jobs(workload.generator)
            else self._frozen(arms, labels, workload, request)
        )
        if begin := [arm.begin_turn for arm in arms if arm.begin_turn]:
            turns = SwitchedTurns(turns, begin)
        for index, arm in enumerate(arms):
            arm.read_client_cpu_us = partial(turns.client_cpu_us, index)
        return turns

    def fill(
        self,
        target: Target,
        data_set: DataSet,
        output_file: Path,
        environment: Mapping[str, str],
        report: ReportShare = lambda _: None,
    ) -> None:
        """Load a data set into an empty database; ``report`` receives the share done, where known.

        Raises: GeneratorFailedError with the driver's message; StorageError if the disk is full.
        """
        if data_set.maker == TPCHGEN:
            maker = Tpchgen(find_tpchgen(self.scratch), self.workspace.account.command, self._environment())
            maker.fill(target, filling(data_set), jobs=len(self.split.server), report=report)
            return
        command = self.find_driver().prepare(target, data_set)
        run_to_end(
            replace(command, environment={**self._environment(), **environment}),
            self.workspace.account.command,
            output_file,
            timeout_s=_LOAD_TIMEOUT_S,
        )

    def log_prefix(self, label: str) -> Path:
        """Return the path prefix of a label's transaction logs: ``PREFIX.*``."""
        return self.workspace.transactions() / label

    def forget(self, label: str) -> None:
        """Remove the logs of this label, and of labels that continue it after a dot."""
        for old in self.workspace.transactions().glob(f"{glob.escape(label)}.*"):
            old.unlink()

    def _by_jobs(
        self,
        arms: Sequence[Arm],
        labels: Sequence[str],
        workload: Workload,
        request: LoadRequest,
        order: Sequence[int],
    ) -> Turns:
        prefixes = [self.log_prefix(label) for label in labels]
        here = [
            ArmTarget(arm.variant.name, target_of(arm, workload), prefix)
            for arm, prefix in zip(arms, prefixes, strict=True)
        ]
        load = ArmsLoad(
            self._driver(arms, labels[0]),
            [here[index] for index in order],
            order,
            prefixes,
            job_maker(arms[order[0]], workload),
            request,
            invariants_kept(arms, workload),
            workload.generator,
        )
        return self.placement.turns(load)

    def run_alone(
        self,
        arm: Arm,
        workload: Workload,
        design: Design,
        seconds: float,
        report: ReportShare = lambda _: None,
    ) -> TimedRun:
        """Issue a workload with the driver on one arm for a time, without a comparison.

        ``report`` receives the seconds passed. Raises: GeneratorFailedError with the driver's message.
        """
        target = ArmTarget(arm.variant.name, target_of(arm, workload))
        request = self._request(workload, design, seconds)
        job = driver.job([target], workload.driver_name, driver_options(arm, workload), request)
        require_kept = invariants_kept([arm], workload)
        with failures_named(workload.name, arm), closing(self._driver_here(arm, workload.name)) as process:
            run = run_for(process, job, seconds, report)
        require_kept()
        return run

    def run_counted(
        self,
        arm: Arm,
        workload: Workload,
        seed: int,
        transactions: int,
        when_connected: Callable[[], None],
    ) -> None:
        """Issue a number of transactions with one client; equal seeds give equal transactions.

        ``when_connected`` is called before the first. Raises: GeneratorFailedError with the driver's message.
        """
        job = self._job_of_one(arm, workload, seed, transactions)
        with failures_named(workload.name, arm), closing(self._driver_here(arm, workload.name)) as process:
            run_counted(process, job, when_connected)

    @contextmanager
    def resting(self, arm: Arm, workload: Workload, seed: int) -> Iterator[RestingRun]:
        """Provide a workload's load with one connected client; other resting loads may coexist.

        Raises: GeneratorFailedError.
        """
        job = self._job_of_one(arm, workload, seed, None, is_part=True)
        label = f"{workload.name}-{seed}"
        with failures_named(workload.name, arm), closing(self._driver_here(arm, label)) as process:
            process.start(job)
            yield RestingRun(process)

    def _job_of_one(
        self, arm: Arm, workload: Workload, seed: int, transactions: int | None, *, is_part: bool = False
    ) -> str:
        """Return the driver's job for one client in a closed loop."""
        alone = replace(self._request(workload, Design(seed=seed), 0.0), clients=1, rate_tps=None)
        request = replace(alone, transactions=transactions, is_part=is_part)
        target = ArmTarget(arm.variant.name, target_of(arm, workload))
        return driver.job([target], workload.driver_name, driver_options(arm, workload), request)

    def connect(self, arm: Arm, workload: Workload) -> Connection:
        """Open a read-only session with the role and search path of a workload's load.

        As a superuser, it would run casts and functions that owners of a copy may have planted.
        """
        target = target_of(arm, workload)
        if workload.captured is None and workload.data_set.dump is None:  # pgdyno has made all tables
            own = "client_1" if workload.data_set.schemas else "public"
            target = replace(target, session_settings={"search_path": own, **target.session_settings})
        return connect_as_load(target)

    def step(
        self,
        arm: Arm,
        step: Step,
        seed: int,
        at_start: Callable[[], None] = lambda: None,
        at_end: Callable[[], None] = lambda: None,
    ) -> StepResult:
        """Run a whole step; ``run_step`` calls ``at_start`` and ``at_end``."""
        request = LoadRequest(
            step.clients,
            self.split.client_count,
            seed,
            duration_s=int(longest_s(step)) + 1,
            log_prefix=Path(),
            cpus=self.split.pinned,
        )
        load = ArmsLoad(
            self._driver([arm], step.name),
            [ArmTarget(arm.variant.name, arm.target())],
            order=[0],
            prefixes=[],
            job=lambda arms, request: driver.job(arms, step.name, step.options, request),
            request=request,
            when_ended=lambda: None,
        )
        issued = self.placement.step(load)
        with failures_named(step.name, arm), closing(issued.process) as process:
            return run_step(process, issued.job, step, at_start, at_end)

    def _driver_here(self, arm: Arm, label: str) -> DriverProcess:
        self.placement.require_here()
        return self._driver([arm], label)

    def _driver(self, arms: Sequence[Arm], label: str) -> DriverProcess:
        return DriverProcess(
            argv=self.find_driver().serve(),
            wrap=self._wrap,
            environment=self._environment()
            | {name: value for arm in arms for name, value in arm.environment.items()},
            output_file=self.scratch / f"driver-{label}.out",
        )

    def _request(self, workload: Workload, design: Design, duration_s: float) -> LoadRequest:
        return LoadRequest(
            clients=workload.clients or design.clients,
            threads=self.split.client_count,
            seed=design.seed,
            duration_s=int(duration_s) + 1,
            log_prefix=Path(),
            protocol=workload.protocol,
            rate_tps=workload.rate_tps,
            cpus=self.split.pinned,
            max_errors=MOST_GIVEN_UP,
            first_schema=1 if workload.data_set.schemas else None,
        )

    def _frozen(
        self, arms: Sequence[Arm], labels: Sequence[str], workload: Workload, request: LoadRequest
    ) -> Turns:
        self.placement.require_here()
        generator = self.find_generator(workload.generator)
        readable = self._with_readable_scripts(workload)
        loads = []
        for arm, label in zip(arms, labels, strict=True):
            prefix = self.log_prefix(label)
            command = generator.run(arm.target(), readable, replace(request, log_prefix=prefix))
            environment = {**self._environment(), **command.environment, **arm.environment}
            loads.append(
                LoadProcess(
                    replace(command, environment=environment),
                    self._wrap,
                    prefix,
                    self.scratch / f"generator-{label}.out",
                )
            )
        return FrozenTurns(loads)

    def _environment(self) -> dict[str, str]:
        return self.workspace.account.environment()

    def _wrap(self, argv: Sequence[str]) -> list[str]:
        return self.workspace.account.command(argv, cpus=self.split.client)

    def _with_readable_scripts(self, workload: Workload) -> Workload:
        """Return the workload with its scripts copied to files that the generator's account can read."""
        if not isinstance(workload.kind, PgbenchScripts):
            return workload
        copies = []
        for position, script in enumerate(workload.kind.scripts):
            if script.file is None:
                copies.append(script)
                continue
            copy = self.scratch / f"script-{position}-{script.name}"
            with open_plain(Path(script.file)) as file:
                copy.write_bytes(file.read())
            copy.chmod(0o644)
            copies.append(replace(script, file=str(copy)))
        return replace(workload, kind=PgbenchScripts(tuple(copies)))


def target_of(arm: Arm, workload: Workload) -> Target:
    """Return where a workload connects; to a copy of a user's database, as its unprivileged owner."""
    target = replace(arm.target(), session_settings=workload.session_settings)
    return target if workload.data_set.dump is None else replace(target, user=COPY_ROLE)


def driver_options(arm: Arm, workload: Workload) -> Mapping[str, object]:
    """Return the driver's options for a workload.

    The values that a captured workload draws are read from one arm, because all arms have equal rows. The
    load's role reads them: a superuser would run casts that owners of types may have planted.
    """
    if workload.captured is None:
        return driver.job_options(workload)
    with closing(connect_as_load(target_of(arm, workload))) as connection:
        draws, _ = read_draws(connection, workload.captured)
    return captured_options(workload.captured, draws)


def job_maker(arm: Arm, workload: Workload) -> Callable[[Sequence[ArmTarget], LoadRequest], str]:
    """Return a function that makes a workload's job for given arms; options are read from ``arm``."""
    if workload.generator != DRIVER:
        return lambda arms, request: sysbench.job(arms, workload, request)
    options = driver_options(arm, workload)
    return lambda arms, request: driver.job(arms, workload.driver_name, options, request)


def invariants_kept(arms: Sequence[Arm], workload: Workload) -> Callable[[], None]:
    """Check a captured workload's invariants before its load; return the check to run after it."""
    if workload.captured is None or not workload.captured.invariants:
        return lambda: None
    servers = {arm.variant.name: partial(connect_as_load, target_of(arm, workload)) for arm in arms}
    return Invariants.before_load(workload.captured, servers).require_kept


def connect_as_load(target: Target) -> ControlConnection:
    """Open a session with the driver's role, database and settings."""
    conninfo = make_conninfo(host=target.host, port=target.port, user=target.user, dbname=target.database)
    with libpq_variables_unset():
        return connect(conninfo, settings={**READING, **target.session_settings})
