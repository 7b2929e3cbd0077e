"""``tune --dsn``: its options, and the search on the running server itself."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pgdyno.base.errors import PermissionNotGivenError, UsageError
from pgdyno.cli._server_options import (
    StatedFigures,
    parse_size,
    restart_command_option,
    standbys_option,
    warn_about_password,
)
from pgdyno.cli.output import echo
from pgdyno.cli.quantities import duration
from pgdyno.model.plans.plan import Effect, Layer

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.base.ports import Progress
    from pgdyno.model.experiments.experiment import Experiment
    from pgdyno.model.tuning.tuning import OwnerLimits
    from pgdyno.postgres.process.installation import Installation
    from pgdyno.tune.tune_request import TuneRequest
    from pgdyno.tune.tuner import Listener, Tuned

_FOR_SCRATCH = {"layers": "layers", "attribute": "attribute", "resume": "resume"}
"""Options valid only for searches on scratch servers: option name -> parameter."""

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--dsn", metavar="DSN", help="A running server on this host; the search runs on it."),
    click.option("--allow-load", is_flag=True, help="Required with --dsn: allow load on that server."),
    click.option(
        "--limit-latency",
        "limit_latency_s",
        callback=duration,
        metavar="TIME",
        help="With --dsn: end a trial within a second when the 99th percentile of the load's transactions "
        "exceeds this.",
    ),
    click.option(
        "--limit-memory",
        metavar="SIZE",
        help="With --dsn: end a trial within a second when the server's memory exceeds this, and skip "
        "configurations that could exceed it in the worst case.",
    ),
    click.option(
        "--maintenance-window",
        is_flag=True,
        help="With --dsn: restart the server during the search, to also try settings that need a restart.",
    ),
    restart_command_option,
    standbys_option,
)
_KEPT_PLANS = (
    "Sessions that were open during the search may keep plans of prepared statements made under settings "
    "that were tried: let connection pools reconnect, or ANALYZE the tables."
)


def in_place_options(command: Decorated) -> Decorated:
    """Add the options of a search on a running server."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class InPlace:
    """The options as given on the command line."""

    dsn: str | None
    allow_load: bool
    limit_latency_s: float | None
    limit_memory: str | None
    maintenance_window: bool
    restart_command: str | None
    is_standby_order_kept: bool

    def check(self, others: Mapping[str, Any]) -> None:
        """Refuse conflicting options; ``others`` are the options common to all searches.

        Raises: UsageError; PermissionNotGivenError without --allow-load.
        """
        if self.dsn is None:
            self._require_no_permissions()
            return
        if others["embedded"] or others["pg_bin"] is not None:
            raise UsageError("--dsn cannot be combined with --embedded or --pg-bin", hint="give one of them")
        for name, given in _FOR_SCRATCH.items():
            if others[given]:
                raise UsageError(
                    f"--{name} requires a search on scratch servers, but --dsn names a running server",
                    hint=f"leave out --{name}",
                )
        if not self.allow_load:
            raise PermissionNotGivenError(
                "a search puts load on the running server, and load was not allowed",
                hint="add --allow-load, or search on scratch servers: --embedded or --pg-bin DIR",
            )

    def run(
        self,
        dsn: str,
        figures: StatedFigures,
        request_on: Callable[[Installation], TuneRequest],
        progress: Progress,
        listener: Listener,
    ) -> Tuned:
        """Search on the running server."""
        from pgdyno.builds.switching.server_access import server_access
        from pgdyno.measure.design.schedule import workloads_by_server
        from pgdyno.plan.attached import attach
        from pgdyno.tune.budget import trials_in_place
        from pgdyno.tune.tune_in_place import Allowed, tune_in_place

        limits = self._limits()
        warn_about_password(dsn)
        attached = attach(dsn, figures.parsed())
        request = request_on(attached.installation)
        plan = replace(request.plan, layers=(Layer.APPLICATION,), may_change_host=False)
        request = replace(request, base=attached.base, plan=plan)
        echo(trials_in_place(request, limits, may_restart=self.maintenance_window), err=True)
        if self.maintenance_window:
            groups = len(workloads_by_server(tuple(request.conditions.workloads.values())))
            echo(f"{attached.target} is restarted {restarts_text(groups)}", err=True)
        access = server_access(dsn, self.restart_command)
        allowed = Allowed(limits, self.maintenance_window, self.is_standby_order_kept)
        return tune_in_place(attached, request, access, progress, listener, allowed)

    def _limits(self) -> OwnerLimits:
        from pgdyno.model.tuning.tuning import OwnerLimits

        return OwnerLimits(
            None if self.limit_latency_s is None else self.limit_latency_s * 1000,
            None if self.limit_memory is None else parse_size("--limit-memory", self.limit_memory),
        )

    def _require_no_permissions(self) -> None:
        given = {
            "--allow-load": self.allow_load,
            "--limit-latency": self.limit_latency_s is not None,
            "--limit-memory": self.limit_memory is not None,
            "--maintenance-window": self.maintenance_window,
        }
        for option, is_given in given.items():
            if is_given:
                raise UsageError(
                    f"{option} requires a running server, and none was named", hint="name it with --dsn"
                )


def closing_text(dsn: str, result: Tuned) -> str:
    """Return the last lines: nothing was left changed, and how to apply a proven configuration.

    Raises: like ``apply_command``.
    """
    lines = ["Nothing was left changed.", _KEPT_PLANS]
    answer = result.tuning.answer
    if answer and not _pays(result.experiment):
        lines.append("The answer is not proven to pay, so no command to apply it is shown.")
    elif answer:
        lines += ["To apply the answer:", f"  {apply_command(dsn, answer)}"]
        restarting = [one.change.key for one in result.plan.lines if one.change.effect is Effect.RESTART]
        if at_start := [key for key in answer if key in restarting]:
            lines.append(f"These settings take effect only after a server restart: {', '.join(at_start)}")
        lines.append(
            "To undo this: ALTER SYSTEM RESET each of these settings, or SET it to its present value in "
            "postgresql.auto.conf; then reload or restart as before"
        )
    return "".join(f"{line}\n" for line in lines)


def _pays(proof: Experiment | None) -> bool:
    from pgdyno.measure.decisions.plan_decision import decide_plan
    from pgdyno.model.plans.plan import Terms
    from pgdyno.model.tuning.tuning import TUNED

    return proof is not None and decide_plan(proof, TUNED, Terms()).pays


def restarts_text(data_sets: int) -> str:
    """Return the upper limit of restarts as text, for workloads on N data sets."""
    return (
        f"up to {4 * data_sets} times per round of the search, up to {2 * data_sets} times more if a "
        f"configuration fails in that round, and up to {2 * data_sets} times per round of the proof"
    )


def apply_command(dsn: str, answer: Mapping[str, str]) -> str:
    """Return the psql command that applies a configuration with ALTER SYSTEM.

    Raises: UsageError for a DSN that cannot be parsed; SettingError.
    """
    from pgdyno.plan.formats.sql import quoted
    from pgdyno.postgres.alter_system import statement_values
    from pgdyno.postgres.connection.connection import without_password

    words = ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-d", without_password(dsn)]
    for name, value in answer.items():
        literals = ", ".join(map(quoted, statement_values(name, value)))
        words += ["-c", f"ALTER SYSTEM SET {name} = {literals}"]
    return shlex.join([*words, "-c", "SELECT pg_reload_conf()"])
