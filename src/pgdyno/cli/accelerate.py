"""``pgdyno accelerate``: measure the plan against the present configuration, and apply it if it pays."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli._acceleration import print_acceleration
from pgdyno.cli._measuring_options import (
    as_booted_option,
    embedded_option,
    pg_bin_option,
    phase_option,
    scale_option,
    seed_option,
    unlike_option,
    workload_option,
)
from pgdyno.cli._server_options import (
    StatedFigures,
    figures_options,
    layers_to_measure,
    restart_command_option,
    standbys_option,
    warn_about_password,
)
from pgdyno.cli.measuring import refuse_with_cell, with_load_from
from pgdyno.cli.output import echo, json_option, open_progress
from pgdyno.cli.quantities import duration, percent
from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN
from pgdyno.model.experiments.experiment import Phase
from pgdyno.model.plans.plan import Layer

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.accelerate.attached_server import AttachedAcceleration
    from pgdyno.accelerate.request import AccelerateRequest
    from pgdyno.base.ports import Progress
    from pgdyno.measure.conditions import LoadSource
    from pgdyno.postgres.process.installation import Installation

_STILL_CHANGED = 3  # exit code
_STRETCH_S = 15.0  # some stalls of a writing server recur every few seconds
_ALL = 1.0  # no server can lose more


def _loss(context: click.Context, parameter: click.Parameter, text: str) -> float | None:
    """Return the largest acceptable loss as a share. Raises: UsageError, also for 100% or more."""
    share = percent(context, parameter, text)
    if share is not None and share >= _ALL:
        raise UsageError(
            f'{parameter.opts[0]} "{text}" would let any plan pass', hint="write a percentage below 100%"
        )
    return share


@click.command(
    name="accelerate",
    epilog="\b\nExamples:\n"
    "  pgdyno accelerate --embedded\n"
    "  pgdyno accelerate --embedded --attribute --budget 25m\n"
    "  pgdyno accelerate --dsn service=production --budget 30m\n"
    "  pgdyno accelerate --dsn service=production --yes --allow-restart"
    " --restart-command 'systemctl restart postgresql@17-main'",
)
@embedded_option
@pg_bin_option
@click.option("--dsn", metavar="DSN", help="A running server on this host.")
@workload_option
@scale_option
@click.option(
    "--budget",
    "budget_s",
    default="10m",
    callback=duration,
    show_default=True,
    metavar="TIME",
    help="Time limit, including the loading of data. From 15m on, the report also contains latencies at 60% "
    "of the baseline's throughput.",
)
@click.option(
    "--min-gain",
    metavar="PERCENT",
    callback=percent,
    help="Smallest throughput gain that justifies a change [default: 5% for another build, 2% for a "
    "restart, 1% for a reload].",
)
@click.option(
    "--max-loss",
    default="5%",
    callback=_loss,
    show_default=True,
    metavar="PERCENT",
    help="Reject the plan if any workload could lose more throughput than this.",
)
@click.option(
    "--max-tail-loss",
    default="10%",
    callback=percent,
    show_default=True,
    metavar="PERCENT",
    help="Reject the plan if the mean latency of any workload's slowest 5 % of transactions could grow by "
    "more than this.",
)
@click.option(
    "--max-p99-loss",
    default="25%",
    callback=percent,
    show_default=True,
    metavar="PERCENT",
    help="Reject the plan if any workload's 99th percentile could grow by more than this.",
)
@click.option(
    "--layers",
    metavar="LAYER,…",
    help='Layers to plan, or "all" [default: application with --dsn, else all layers that this user may '
    "change].",
)
@click.option(
    "--attribute",
    type=click.Choice(["layers", "levers"]),
    is_flag=False,
    flag_value="layers",
    help="Also measure the effect of each layer or lever: alone, and as the plan's loss without it. Takes "
    "longer. Without a value: layers.",
)
@phase_option
@click.option(
    "--build",
    is_flag=True,
    help="First make a verified profile-guided build, unless one exists: about 15 more minutes.",
)
@click.option(
    "--patched",
    is_flag=True,
    help="Allow the plan to use a build of a patched source (pgdyno build --patch).",
)
@seed_option
@as_booted_option
@unlike_option
@click.option(
    "--tail",
    type=click.Choice(["strict", "watch"]),
    default="strict",
    show_default=True,
    help="With --dsn: the action if the plan is faster but its latency tail is unknown. strict: do not apply "
    "it. watch, with --yes: try it for 12 minutes, and undo it if the server's own transactions get slower.",
)
@click.option(
    "--allow-load",
    is_flag=True,
    help="With --dsn: put load on that server, instead of measuring scratch servers on its host.",
)
@click.option("--allow-restart", is_flag=True, help="With --dsn: restart the server if a setting needs it.")
@click.option(
    "--yes",
    is_flag=True,
    help="With --dsn: apply the plan if it pays, although it was measured on a bundled workload.",
)
@restart_command_option
@standbys_option
@figures_options
@json_option
def command(*, is_json: bool, **options: Any) -> None:
    """Make PostgreSQL faster, prove it, and keep it reversible.

    Measures the present configuration against pgdyno's whole plan, side by side on scratch servers of the
    same build with byte-identical data, and decides whether the plan pays: significantly faster by more than
    its cost, slower on no workload, and without a longer latency tail. A running server named by --dsn is
    only read; load and restarts need permission. The plan is applied to it only if the plan pays and --yes
    accepts a bundled workload as proof. pgdyno revert undoes the change. The exit code is 3 if --tail watch
    applied a plan and found harm that only another restart undoes.

    Without --dsn, root's plan also contains kernel parameters, set with receipts during the measurement and
    restored at the end. A verified build of the same major version, made by pgdyno build, is used if one
    exists.
    """
    figures = {name: options.pop(name) for name in StatedFigures.__dataclass_fields__}
    given = _Given(**options, figures=StatedFigures(**figures))
    progress = open_progress()
    try:
        result = given.run(progress)
    finally:
        progress.close()
    print_acceleration(result, is_json=is_json)
    if result.watched is not None and result.watched.is_alarm:
        sys.exit(_STILL_CHANGED)


@dataclass(frozen=True)
class _Given:
    """The options as given on the command line."""

    embedded: bool
    pg_bin: Path | None
    dsn: str | None
    workloads: tuple[str, ...]
    scale: int | None
    budget_s: float
    min_gain: float | None
    max_loss: float
    max_tail_loss: float
    max_p99_loss: float
    layers: str | None
    attribute: str | None
    build: bool
    patched: bool
    phase: Phase
    seed: int
    as_booted: bool
    unlike: bool
    load_from: LoadSource | None
    tail: str
    allow_load: bool
    allow_restart: bool
    yes: bool
    restart_command: str | None
    is_standby_order_kept: bool
    figures: StatedFigures

    def run(self, progress: Progress) -> AttachedAcceleration:
        """Accelerate a running server, or scratch servers of an installation."""
        from pgdyno.accelerate.accelerate import accelerate
        from pgdyno.accelerate.attached_server import AttachedAcceleration
        from pgdyno.accelerate.budget import what_fits
        from pgdyno.accelerate.build_advice import require_patched_build
        from pgdyno.postgres.process.registry import choose_installation

        if self.dsn is None:
            self._require_dsn_for_permissions()
            installation = choose_installation(is_embedded=self.embedded, bin_directory=self.pg_bin)
            if installation is None:
                raise UsageError(
                    "no PostgreSQL was specified",
                    hint="add --embedded, --pg-bin DIR, or --dsn for a running server on this host",
                )
            request = self._request(installation)
            self._require_compiler_layer(request)
            if self.patched:
                require_patched_build(request.conditions)
            fits = what_fits(request)  # raises before any time goes into a build
            if self.build:
                self._ensure_build(request, progress)
                fits = what_fits(request)
            echo(fits, err=True)
            return AttachedAcceleration(accelerate(request, progress, partial(echo, err=True)), None, None)
        return self._run_attached(self.dsn, progress)

    def _require_compiler_layer(self, request: AccelerateRequest) -> None:
        """Raise UsageError for --build or --patched without the compiler layer."""
        for option, is_given in {"--build": self.build, "--patched": self.patched}.items():
            if is_given and Layer.COMPILER not in request.plan.layers:
                raise UsageError(
                    f"{option} requires the compiler layer, which --layers excludes",
                    hint="add compiler to --layers",
                )

    def _ensure_build(self, request: AccelerateRequest, progress: Progress) -> None:
        from pgdyno.accelerate.build_advice import BUILD_MINUTES, make_build

        echo(
            f"first a build, unless one exists: about {BUILD_MINUTES} minutes in addition to the budget",
            err=True,
        )
        make_build(request.conditions, progress)

    def _run_attached(self, dsn: str, progress: Progress) -> AttachedAcceleration:
        from pgdyno.accelerate.attached_server import Permissions, accelerate_attached
        from pgdyno.accelerate.budget import what_fits
        from pgdyno.accelerate.watch import Pace
        from pgdyno.builds.switching.server_access import server_access
        from pgdyno.plan.attached import attach

        if self.embedded or self.pg_bin is not None:
            raise UsageError("--dsn cannot be combined with --embedded or --pg-bin", hint="give one of them")
        if self.build:
            raise UsageError(
                "--build requires scratch servers, but --dsn names a running server",
                hint="pgdyno build makes a build, and pgdyno switch runs the server with it",
            )
        if self.patched:
            raise UsageError(
                "--patched requires scratch servers, but --dsn names a running server",
                hint="pgdyno switch --patched runs the server with such a build",
            )
        if self.load_from is not None:
            refuse_with_cell({"--allow-load": self.allow_load})
        if self.allow_load and self.phase is Phase.CYCLE:
            raise UsageError(
                "--allow-load measures in trials of seconds, but --phase cycle needs minutes",
                hint="leave out one of them",
            )
        warn_about_password(dsn)
        attached = attach(dsn, self.figures.parsed())
        request = replace(
            self._request(attached.installation),
            base=attached.base,
            subject=attached.subject,
            notes=attached.notes,
        )
        echo(what_fits(request, is_loaded=self.allow_load), err=True)
        if self.allow_restart:
            echo(f"{attached.target} is restarted {self._restart_limit(request)}", err=True)
        watch = Pace() if self._is_watched else None
        permissions = Permissions(
            self.allow_load, self.allow_restart, self.yes, self.is_standby_order_kept, watch
        )
        access = server_access(dsn, self.restart_command)
        report = partial(echo, err=True)
        return accelerate_attached(attached, request, access, progress, permissions, report)

    @property
    def _is_watched(self) -> bool:
        return self.tail == "watch"

    def _restart_limit(self, request: AccelerateRequest) -> str:
        from pgdyno.accelerate.in_place import restarts_at_most

        if not self.allow_load:
            return "at most once, after measuring"
        return f"up to {restarts_at_most(request)} times while it is measured"

    def _require_dsn_for_permissions(self) -> None:
        given = {
            "--tail watch": self._is_watched,
            "--allow-load": self.allow_load,
            "--allow-restart": self.allow_restart,
            "--yes": self.yes,
        }
        for option, is_given in given.items():
            if is_given:
                raise UsageError(
                    f"{option} requires a running server, and none was named", hint="name it with --dsn"
                )

    def _request(self, installation: Installation) -> AccelerateRequest:
        from pgdyno.accelerate.request import DEFAULT_WORKLOADS, AccelerateRequest
        from pgdyno.measure.conditions import Conditions
        from pgdyno.measure.design.parts import Attribute
        from pgdyno.measure.design.phase import require_writing
        from pgdyno.model.experiments.experiment import Design
        from pgdyno.model.experiments.workload import usual_clients
        from pgdyno.model.variants.variant import Variant
        from pgdyno.plan.engine.planner import PlanRequest
        from pgdyno.postgres.process.local_machine import may_change_host
        from pgdyno.workload.workload_choice import find_workloads

        workloads = find_workloads(self.workloads or DEFAULT_WORKLOADS, (), self.scale)
        if self.phase is Phase.CYCLE:
            require_writing(workloads.values())
        plan = PlanRequest(
            figures=self.figures.parsed(),
            layers=layers_to_measure(self.layers, is_attached=self.dsn is not None),
            may_change_host=may_change_host(),
        )
        stretch_s = 0.0 if self.attribute else _STRETCH_S  # with many servers it would take most of the time
        conditions = Conditions(
            installation,
            workloads,
            Design(
                seed=self.seed,
                clients=usual_clients(workloads.values()),
                phase=self.phase,
                blocks_per_round=1,
                stretch_s=stretch_s,
            ),
            as_booted=AS_BOOTED_GIVEN if self.as_booted else "",
            accepts_unlike=self.unlike,
            accepts_patches=self.patched,
        )
        return AccelerateRequest(
            with_load_from(conditions, self.load_from),
            Variant("default"),
            self.budget_s,
            max_loss=self.max_loss,
            max_tail_loss=self.max_tail_loss,
            max_p99_loss=self.max_p99_loss,
            min_gain=self.min_gain,
            plan=plan,
            attribute=None if self.attribute is None else Attribute(self.attribute),
        )
