"""Runs a pass like TPC-H's on one arm: the power run, then the throughput run.

    power        RF1, the 22 queries in the order of stream 0, RF2; one after another on one connection
    throughput   streams of 22 queries at the same time, beside a stream of as many pairs of RF1 and RF2

Queries are executed plainly: nothing explains or counts inside them. All arms of a round have the same values
and the same rows in their refresh functions, and so have to give the same answers in the power run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Event

from pgdyno.app.arm import Arm, difference, meter_values
from pgdyno.app.step_failure import failures_named
from pgdyno.app.steps import Edge, audit_between
from pgdyno.experiments.blocks import void_reason
from pgdyno.experiments.isolation import CpuSplit
from pgdyno.generators.query_session import Executed, QuerySession
from pgdyno.meters import MeterModule
from pgdyno.model.errors import MeasurementError
from pgdyno.model.experiment import ArmBlock, Block, Design
from pgdyno.model.tpch import POWER, REFRESHES, THROUGHPUT
from pgdyno.model.workload import Workload
from pgdyno.studies._tpch.answers import Answer, answer_of
from pgdyno.studies._tpch.parameters import draw_parameters
from pgdyno.studies._tpch.queries import query_text
from pgdyno.studies._tpch.refresh import Refresh, refresh
from pgdyno.studies._tpch.streams import ORDERS

_RF1, _RF2 = REFRESHES
_INSERTS = ("COPY orders FROM STDIN", "COPY lineitem FROM STDIN")
_DELETES = (
    "DELETE FROM lineitem WHERE l_orderkey = ANY(%s)",
    "DELETE FROM orders WHERE o_orderkey = ANY(%s)",
)
_VALUES, _ROWS = 0, 1  # what a seed is for


@dataclass
class Answers:
    """What the arms of one round have answered: they have to agree."""

    round: int = -1
    _first: dict[str, tuple[str, Answer]] = field(default_factory=dict)

    def compare(self, round_index: int, arm: str, query: str, answer: Answer) -> None:
        """Note an arm's answer. Raises: MeasurementError if another one of the same round was different."""
        if round_index != self.round:
            self.round, self._first = round_index, {}
        other, known = self._first.setdefault(query, (arm, answer))
        if known != answer:
            raise MeasurementError(
                f"{query} has different answers on the servers of {other} and {arm}",
                detail=f"{known.rows} and {answer.rows} rows, checksums {known.checksum} and "
                f"{answer.checksum}, in round {round_index + 1}",
                hint="one of these servers is wrong: do not trust its data, nor its figures",
            )


@dataclass(frozen=True)
class Pass:
    """What a pass needs to know."""

    arm: Arm
    design: Design
    round: int
    meters: Sequence[MeterModule]
    split: CpuSplit
    thousandths: int  # the scale
    streams: int

    def queries(self, stream: int) -> list[tuple[str, str]]:
        """Return the names and texts of a stream's queries in their order."""
        values = draw_parameters((self.design.seed, self.round, _VALUES, stream), self.thousandths)
        return [(f"q{number}", query_text(number, values[number])) for number in ORDERS[stream]]

    def refresh(self, number: int) -> Refresh:
        """Return the rows of a pair of refresh functions, which counts from 1 in a pass."""
        return refresh((self.design.seed, self.round, _ROWS, number), self.thousandths, number)


@dataclass(frozen=True)
class _Measured:
    """One of the two runs: the seconds that its parts took by name, and what was read around it."""

    elapsed_s: dict[str, float]
    values: dict[str, float]
    audit: dict[str, float]
    started_ns: int


def measure_pass(this: Pass, workloads: Sequence[Workload], answers: Answers) -> list[Block]:
    """Run a pass and return a block per workload.

    Raises: GeneratorFailedError, StorageError, ServerCrashedError naming the query and the arm;
    MeasurementError if an answer differs from another arm's.
    """
    power = _between_edges(this, lambda: _power(this, answers), len(ORDERS[0]) + len(REFRESHES))
    throughput = _between_edges(this, lambda: _throughput(this), this.streams * len(ORDERS[0]))
    return [
        _block(this, workload, throughput if _name(workload) == THROUGHPUT else power)
        for workload in workloads
    ]


