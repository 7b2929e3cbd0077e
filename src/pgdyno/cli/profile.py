"""``pgdyno profile``: show where a transaction's time goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli._measuring_options import (
    as_booted_option,
    clients_option,
    embedded_option,
    pg_bin_option,
    seed_option,
)
from pgdyno.cli._server_options import warn_about_password
from pgdyno.cli.output import echo, json_option, open_progress, print_json, print_wide
from pgdyno.cli.quantities import duration

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.base.ports import Progress
    from pgdyno.profile.reading.profile import ProfileRequest
    from pgdyno.profile.records.profile_record import TransactionProfile
    from pgdyno.report.elements.tables import Table

_CYCLES = 8  # 6.5 s each, one second more with hardware counters
_WATCHED_S = 60.0


@dataclass(frozen=True)
class _ScratchOptions:
    """The options for profiles on scratch servers, as given on the command line."""

    embedded: bool
    pg_bin: Path | None
    variant: str
    compare: tuple[str, str] | None
    scale: int | None
    clients: int | None
    cycles: int
    seed: int
    as_booted: bool
    simulate: bool

    def require_none(self) -> None:
        """Raise UsageError for options that do not apply to a running server's traffic."""
        given = {
            "--embedded": self.embedded,
            "--pg-bin": self.pg_bin,
            "--compare": self.compare,
            "--scale": self.scale,
            "--simulate": self.simulate,
        }
        if refused := [name for name, value in given.items() if value]:
            raise UsageError(f"{' and '.join(refused)} cannot be combined with --dsn")

    def request(self, workload: str) -> ProfileRequest:
        """Return the profile's request. Raises: UsageError."""
        from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN
        from pgdyno.model.experiments.experiment import Design
        from pgdyno.model.experiments.workload import usual_clients
        from pgdyno.model.variants.variant import parse_variant
        from pgdyno.postgres.process.registry import choose_installation
        from pgdyno.profile.reading.profile import ProfileRequest
        from pgdyno.workload.workload_choice import find_workloads

        [chosen] = find_workloads((workload,), (), self.scale).values()
        return ProfileRequest(
            variants=tuple(map(parse_variant, self.compare or (self.variant,))),
            workload=chosen,
            installation=choose_installation(is_embedded=self.embedded, bin_directory=self.pg_bin),
            design=Design(clients=self.clients or usual_clients([chosen]), seed=self.seed),
            cycles=self.cycles,
            as_booted=AS_BOOTED_GIVEN if self.as_booted else "",
        )


@click.command(
    name="profile",
    epilog="\b\nExamples:\n"
    "  pgdyno profile sysbench-read-write --embedded\n"
    "  pgdyno profile shop.toml --embedded --clients 1\n"
    "  pgdyno profile sysbench-read-only --embedded \\\n"
    "      --compare default generic:plan_cache_mode=force_generic_plan\n"
    "  pgdyno profile sysbench-read-only --embedded --simulate\n"
    "  pgdyno profile --dsn service=production --for 2m",
)
@click.argument("workload", required=False)
@click.option(
    "--dsn",
    metavar="DSN",
    help="Instead of WORKLOAD: watch the traffic of this running server. It is neither loaded nor changed.",
)
@click.option(
    "--for",
    "duration_s",
    callback=duration,
    metavar="TIME",
    help="How long to watch a running server [default: 60s].",
)
@embedded_option
@pg_bin_option
@click.option(
    "--variant",
    default="default",
    show_default=True,
    metavar="VARIANT",
    help="The variant to profile: [SERVER@]NAME[:setting=value,…].",
)
@click.option(
    "--compare",
    nargs=2,
    metavar="VARIANT VARIANT",
    help="Profile two variants side by side, in turns.",
)
@click.option(
    "--scale", type=click.IntRange(min=1), metavar="N", help="Size of the data set [default: the workload's]."
)
@clients_option
@click.option(
    "--cycles",
    type=click.IntRange(min=2),
    default=_CYCLES,
    show_default=True,
    metavar="N",
    help="Number of repetitions of the windows; each takes 6.5 s per variant.",
)
@click.option(
    "--simulate",
    is_flag=True,
    help="Also simulate a processor (valgrind): instructions, cache misses, branches, a map of the code.",
)
@seed_option
@as_booted_option
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the page (HTML) [default: the directory of experiments' reports].",
)
@click.option(
    "--folded",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the sampled stacks as text, in the format of flamegraph.pl and speedscope.",
)
@json_option
def command(
    *,
    workload: str | None,
    dsn: str | None,
    duration_s: float | None,
    output: Path | None,
    folded: Path | None,
    is_json: bool,
    **options: Any,
) -> None:
    """Show where a transaction's time goes.

    Profiles transactions of WORKLOAD on a scratch server, or a running server's own traffic.

    One table adds up to the time of a transaction: the load generator, wake-ups, the run queue, the parts of
    the server's work, its waits, and steal time. Each line has its source and its confidence interval.

    No hardware counters are needed. As root and with perf, stack samples distinguish the parts of the
    server's work, and a trace of the scheduler distinguishes wake-ups from waiting in the run queue.
    """
    scratch = _ScratchOptions(**options)
    _require_one_subject(workload, dsn, duration_s)
    if dsn is not None:
        scratch.require_none()
    progress = open_progress()
    try:
        found = _found(workload, dsn, duration_s or _WATCHED_S, scratch, progress)
    finally:
        progress.close()
    if folded is not None:
        from pgdyno.profile.reading.profile_files import write_folded

        write_folded(found, folded)
    if is_json:
        from pgdyno.base.facts import to_document

        print_json({"profiles": [to_document(replace(one, stacks=())) for one in found]})
    else:
        from pgdyno.profile.reading.profile_files import write_profile

        _show(found)
        echo(f"\nReport: {write_profile(found, output)}")


