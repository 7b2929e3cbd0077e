"""``pgdyno workload copy``: copy or sample a workload's database, or generate one like it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.cli.output import echo, json_option, open_progress, print_json

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.workload.scratch_copy import ScratchCopy


@click.command(
    name="copy",
    epilog="\b\nExamples:\n"
    "  pgdyno workload copy shop.toml --dsn service=production\n"
    "  pgdyno workload copy shop.toml --dsn service=production --sample --share 0.1\n"
    "  pgdyno compare default big:shared_buffers=2GB --workload shop.toml --embedded",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dsn", required=True, metavar="DSN", help="The database that FILE was captured from.")
@click.option(
    "--rate",
    metavar="SIZE",
    default="50MB",
    show_default=True,
    help="Limit per second: of the compressed dump's size, or with --sample of the table data read.",
)
@click.option(
    "--sample",
    "is_sample",
    is_flag=True,
    help="Copy a share of the rows, with the rows that belong to them and all rows they reference.",
)
@click.option(
    "--sample-from",
    metavar="TABLE",
    help="With --sample: sample this table; of other tables, copy the rows that belong to it.",
)
@click.option(
    "--synthetic",
    "is_synthetic",
    is_flag=True,
    help="Read no table: generate rows with the distributions of the planner's statistics.",
)
@click.option(
    "--share",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=1.0,
    show_default=True,
    metavar="SHARE",
    help="Share of the rows to sample or generate.",
)
@click.option(
    "--seed", type=int, default=1, show_default=True, metavar="N", help="Seed of sampled or generated rows."
)
@click.option("--replace", is_flag=True, help="Replace the copy if it exists.")
@json_option
def copy(
    *,
    file: Path,
    dsn: str,
    rate: str,
    is_sample: bool,
    sample_from: str | None,
    is_synthetic: bool,
    share: float,
    seed: int,
    replace: bool,
    is_json: bool,
) -> None:
    """Copy the database of the workload in FILE with pg_dump.

    The copy is written to FILE's directory with the suffix .dump. It contains all rows, and only you can
    read it. Measurements restore it on scratch servers as an unprivileged role. They leave out objects that
    reach beyond the database: foreign servers, subscriptions, event triggers, and extensions not known to be
    self-contained.

    With --sample, the copy contains a share of the rows: for example a share of the customers, all their
    orders, and the products in these orders. Small tables are complete, and all foreign keys hold. Each table
    is read once, in one snapshot.

    With --synthetic, the copy contains the schema and generated rows. Row counts, numbers of distinct values,
    frequencies and physical order match the original as far as the planner's statistics show them. Texts of
    the original are not included. The output lists the differences.
    """
    from pgdyno.cli._server_options import warn_about_password
    from pgdyno.workload.copy_data import CopyRequest, copy_data, replacing
    from pgdyno.workload.sampled_copy import SampleRequest, sampled_copy
    from pgdyno.workload.synthetic_copy import SyntheticRequest, synthetic_copy
    from pgdyno.workload.workload_choice import DUMP_SUFFIX, read_workload

    bytes_per_s = _bytes_per_s(rate)
    _require_one_way(share, sample_from, is_sample=is_sample, is_synthetic=is_synthetic)
    warn_about_password(dsn)
    workload = read_workload(file)
    progress, made = open_progress(), None
    try:
        with replacing(file.with_suffix(DUMP_SUFFIX)) if replace else nullcontext():
            if is_synthetic:
                made = synthetic_copy(workload, SyntheticRequest(file, dsn, share, seed), progress)
            elif is_sample:
                sample = SampleRequest(file, dsn, share, bytes_per_s, sample_from, seed)
                made = sampled_copy(workload, sample, progress)
            else:
                copy_data(workload, CopyRequest(file, dsn, bytes_per_s), progress)
    finally:
        progress.close()
    _show(file, file.with_suffix(DUMP_SUFFIX), made, "sampled" if is_sample else "synthetic", is_json=is_json)


def _bytes_per_s(rate: str) -> float:
    from pgdyno.postgres.guc import normalise

    bytes_per_s = float(normalise(rate, "kB", name="--rate")) * 1024
    if bytes_per_s <= 0:
        raise UsageError(f"--rate {rate} is not a positive size")
    return bytes_per_s


def _require_one_way(share: float, sample_from: str | None, *, is_sample: bool, is_synthetic: bool) -> None:
    """Raise UsageError unless the options name one way to copy a database."""
    if is_sample and is_synthetic:
        raise UsageError("--sample and --synthetic are mutually exclusive", hint="leave out one")
    if share < 1 and not (is_sample or is_synthetic):
        raise UsageError(
            "--share is only for sampled or synthetic rows",
            hint="add --sample or --synthetic: pg_dump copies all rows",
        )
    if is_sample and share == 1:
        raise UsageError(
            "--sample requires a share below 1",
            hint="add for example --share 0.1; without --sample, all rows are copied",
        )
    if sample_from is not None and not is_sample:
        raise UsageError("--sample-from requires --sample", hint="add --sample")


def _show(file: Path, target: Path, made: ScratchCopy | None, kind: str, *, is_json: bool) -> None:
    size_bytes = target.stat().st_size
    if is_json:
        others = {} if made is None else {"rows": made.rows, "notes": made.notes}
        print_json({"dump": str(target), "size_bytes": size_bytes, **others})
        return
    of_rows = "" if made is None else f", {sum(made.rows.values()):,} {kind} rows in {len(made.rows)} tables"
    echo(f"{target}: {numbers.size(size_bytes)}{of_rows}. Next: pgdyno accelerate --dsn … --workload {file}")
    for note in () if made is None else made.notes:
        echo(f"  {note}")
