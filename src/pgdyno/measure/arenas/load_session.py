"""Sessions of the driver on an arm: their role, their options, and the invariants checked around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

from psycopg.conninfo import make_conninfo

from pgdyno.load import driver, sysbench
from pgdyno.load._contract import LoadRequest, Target
from pgdyno.load.captured import captured_options
from pgdyno.load.driver import ArmTarget
from pgdyno.measure.arenas.arm import Arm
from pgdyno.model.experiments.workload import DRIVER, Workload
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.connection.control_connection import READING, ControlConnection
from pgdyno.postgres.connection.libpq_environment import libpq_variables_unset
from pgdyno.postgres.process.dump import COPY_ROLE
from pgdyno.workload.column_draws import read_draws
from pgdyno.workload.invariants import Invariants


def target_of(arm: Arm, workload: Workload) -> Target:
    """Return where a workload connects: to a copy of a user's database, as its owner without privileges."""
    target = replace(arm.target(), session_settings=workload.session_settings)
    return target if workload.data_set.dump is None else replace(target, user=COPY_ROLE)


def driver_options(arm: Arm, workload: Workload) -> Mapping[str, object]:
    """Return the driver's options.

    What a captured workload draws is read from one arm: all have equal rows. It is read by the role of the
    load: a superuser would run casts that the owners of types have planted.
    """
    if workload.captured is None:
        return driver.job_options(workload)
    with closing(connect_as_load(target_of(arm, workload))) as connection:
        draws, _ = read_draws(connection, workload.captured)
    return captured_options(workload.captured, draws)


def job_maker(arm: Arm, workload: Workload) -> Callable[[Sequence[ArmTarget], LoadRequest], str]:
    """Return how to make the job of a workload for some arms; options are those of ``arm``."""
    if workload.generator != DRIVER:
        return lambda arms, request: sysbench.job(arms, workload, request)
    options = driver_options(arm, workload)
    return lambda arms, request: driver.job(arms, workload.driver_name, options, request)


def invariants_kept(arms: Sequence[Arm], workload: Workload) -> Callable[[], None]:
    """Ask for a captured workload's invariants before its load; return the check for after it."""
    if workload.captured is None or not workload.captured.invariants:
        return lambda: None
    servers = {arm.variant.name: partial(connect_as_load, target_of(arm, workload)) for arm in arms}
    return Invariants.before_load(workload.captured, servers).require_kept


def connect_as_load(target: Target) -> ControlConnection:
    """Open a session like the driver's, with its settings."""
    way = make_conninfo(host=target.host, port=target.port, user=target.user, dbname=target.database)
    with libpq_variables_unset():
        return connect(way, settings={**READING, **target.session_settings})
