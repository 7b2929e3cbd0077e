"""Runs a TPC-H-like pass on one arm: the power run, then the throughput run.

    power        RF1, the 22 queries in the order of stream 0, RF2; one after another on one connection
    throughput   concurrent streams of 22 queries, and one stream with a pair of RF1 and RF2 for each of them

Queries run without EXPLAIN or instrumentation. All arms of a round have the same parameter values and the
same rows in their refresh functions, and must therefore give the same answers in the power run.

Before timing, every variant's answers to the 22 queries are validated, and its plans recorded. The answers
must be the same on all variants, and equal the known answers if the scale has any. A query that fails, or
gives a wrong answer, ends the experiment.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from threading import Event

from pgdyno.base.errors import MeasurementError
from pgdyno.base.ports import Progress
from pgdyno.load.query_session import Executed, QuerySession
from pgdyno.measure.arenas.arena import Arena, OneArm
from pgdyno.measure.arenas.arm import Arm, difference, meter_values, read_meters
from pgdyno.measure.arenas.step_failure import failures_named
from pgdyno.measure.before_after import Edge, audit_between
from pgdyno.measure.blocks.blocks import void_reason
from pgdyno.measure.degrees import LaunchedWorkers, planned_metric
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.measure.meters import MeterModule
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.step_record import POWER_RUN, REFRESHES, THROUGHPUT_RUN, TpchFacts
from pgdyno.model.experiments.workload import TpchStep, Workload
from pgdyno.postgres.plan_document import PlanNode, explained, plan_of
from pgdyno.studies.bundled.tpch.queries import (
    NUMBERS,
    ORDERS,
    Answer,
    Answers,
    answer_of,
    known_answers,
    query_text,
    validation_parameters,
)
from pgdyno.studies.bundled.tpch.query_parameters import draw_parameters
from pgdyno.studies.bundled.tpch.refresh import Refresh, refresh

_RF1, _RF2 = REFRESHES
_INSERTS = ("COPY orders FROM STDIN", "COPY lineitem FROM STDIN")
_DELETES = (
    "DELETE FROM lineitem WHERE l_orderkey OPERATOR(pg_catalog.=) ANY (%s)",
    "DELETE FROM orders WHERE o_orderkey OPERATOR(pg_catalog.=) ANY (%s)",
)
_VALUES, _ROWS = 0, 1  # part of a seed: parameter values, or rows of refresh functions
_CANCEL_AGAIN_S = 0.5  # arbitrary
_END_S, _POLL_S = 10.0, 0.01  # arbitrary: a backend exits milliseconds after its client
Query = tuple[str, str]
"""A query's name and its text with values."""
_EXPLAIN = "EXPLAIN (FORMAT JSON) "


@dataclass(frozen=True)
class Pass:
    """The context of a pass."""

    arm: Arm
    design: Design
    round: int
    meters: Sequence[MeterModule]
    split: CpuSplit
    thousandths: int  # the scale
    streams: int
    announce: Callable[[str], None] = lambda _: None  # called with each current activity

    def queries(self, stream: int) -> list[Query]:
        """Return a stream's queries in order."""
        values = draw_parameters((self.design.seed, self.round, _VALUES, stream), self.thousandths)
        return [(f"q{number}", query_text(number, values[number])) for number in ORDERS[stream]]

    def refresh(self, number: int) -> Refresh:
        """Return the rows of a pair of refresh functions; ``number`` counts from 1 in a pass."""
        return refresh((self.design.seed, self.round, _ROWS, number), self.thousandths, number)


@dataclass
class _Sessions:
    """Opens sessions on an arm; ``stack`` closes them together."""

    arm: Arm
    stack: ExitStack
    pids: set[int] = field(default_factory=set)  # of their backends

    def open(self) -> QuerySession:
        with failures_named("a connection", self.arm):
            session = self.stack.enter_context(QuerySession.open(self.arm.target()))
        self.pids.add(session.pid)
        return session

    def await_end(self) -> None:
        """Wait until their backends have exited: only then are their statistics complete.

        Raises: MeasurementError after ``_END_S``.
        """
        deadline_s = time.monotonic() + _END_S
        while self.pids.intersection(self.arm.server_pids()):
            if time.monotonic() > deadline_s:
                raise MeasurementError(
                    f"backends of closed sessions on the server of {self.arm.variant.name} did not exit "
                    f"within {_END_S:g} s"
                )
            time.sleep(_POLL_S)


@dataclass(frozen=True)
class _Run:
    """Results of the power or throughput run, by query, refresh function or run."""

    elapsed_s: Mapping[str, float]
    answers: Mapping[str, Answer] = field(default_factory=dict)
    launched: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # metrics of parallel workers


@dataclass(frozen=True)
class _Measured:
    """A run, with the readings before and after it."""

    run: _Run
    values: Mapping[str, float]
    audit: Mapping[str, float]
    started_ns: int


