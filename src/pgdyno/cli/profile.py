"""``pgdyno profile``: where a transaction's time goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.cli._measuring_options import as_booted_option, embedded_option, pg_bin_option, seed_option
from pgdyno.cli.output import echo, json_option, open_progress, print_json, print_wide

if TYPE_CHECKING:  # imported late, so that --help stays fast
    from pgdyno.model.profiles.profile import TransactionProfile

_CYCLES = 8  # of 6.5 s each


@click.command(
    name="profile",
    epilog="\b\nExamples:\n"
    "  pgdyno profile sysbench-read-write --embedded\n"
    "  pgdyno profile shop.toml --embedded --clients 1\n"
    "  pgdyno profile sysbench-read-only --embedded \\\n"
    "      --compare default generic:plan_cache_mode=force_generic_plan",
)
@click.argument("workload")
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
    help="TransactionProfile two variants beside each other, in turns.",
)
@click.option(
    "--scale", type=click.IntRange(min=1), metavar="N", help="Size of the data set [default: the workload's]."
)
@click.option(
    "--clients",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="N",
    help="Number of connections.",
)
@click.option(
    "--cycles",
    type=click.IntRange(min=2),
    default=_CYCLES,
    show_default=True,
    metavar="N",
    help="How often each kind of window is repeated, 6.5 s all together and for each variant.",
)
@seed_option
@as_booted_option
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the page (HTML) [default: beside the reports of experiments].",
)
@json_option
def command(
    *,
    workload: str,
    embedded: bool,
    pg_bin: Path | None,
    variant: str,
    compare: tuple[str, str] | None,
    scale: int | None,
    clients: int,
    cycles: int,
    seed: int,
    as_booted: bool,
    output: Path | None,
    is_json: bool,
) -> None:
    """Show where the time of WORKLOAD's transactions goes.

    One table adds up to the time of a transaction: the load generator, waking up, the run queue, the parts of
    the server's work, its waits, and time that was stolen. Each line has its source and its interval.

    It needs no hardware counters. As root and with perf, the parts of the server's work are told apart by
    samples of its stacks, and waking up from waiting in a queue by the scheduler's trace.
    """
    from pgdyno.app.installations import choose_installation
    from pgdyno.app.measuring.workload_choice import find_workloads
    from pgdyno.app.profiling.profile import ProfileRequest, profile
    from pgdyno.model.experiments.awake import AS_ASKED
    from pgdyno.model.experiments.experiment import Design
    from pgdyno.model.variants.variant import parse_variant

    [chosen] = find_workloads((workload,), (), scale).values()
    request = ProfileRequest(
        variants=tuple(map(parse_variant, compare or (variant,))),
        workload=chosen,
        installation=choose_installation(is_embedded=embedded, bin_directory=pg_bin),
        design=Design(clients=clients, seed=seed),
        cycles=cycles,
        as_booted=AS_ASKED if as_booted else "",
    )
    progress = open_progress()
    try:
        found = profile(request, progress)
    finally:
        progress.close()
    if is_json:
        from pgdyno.model.document import to_document

        print_json({"profiles": [to_document(one) for one in found]})
    else:
        from pgdyno.app.profiling.page import write_profile

        _show(found)
        echo(f"\nReport: {write_profile(found, output)}")


def _show(found: tuple[TransactionProfile, ...]) -> None:
    from pgdyno.report.elements.terminal import plain_table
    from pgdyno.report.profiles import profile_text

    for one in found:
        echo(profile_text.headline(one))
    account = profile_text.account_table(*found) if len(found) == 1 else profile_text.comparison_table(*found)
    echo("")
    print_wide(plain_table(account))
    for one in found:
        for table in (profile_text.kernel_table(one), profile_text.statement_table(one)):
            if table.rows:
                echo(f"\n{one.variant}: {table.caption}\n")
                print_wide(plain_table(table))
        echo("")
        for line in (*profile_text.advice_lines(one), *profile_text.notes(one)):
            echo(line)
