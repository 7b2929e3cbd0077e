"""``pgdyno build``: a faster PostgreSQL from its own source."""

from __future__ import annotations

import click

from pgdyno.cli.output import json_option, open_progress, print_json
from pgdyno.model.build import AUTO, COMPILERS


@click.command(
    name="build",
    epilog="\b\nExamples:\n"
    "  pgdyno build --source debian:18\n"
    "  pgdyno build --source postgresql-18.6.tar.bz2 --profile pgo+lto --compiler gcc\n"
    "  pgdyno compare source-18@plain built@fast --workload sysbench-read-only",
)
@click.option(
    "--source",
    required=True,
    metavar="DIR|TARBALL|debian:MAJOR",
    help="A clean source tree, a tarball, or a source package from the archives that apt knows here.",
)
@click.option(
    "--profile",
    default=AUTO,
    show_default=True,
    metavar="PROFILE",
    help="o2, o3, native, lto, pgo, bolt, or several joined with +: pgo+lto. auto: all that can be had.",
)
@click.option(
    "--compiler",
    type=click.Choice([AUTO, *COMPILERS]),
    default=AUTO,
    show_default=True,
    help="auto: clang where all it takes is installed, else gcc.",
)
@click.option(
    "--portable",
    "target",
    metavar="CPU",
    help="What the code runs on: x86-64-v3, neoverse-n1, … [default: this CPU; with o2 and o3: all]",
)
@click.option(
    "--train",
    "training",
    multiple=True,
    metavar="WORKLOAD",
    help="What a profile is made of; repeatable. [default: reading, writing, and chores]",
)
@json_option
def command(
    *, source: str, profile: str, compiler: str, target: str | None, training: tuple[str, ...], is_json: bool
) -> None:
    """Build PostgreSQL for this machine and this work, to be named built, or built-ID.

    With pgo it is compiled twice: first as a program that counts what it does, which is then put under load,
    and then for what was counted. With bolt, what is finished is rearranged by the branches that it takes.

    Nothing is installed before it is verified: PostgreSQL's own tests, the same answers to the last bit as a
    plain build of the same source, data that either of them can read, and crashes that lose no commit.

    What was asked for before is there at once; what was interrupted goes on where it stopped. Nothing is
    installed outside pgdyno's own directory, and no server is touched.
    """
    from pgdyno.app.build import BuildRequest, build
    from pgdyno.model.document import to_document

    progress = open_progress()
    try:
        manifest = build(BuildRequest(source, profile, compiler, target, training), progress)
    finally:
        progress.close()
    if is_json:
        print_json({"server": to_document(manifest)})
        return
    click.echo(f"{manifest.name:20} {manifest.server_version:8} {manifest.summary}")