def _power(this: Pass, answers: Answers) -> dict[str, float]:
    """Return the seconds of the refresh functions and queries by name."""
    arm, pair = this.arm, this.refresh(1)
    done: dict[str, Executed] = {}
    with ExitStack() as stack:
        session = _open(stack, arm)
        done[_RF1] = _insert(session, arm, pair)
        for name, sql in this.queries(0):
            done[name] = _query(session, arm, name, sql)
        done[_RF2] = _delete(session, arm, pair)
    for name, executed in done.items():
        if name not in REFRESHES:
            answers.compare(this.round, arm.variant.name, name, answer_of(executed.rows))
    return {name: executed.elapsed_s for name, executed in done.items()}


def _open(stack: ExitStack, arm: Arm) -> QuerySession:
    with failures_named("a connection", arm):
        return stack.enter_context(QuerySession.open(arm.target()))


def _query(session: QuerySession, arm: Arm, name: str, sql: str) -> Executed:
    with failures_named(name, arm):
        return session.query(sql)


def _insert(session: QuerySession, arm: Arm, pair: Refresh) -> Executed:
    with failures_named(_RF1, arm):
        return session.copy_in(list(zip(_INSERTS, (pair.orders, pair.lines), strict=True)))


def _delete(session: QuerySession, arm: Arm, pair: Refresh) -> Executed:
    with failures_named(_RF2, arm):
        return session.delete(_DELETES, pair.deleted)


def _throughput(this: Pass) -> dict[str, float]:
    """Return the seconds from the first stream's beginning to the last one's end."""
    arm, stopped = this.arm, Event()
    streams = [this.queries(number) for number in range(1, this.streams + 1)]
    pairs = [this.refresh(number) for number in range(2, this.streams + 2)]
    with ExitStack() as stack:
        sessions = [_open(stack, arm) for _ in range(this.streams + 1)]

        def run_queries(session: QuerySession, queries: Sequence[tuple[str, str]]) -> None:
            for name, sql in queries:
                if not stopped.is_set():
                    _query(session, arm, name, sql)

        def run_refreshes(session: QuerySession) -> None:
            for pair in pairs:
                if not stopped.is_set():
                    _insert(session, arm, pair)
                    _delete(session, arm, pair)

        began_s = time.perf_counter()
        with ThreadPoolExecutor(len(sessions)) as pool:
            running_ones = [
                pool.submit(run_queries, session, queries)
                for session, queries in zip(sessions[1:], streams, strict=True)
            ]
            running_ones.append(pool.submit(run_refreshes, sessions[0]))
            try:
                for ended in as_completed(running_ones):
                    ended.result()
            finally:  # after an error, and when the user has had enough
                stopped.set()
                for session, one in zip([*sessions[1:], sessions[0]], running_ones, strict=True):
                    if not one.done():
                        session.cancel()
        return {THROUGHPUT: time.perf_counter() - began_s}


def _between_edges(this: Pass, run: Callable[[], dict[str, float]], executions: int) -> _Measured:
    arm, meters, split = this.arm, this.meters, this.split
    began = Edge.read(arm, meters, split)
    elapsed_s = run()
    ended = Edge.read(arm, meters, split)
    delta = difference(began.readings, ended.readings)
    audit = audit_between(began, ended, delta, 0.0, split)
    return _Measured(elapsed_s, meter_values(meters, delta, executions), audit, began.at_ns)


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
    """Return one execution; of the power run the geometric mean of all, of the throughput run their rate."""
    variant, elapsed_s = this.arm.variant.name, measured.elapsed_s
    if name == POWER:
        mean_s = math.exp(math.fsum(map(math.log, elapsed_s.values())) / len(elapsed_s))
        values = {**measured.values, "throughput_tps": 1 / mean_s}
        return ArmBlock(variant, len(elapsed_s), math.fsum(elapsed_s.values()), values)
    if name == THROUGHPUT:
        queries = this.streams * len(ORDERS[0])
        values = {**measured.values, "throughput_tps": queries / elapsed_s[name]}
        return ArmBlock(variant, queries, elapsed_s[name], values)
    return ArmBlock(variant, 1, elapsed_s[name], {"throughput_tps": 1 / elapsed_s[name]})


def _name(workload: Workload) -> str:
    assert workload.tpch is not None  # noqa: S101 — callers have asked
    return workload.tpch.name
