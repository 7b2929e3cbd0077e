"""``pgdyno accelerate``: the main job."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli._acceleration import print_acceleration
from pgdyno.cli._load_hosts import refuse_beside_cell, with_load_from
from pgdyno.cli._measuring_options import (
    as_booted_option,
    embedded_option,
    pg_bin_option,
    phase_option,
    scale_option,
    seed_option,
    workload_option,
)
from pgdyno.cli._server_options import (
    StatedFigures,
    figures_options,
    parse_layers,
    warn_about_password,
)
from pgdyno.cli.output import echo, json_option, open_progress
from pgdyno.cli.quantities import duration, percent
from pgdyno.host.awake import AS_ASKED
from pgdyno.model.experiments.experiment import Phase
from pgdyno.model.plans.plan import Layer

if TYPE_CHECKING:  # imported late, so that --help stays fast
    from pgdyno.accelerate.attached_server import AttachedAcceleration
    from pgdyno.accelerate.request import AccelerateRequest
    from pgdyno.base.ports import Progress
    from pgdyno.measure.arenas.load_source import LoadSource
    from pgdyno.model.experiments.workload import Workload
    from pgdyno.postgres.process.installation import Installation

_STILL_CHANGED = 3  # exit code
_STRETCH_S = 15.0  # some of a writing server's stalls come every few seconds
_ALL = 1.0  # a loss that no server can exceed


def _loss(context: click.Context, parameter: click.Parameter, text: str) -> float | None:
    """Return a share that something may be lost of. Raises: UsageError, for all of it or more as well."""
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
    help="Time limit, including the loading of data. From 15m on, the report also has latencies at 60% of "
    "the baseline's throughput.",
)
@click.option(
    "--min-gain",
    metavar="PERCENT",
    callback=percent,
    help="The smallest gain of throughput that is worth a change [default: 5% for another build, 2% for a "
    "restart, 1% for a reload].",
)
@click.option(
    "--max-loss",
    default="5%",
    callback=_loss,
    show_default=True,
    metavar="PERCENT",
    help="Reject the plan if a workload could lose more throughput than this.",
)
@click.option(
    "--max-tail-loss",
    default="10%",
    callback=percent,
    show_default=True,
    metavar="PERCENT",
    help="Reject the plan if the mean of a workload's slowest 5 % of transactions could be longer by more "
    "than this.",
)
@click.option(
    "--max-p99-loss",
    default="25%",
    callback=percent,
    show_default=True,
    metavar="PERCENT",
    help="Reject the plan if a workload's 99th percentile could be longer by more than this.",
)
@click.option(
    "--layers",
    metavar="LAYER,…",
    help='Layers to plan, or "all" [default: application with --dsn, else all that this user may change].',
)
@click.option(
    "--attribute",
    type=click.Choice(["layers", "levers"]),
    is_flag=False,
    flag_value="layers",
    help="Measure the worth of each layer as well, or of each lever: alone, and as what the plan loses "
    "without it. Takes longer. Without a value: layers.",
)
@phase_option
@click.option(
    "--build",
    is_flag=True,
    help="First make a verified profile-guided build, if there is none: about 15 minutes more.",
)
@click.option(
    "--patched",
    is_flag=True,
    help="Let the plan choose a build of a source that pgdyno has patched (pgdyno build --patch).",
)
@seed_option
@as_booted_option
@click.option(
    "--tail",
    type=click.Choice(["strict", "watch"]),
    default="strict",
    show_default=True,
    help="With --dsn, if the plan is faster but its latency tail is unknown. strict: do not apply it. watch, "
    "with --yes: try it for 12 minutes, and undo it if the server's own transactions take longer.",
)
@click.option(
    "--allow-load",
    is_flag=True,
    help="With --dsn: put load on that server, instead of measuring scratch servers beside it.",
)
@click.option("--allow-restart", is_flag=True, help="With --dsn: restart the server if a setting needs it.")
@click.option(
    "--yes",
    is_flag=True,
    help="With --dsn: apply the plan if it pays, although it was measured on a bundled workload.",
)
@click.option("--restart-command", metavar="COMMAND", help="Command that restarts it, run without a shell.")
@click.option(
    "--standbys-done",
    is_flag=True,
    help="Confirm that the standbys already have the raised limits, or the primary the lowered ones.",
)
@figures_options
@json_option
def command(*, is_json: bool, **options: Any) -> None:
    """Make PostgreSQL faster, prove it, and be able to undo it.

    Measures the configuration as found against pgdyno's whole plan, side by side on scratch servers of the
    same build with byte-identical data, and says whether the plan pays: faster beyond doubt by more than it
    costs, slower on no workload, and without a longer latency tail. A running server named by --dsn is only
    read, and neither loaded nor restarted unless that is allowed; the plan is applied to it only if it pays
    and --yes accepts a bundled workload as proof. pgdyno revert undoes that. The exit code is 3 if a plan was
    applied by --tail watch and harm is seen that only another restart undoes.

    Without --dsn, a plan made by root also has kernel parameters, set with receipts while it is measured and
    restored at the end. A verified build of the same major version, made by pgdyno build, is used if there
    is one.
    """
    figures = {name: options.pop(name) for name in StatedFigures.__dataclass_fields__}
    asked = Asked(**options, figures=StatedFigures(**figures))
    progress = open_progress()
    try:
        result = asked.run(progress)
    finally:
        progress.close()
    print_acceleration(result, is_json=is_json)
    if result.watched is not None and result.watched.is_alarm:
        sys.exit(_STILL_CHANGED)


@dataclass(frozen=True)
class Asked:
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
    load_from: LoadSource | None
    tail: str
    allow_load: bool
    allow_restart: bool
    yes: bool
    restart_command: str | None
    standbys_done: bool
    figures: StatedFigures

    def run(self, progress: Progress) -> AttachedAcceleration:
        """Accelerate a running server, or a scratch server of an installation."""
        from pgdyno.accelerate.accelerate import accelerate
        from pgdyno.accelerate.attached_server import AttachedAcceleration
        from pgdyno.accelerate.budget import what_fits
        from pgdyno.accelerate.build_advice import require_patched_build
        from pgdyno.postgres.process.installations import choose_installation

        if self.dsn is None:
            self._require_dsn_for_permissions()
            installation = choose_installation(is_embedded=self.embedded, bin_directory=self.pg_bin)
            if installation is None:
                raise UsageError(
                    "no PostgreSQL was named",
                    hint="add --embedded, --pg-bin DIR, or --dsn for a running server on this host",
                )
            request = self._request(installation)
            self._require_compiler_layer(request)
            if self.patched:
                require_patched_build(request.conditions)
            fits = what_fits(request)  # refused before a build is made for it
            if self.build:
                self._make_build(request, progress)
                fits = what_fits(request)
            echo(fits, err=True)
            return AttachedAcceleration(accelerate(request, progress), None, None)
        return self._run_attached(self.dsn, progress)

    def _require_compiler_layer(self, request: AccelerateRequest) -> None:
        """Raise UsageError if the plan may not use the build that an option is about."""
        for option, is_given in {"--build": self.build, "--patched": self.patched}.items():
            if is_given and Layer.COMPILER not in request.plan.layers:
                raise UsageError(
                    f"{option} belongs to the compiler layer, and --layers leaves that out",
                    hint="add compiler to --layers",
                )

    def _make_build(self, request: AccelerateRequest, progress: Progress) -> None:
        """Make a build first, unless there is one."""
        from pgdyno.accelerate.build_advice import BUILD_MINUTES, make_build

        echo(
            f"first a build, unless there is one: about {BUILD_MINUTES} minutes, not part of the budget",
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
            raise UsageError(
                "--dsn names a server, and --embedded or --pg-bin another", hint="give one of them"
            )
        if self.build:
            raise UsageError(
                "--build concerns scratch servers, and --dsn names a running one",
                hint="pgdyno build makes a build, and pgdyno switch lets the server run from it",
            )
        if self.patched:
            raise UsageError(
                "--patched concerns scratch servers, and --dsn names a running one",
                hint="pgdyno switch --patched lets the server run from such a build",
            )
        if self.load_from is not None:
            refuse_beside_cell({"--allow-load": self.allow_load})
        if self.allow_load and self.phase is Phase.CYCLE:
            raise UsageError(
                "--allow-load measures by trials of seconds, and --phase cycle by minutes",
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
            echo(f"{attached.target} is restarted {self._restarts(request)}", err=True)
        watch = Pace() if self._is_watched else None
        permissions = Permissions(self.allow_load, self.allow_restart, self.yes, self.standbys_done, watch)
        access = server_access(dsn, self.restart_command)
        say = partial(echo, err=True)
        return accelerate_attached(attached, request, access, progress, permissions, say)

    @property
    def _is_watched(self) -> bool:
        return self.tail == "watch"

    def _restarts(self, request: AccelerateRequest) -> str:
        """Say how often the server may be restarted, before that happens for the first time."""
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
                    f"{option} concerns a running server, and none was named", hint="name it with --dsn"
                )

    def _request(self, installation: Installation) -> AccelerateRequest:
        from pgdyno.accelerate.request import DEFAULT_WORKLOADS, AccelerateRequest
        from pgdyno.measure.conditions import Conditions
        from pgdyno.measure.design.parts import Attribute
        from pgdyno.model.experiments.experiment import Design
        from pgdyno.model.variants.variant import Variant
        from pgdyno.plan.engine.planner import PlanRequest
        from pgdyno.postgres.process.local_machine import may_change_host
        from pgdyno.workload.workload_choice import find_workloads

        names = self.workloads or DEFAULT_WORKLOADS
        workloads = find_workloads(names, (), self.scale)
        plan = PlanRequest(
            figures=self.figures.parsed(), layers=self._layers(), may_change_host=may_change_host()
        )
        stretch_s = 0.0 if self.attribute else _STRETCH_S  # of many servers they would take most of the time
        conditions = Conditions(
            installation,
            workloads,
            Design(seed=self.seed, phase=self._phase(workloads), blocks_per_round=1, stretch_s=stretch_s),
            as_booted=AS_ASKED if self.as_booted else "",
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

    def _phase(self, workloads: Mapping[str, Workload]) -> Phase:
        """Return the phase. Raises: UsageError for a cycle of workloads that only read."""
        from pgdyno.measure.design.phase import require_writing

        if self.phase is Phase.CYCLE:
            require_writing(workloads.values())
        return self.phase

    def _layers(self) -> tuple[Layer, ...]:
        from pgdyno.postgres.process.local_machine import may_change_host

        if self.layers is not None:
            return parse_layers(self.layers)
        if self.dsn is not None:
            return (Layer.APPLICATION,)
        of_the_machine = (Layer.SYSTEM, Layer.HARDWARE) if may_change_host() else ()
        return (Layer.APPLICATION, Layer.COMPILER, *of_the_machine)