@dataclass
class TpchPasses:
    """Passes of all arms, which must give the same answers."""

    answers: Answers = field(default_factory=Answers)

    def checked(
        self, experiment: Experiment, arena: Arena, workloads: Sequence[Workload], progress: Progress
    ) -> Experiment:
        """Validate the answers of all variants; see ``validated``."""
        return validated(experiment, arena, workloads, progress)

    def measured(self, on: OneArm, workloads: Sequence[Workload]) -> list[Block]:
        """Run a pass; see ``measure_pass``."""
        whole = workloads[0].kind
        assert isinstance(whole, TpchStep)  # noqa: S101 — a pass has no others
        this = Pass(
            arm=on.arm,
            design=on.design,
            round=on.round,
            meters=on.meters,
            split=on.loads.split,
            thousandths=workloads[0].data_set.scale,
            streams=whole.clients,
            announce=on.announce,
        )
        return measure_pass(this, workloads, self.answers)


PASSES = TpchPasses


def measure_pass(this: Pass, workloads: Sequence[Workload], answers: Answers) -> list[Block]:
    """Run a pass and return a block per workload.

    Raises: GeneratorFailedError, StorageError, ServerCrashedError naming the query and the arm;
    MeasurementError if an answer differs from another arm's.
    """
    alone, *streams = [this.queries(stream) for stream in range(this.streams + 1)]
    first, *pairs = [this.refresh(number) for number in range(1, this.streams + 2)]
    place = f"round {this.round + 1}"
    this.announce(f"{place}: power run on {this.arm.variant.name}")
    power = _between_edges(
        this, lambda sessions: _power(this, sessions, alone, first), len(alone) + len(REFRESHES)
    )
    for query, answer in power.run.answers.items():
        answers.compare(place, this.arm.variant.name, query, answer)
    this.announce(f"{place}: throughput run on {this.arm.variant.name}")
    throughput = _between_edges(
        this, lambda sessions: _throughput(this.arm, sessions, streams, pairs), sum(map(len, streams))
    )
    return [
        _block(this, workload, throughput if _name(workload) == THROUGHPUT_RUN else power)
        for workload in workloads
    ]


def _power(this: Pass, sessions: _Sessions, queries: Sequence[Query], pair: Refresh) -> _Run:
    """Run the refresh functions and queries one after another; compute checksums after timing."""
    arm, session = this.arm, sessions.open()
    done = {_RF1: _insert(session, arm, pair)}
    workers, launched = LaunchedWorkers(arm, session, this.meters), {}
    for name, sql in queries:
        done[name] = _query(session, arm, name, sql)
        with failures_named(name, arm):
            launched[name] = workers.since()
    done[_RF2] = _delete(session, arm, pair)
    return _Run(
        {name: executed.elapsed_s for name, executed in done.items()},
        {name: answer_of(done[name].rows) for name, _ in queries},
        launched,
    )


def _query(session: QuerySession, arm: Arm, name: str, sql: str) -> Executed:
    with failures_named(name, arm):
        return session.query(sql)


def _insert(session: QuerySession, arm: Arm, pair: Refresh) -> Executed:
    with failures_named(_RF1, arm):
        return session.copy_in(list(zip(_INSERTS, (pair.orders, pair.lines), strict=True)))


def _delete(session: QuerySession, arm: Arm, pair: Refresh) -> Executed:
    with failures_named(_RF2, arm):
        return session.delete(_DELETES, pair.deleted)


def _throughput(
    arm: Arm, sessions: _Sessions, streams: Sequence[Sequence[Query]], pairs: Sequence[Refresh]
) -> _Run:
    """Run all streams at once; the elapsed time is from the start of the first to the end of the last."""
    stopped, of_refreshes = Event(), sessions.open()
    of_queries = [sessions.open() for _ in streams]

    def run_queries(session: QuerySession, queries: Sequence[Query]) -> None:
        for name, sql in queries:
            if not stopped.is_set():
                _query(session, arm, name, sql)

    def run_refreshes() -> None:
        for pair in pairs:
            if not stopped.is_set():
                _insert(of_refreshes, arm, pair)
                _delete(of_refreshes, arm, pair)

    began_s = time.perf_counter()
    with ThreadPoolExecutor(len(streams) + 1) as pool:
        running = {
            pool.submit(run_queries, session, queries): session
            for session, queries in zip(of_queries, streams, strict=True)
        }
        running[pool.submit(run_refreshes)] = of_refreshes
        try:
            for ended in as_completed(running):
                ended.result()
        finally:  # also after an error or an interrupt by the user
            stopped.set()
            _cancel(running)
    return _Run({THROUGHPUT_RUN: time.perf_counter() - began_s})


def _cancel(running: Mapping[Future[None], QuerySession]) -> None:
    """Cancel running queries, repeatedly: a request just before a query's start has no effect."""
    while pending := [one for one in running if not one.done()]:
        for one in pending:
            running[one].cancel()
        wait(pending, timeout=_CANCEL_AGAIN_S)


