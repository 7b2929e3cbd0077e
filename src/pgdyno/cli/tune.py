"""``pgdyno tune``: search for the best configuration, and prove it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli._measuring_options import (
    as_booted_option,
    embedded_option,
    pg_bin_option,
    scale_option,
    seed_option,
    workload_option,
)
from pgdyno.cli._server_options import StatedFigures, figures_options, layers_to_measure
from pgdyno.cli._tuning_in_place import InPlace, in_place_options
from pgdyno.cli.measuring import warn_of_load, with_load_from
from pgdyno.cli.output import echo, json_option, open_progress, print_json
from pgdyno.cli.quantities import duration
from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.measure.conditions import LoadSource
    from pgdyno.model.tuning.tuning import Removal, Trial, Tuning
    from pgdyno.postgres.process.installation import Installation
    from pgdyno.tune.tune_request import TuneRequest
    from pgdyno.tune.tuner import Tuned


@click.command(
    name="tune",
    epilog="\b\nExamples:\n"
    "  pgdyno tune --embedded --budget 20m\n"
    "  pgdyno tune --embedded --workload mine.toml --trials 25\n"
    "  pgdyno tune --embedded --resume 20261125-201500-tune\n"
    "  pgdyno tune --embedded --warm-start yesterday.zip\n"
    "  pgdyno tune --embedded --cell hosts.toml\n"
    "  pgdyno tune --dsn service=production --allow-load --limit-latency 20ms --limit-memory 8GB",
)
@embedded_option
@pg_bin_option
@workload_option
@scale_option
@click.option(
    "--budget",
    "budget_s",
    default="30m",
    callback=duration,
    show_default=True,
    metavar="TIME",
    help="Time limit, including the loading of data: about half for the search, a fifth for shortening the "
    "answer, the rest for the proof.",
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    metavar="N",
    help="End the search after N configurations [default: at its time limit].",
)
@click.option(
    "--sampler",
    default="guided",
    show_default=True,
    metavar="NAME",
    help="How configurations are sampled: guided, or random.",
)
@click.option("--layers", metavar="LAYER,…", help='Layers to search, or "all" [default: as accelerate].')
@click.option(
    "--attribute",
    is_flag=True,
    help="In the proof, also measure the effect of each change: alone, and as the answer's loss without it. "
    "Needs a larger budget.",
)
@click.option("--resume", metavar="ID", help="Continue an interrupted search.")
@click.option(
    "--warm-start",
    "warm_start",
    multiple=True,
    metavar="BUNDLE|ID",
    help="Try the configuration of an earlier search or experiment right after the plan: an id, a bundle, or "
    "a *.tuning.json file, of the same major version. Its measurements are not used. Repeatable.",
)
@in_place_options
@seed_option
@as_booted_option
@figures_options
@json_option
def command(*, is_json: bool, **options: Any) -> None:
    """Search for the best configuration, and prove it.

    Starts with pgdyno's plan and tries other values of the settings that the plan may change, with and
    without the plan's build. Each configuration runs on a scratch server, in short turns with the best one so
    far and the present configuration. A clearly slower configuration is dropped after one round; a faster one
    becomes the new best. Then each of the winner's changes is left out if the winner is as fast without it.
    The shortened answer is measured again against the default and the plan. Only this last measurement is the
    result; it contains no measurement of the search.

    Without --dsn, no running server is touched. With --dsn and --allow-load, configurations take turns on
    that server itself, in whole trials. Without --allow-restart, only settings that take effect with a reload
    are changed. Each change has a receipt. At the end the server has its original configuration; if pgdyno is
    killed, pgdyno revert restores it.

    Settings that affect durability are never tried.
    """
    figures = {name: options.pop(name) for name in StatedFigures.__dataclass_fields__}
    in_place = InPlace(**{name: options.pop(name) for name in InPlace.__dataclass_fields__})
    given = _Given(**options, figures=StatedFigures(**figures))
    in_place.check(options)
    if in_place.dsn is not None:
        given = given.without_load_hosts()
    progress = open_progress()
    try:
        if in_place.dsn is not None:
            result = in_place.run(in_place.dsn, given.figures, given.request_on, progress, _Printer())
        else:
            from pgdyno.tune.budget import trials_within
            from pgdyno.tune.tune import tune

            request = given.request()
            echo(trials_within(request), err=True)
            result = tune(request, progress, _Printer())
    finally:
        progress.close()
    _print(result, in_place.dsn, is_json=is_json)


@dataclass(frozen=True)
class _Given:
    """The options as given on the command line."""

    embedded: bool
    pg_bin: Path | None
    workloads: tuple[str, ...]
    scale: int | None
    budget_s: float
    trials: int | None
    sampler: str
    layers: str | None
    attribute: bool
    resume: str | None
    warm_start: tuple[str, ...]
    seed: int
    as_booted: bool
    load_from: LoadSource | None
    figures: StatedFigures

    def without_load_hosts(self) -> _Given:
        """Return the same without load hosts, and warn if a cell names any. Raises: UsageError."""
        if self.load_from is not None and self.load_from.allows_fewer:
            raise UsageError(
                "--allow-fewer requires load hosts, and a search on a running server uses none",
                hint="leave out --allow-fewer, or --dsn",
            )
        if self.load_from is not None:
            warn_of_load("tune --dsn", self.load_from.cell)
        return replace(self, load_from=None)

    def request(self) -> TuneRequest:
        """Return the request. Raises: UsageError if no PostgreSQL was specified, or for an invalid option."""
        from pgdyno.postgres.process.registry import choose_installation

        installation = choose_installation(is_embedded=self.embedded, bin_directory=self.pg_bin)
        if installation is None:
            raise UsageError("no PostgreSQL was specified", hint="add --embedded, --pg-bin DIR, or --dsn")
        return self.request_on(installation)

    def request_on(self, installation: Installation) -> TuneRequest:
        """Return the request for an installation. Raises: UsageError for an unknown sampler."""
        from pgdyno.accelerate.request import DEFAULT_WORKLOADS
        from pgdyno.measure.conditions import Conditions
        from pgdyno.model.experiments.experiment import Design
        from pgdyno.model.experiments.workload import usual_clients
        from pgdyno.model.variants.variant import Variant
        from pgdyno.plan.engine.planner import PlanRequest
        from pgdyno.postgres.process.local_machine import may_change_host
        from pgdyno.tune.search.samplers import load
        from pgdyno.tune.tune_request import TuneRequest
        from pgdyno.workload.workload_choice import find_workloads

        if self.sampler not in load():
            raise UsageError(
                f'unknown sampler "{self.sampler}"', hint=f"known samplers: {', '.join(sorted(load()))}"
            )
        workloads = find_workloads(self.workloads or DEFAULT_WORKLOADS, (), self.scale)
        conditions = Conditions(
            installation,
            workloads,
            Design(seed=self.seed, clients=usual_clients(workloads.values())),
            as_booted=AS_BOOTED_GIVEN if self.as_booted else "",
        )
        return TuneRequest(
            conditions=with_load_from(conditions, self.load_from),
            base=Variant("default"),
            budget_s=self.budget_s,
            plan=PlanRequest(
                figures=self.figures.parsed(),
                layers=layers_to_measure(self.layers),
                may_change_host=may_change_host(),
            ),
            sampler=self.sampler,
            most_trials=self.trials,
            resume=self.resume,
            is_attributed=self.attribute,
            warm_start=self.warm_start,
        )


class _Printer:
    """Prints finished trials and removals on stderr."""

    def tried(self, trial: Trial) -> None:
        """Print a finished trial."""
        from pgdyno.tune.view import trial_line

        echo(trial_line(trial), err=True)

    def noted(self, note: str) -> None:
        """Print a note."""
        echo(f"Note: {note}", err=True)

    def left_out(self, removal: Removal) -> None:
        """Print an attempt to shorten the answer."""
        from pgdyno.tune.view import removal_line

        echo(removal_line(removal), err=True)

    def answered(self, tuning: Tuning) -> None:
        """Print the answer, before its proof starts."""
        from pgdyno.tune.view import answer_text

        echo(answer_text(tuning), err=True, nl=False)


def _print(result: Tuned, dsn: str | None = None, *, is_json: bool) -> None:
    from pgdyno.base.facts import to_document
    from pgdyno.cli._tuning_in_place import closing_text
    from pgdyno.cli.results import print_experiment
    from pgdyno.measure.view.parts_text import attribution_text
    from pgdyno.results.documents import comparison_document
    from pgdyno.results.report import write_report
    from pgdyno.tune.view import answer_text, notes_text, proof_text

    if is_json:
        measured = {} if result.experiment is None else comparison_document(result.experiment)
        print_json({"tuning": to_document(result.tuning), **measured})
        return
    if result.experiment is not None:
        print_experiment(result.experiment)
    echo(f"\n{answer_text(result.tuning)}", nl=False)
    if dsn is not None:
        echo(f"\n{closing_text(dsn, result)}", nl=False)
    if result.experiment is None:
        echo(notes_text(result.tuning), nl=False)
    else:
        echo(f"\n{proof_text(result.tuning, result.experiment)}", nl=False)
        if text := attribution_text(result.experiment):
            echo(f"\n{text}", nl=False)
        echo(f"\nReport: {write_report(result.experiment)}")