def _require_one_subject(workload: str | None, dsn: str | None, duration_s: float | None) -> None:
    """Raise UsageError unless exactly one of workload and DSN is given."""
    if workload is None and dsn is None:
        raise UsageError(
            "nothing to profile was named",
            hint="pgdyno profile sysbench-read-write --embedded, or pgdyno profile --dsn DSN",
        )
    if workload is not None and dsn is not None:
        raise UsageError(
            "WORKLOAD cannot be combined with --dsn: a running server's own traffic is profiled",
            hint="leave out WORKLOAD, or profile it on a scratch server: --embedded instead of --dsn",
        )
    if dsn is None and duration_s is not None:
        raise UsageError("--for requires --dsn", hint="--cycles sets how long a workload is profiled")


def _found(
    workload: str | None, dsn: str | None, duration_s: float, scratch: _ScratchOptions, progress: Progress
) -> tuple[TransactionProfile, ...]:
    if dsn is not None:
        from pgdyno.profile.reading.traffic_profile import profile_attached

        warn_about_password(dsn)
        return (profile_attached(dsn, duration_s, progress),)
    from pgdyno.profile.reading.profile import profile
    from pgdyno.profile.reading.simulate import profile_and_simulate

    assert workload is not None  # noqa: S101 — exactly one subject is given
    request = scratch.request(workload)
    return profile_and_simulate(request, progress) if scratch.simulate else profile(request, progress)


def _show(found: tuple[TransactionProfile, ...]) -> None:
    from pgdyno.profile.view import profile_text
    from pgdyno.profile.view.processor import (
        by_origin,
        code_notes,
        code_table,
        processor_notes,
        processor_tables,
    )
    from pgdyno.profile.view.statements_text import statement_tables, where_time_goes

    for one in found:
        for line in filter(None, (where_time_goes(one.statements), profile_text.headline(one))):
            echo(f"{line}.")
    for one in found:
        _print_tables(statement_tables(one), one.variant)
    account = profile_text.account_table(*found) if len(found) == 1 else profile_text.comparison_table(*found)
    _print_tables((account,))
    for one in found:
        _print_tables((profile_text.kernel_table(one), *processor_tables(one)), one.variant)
        echo("")
        for line in (*profile_text.advice_lines(one), *profile_text.notes(one), *processor_notes(one)):
            echo(line)
    _print_tables(code_table(one) for one in by_origin(found))
    for line in code_notes(found):
        echo(line)


def _print_tables(tables: Iterable[Table], variant: str = "") -> None:
    """Print the tables that have rows, each with its caption and the sentence below it."""
    from pgdyno.report.elements.terminal import PlainTable

    for table in tables:
        if table.rows:
            echo(f"\n{variant}: {table.caption}\n" if variant else f"\n{table.caption}\n")
            print_wide(PlainTable(table))
            if table.lesson:
                echo(f"\n{table.lesson}")