def _between_edges(this: Pass, execute: Callable[[_Sessions], _Run], executions: int) -> _Measured:
    """Execute a run between two readings.

    Processes are read while the sessions are still connected, because the resource use of a backend is lost
    when it exits. Meters that backends report late are read after they exited.
    """
    arm, meters, split = this.arm, this.meters, this.split
    began = Edge.read(arm, meters, split)
    with ExitStack() as stack:
        sessions = _Sessions(arm, stack)
        run = execute(sessions)
        ended = Edge.read(arm, meters, split)
    sessions.await_end()
    late = read_meters([meter for meter in meters if meter.METER.reports_late], arm)
    delta = difference(began.readings, {**ended.readings, **late})
    audit = audit_between(began, ended, delta, 0.0, split)
    values = {**meter_values(meters, delta, executions), **planned_metric(delta)}
    return _Measured(run, values, audit, began.at_ns)


def _block(this: Pass, workload: Workload, measured: _Measured) -> Block:
    return Block(
        workload=workload.name,
        round=this.round,
        index=0,
        started_ns=measured.started_ns,
        arms=(_arm_block(this, _name(workload), measured),),
        void=void_reason(measured.audit, this.design.thresholds),
        audit=measured.audit,
    )


def _arm_block(this: Pass, name: str, measured: _Measured) -> ArmBlock:
    """Return the arm's block: the rate of one execution, by the geometric mean time for the power run."""
    variant, elapsed_s = this.arm.variant.name, measured.run.elapsed_s
    if name == POWER_RUN:
        mean_s = math.exp(math.fsum(map(math.log, elapsed_s.values())) / len(elapsed_s))
        values = {**measured.values, THROUGHPUT: 1 / mean_s}
        return ArmBlock(variant, len(elapsed_s), math.fsum(elapsed_s.values()), values)
    if name == THROUGHPUT_RUN:
        queries = this.streams * len(ORDERS[0])
        values = {**measured.values, THROUGHPUT: queries / elapsed_s[name]}
        return ArmBlock(variant, queries, elapsed_s[name], values)
    values = {**measured.run.launched.get(name, {}), THROUGHPUT: 1 / elapsed_s[name]}
    return ArmBlock(variant, 1, elapsed_s[name], values)


def _name(workload: Workload) -> str:
    assert isinstance(workload.kind, TpchStep)  # noqa: S101 — a pass has no others
    return workload.kind.name


def validated(
    experiment: Experiment, arena: Arena, workloads: Sequence[Workload], progress: Progress
) -> Experiment:
    """Return the experiment with the plans of all variants, and a note on their answers.

    Raises: MeasurementError for a wrong answer, naming query and variant; GeneratorFailedError for a failed
    query.
    """
    facts, data_set = experiment.tpch, workloads[0].data_set
    if facts is None:
        return experiment
    plans: dict[str, Mapping[str, PlanNode]] = {}
    answers = Answers()
    for variant in experiment.variants:
        progress.step(f"checking the answers of {variant.name}")
        arena.restore([variant], [0], data_set)
        with arena.arms([variant], [0], data_set) as arms:
            plans[variant.name] = checked_plans(arms[0], facts.thousandths, answers)
    notes = tuple(dict.fromkeys((*experiment.notes, _note(facts))))
    return replace(experiment, tpch=replace(facts, plans=plans), notes=notes)


def checked_plans(arm: Arm, thousandths: int, answers: Answers) -> dict[str, PlanNode]:
    """Compare an arm's answers with known answers and those of other arms; return its plans by query.

    Raises: as ``validated``.
    """
    known, plans = known_answers(thousandths), {}
    with ExitStack() as stack:
        with failures_named("a connection", arm):
            session = stack.enter_context(QuerySession.open(arm.target()))
        for number in NUMBERS:
            name, sql = f"q{number}", query_text(number, validation_parameters(number, thousandths))
            with failures_named(name, arm):
                ((document,),) = session.query(_EXPLAIN + sql).rows
                answer = answer_of(session.query(sql).rows)
            plans[name] = plan_of(explained(document)["Plan"])
            if number in known and answer != known[number]:
                raise MeasurementError(
                    f"the answer of {name} on the server of {arm.variant.name} is wrong",
                    detail=f"{answer.rows} rows with checksum {answer.checksum} instead of "
                    f"{known[number].rows} with {known[number].checksum}",
                    hint="this server gives wrong answers, or its data are damaged: nothing is measured",
                )
            answers.compare("the validation run", arm.variant.name, name, answer)
    return plans


def _note(facts: TpchFacts) -> str:
    if known_answers(facts.thousandths):
        return "all 22 answers were checked before timing: they equal the known answers"
    return (
        f"the correct answers at scale {facts.scale} are unknown; before timing, all variants gave the same "
        "answers"
    )
