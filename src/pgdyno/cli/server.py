"""``pgdyno server``: list, build and remove the PostgreSQL installations that variants can name."""

from __future__ import annotations

import click

from pgdyno.builds.spec.configure_options import DEFAULT_CFLAGS
from pgdyno.cli.output import echo, json_option, open_progress, print_json


@click.group(name="server")
def command() -> None:
    """List, build and remove servers for measurements.

    A variant names its server before the "@".
    """


@command.command(name="list")
@json_option
def list_(*, is_json: bool) -> None:
    """List the named servers.

    Refer to any other server by its prefix, as in pgdyno compare /opt/pg18@default.
    """
    from pgdyno.base.facts import to_document
    from pgdyno.builds.servers import list_servers

    servers = list_servers()
    if is_json:
        print_json({"servers": to_document(servers)})
        return
    for server in servers:
        echo(f"{server.name:14} {server.version or '?':8} {server.bin_directory}")
        if server.failure is not None:
            echo(f"{'':14} does not run: {server.failure}")
        manifest = server.manifest.or_none()
        if manifest is not None:
            echo(f"{'':14} {manifest.summary}")
    if not servers:
        echo("none found: pip install 'pgdyno[pg]' installs one; any other prefix can be named by its path")


@command.command(
    name="install",
    epilog="\b\nExamples:\n"
    "  pgdyno server install --from-source 17,18 --with-liburing\n"
    "  pgdyno server install --from-source 18 --cflags '-O3 -march=native'\n"
    "  pgdyno compare source-17@default source-18@default --workload pgbench-select",
)
@click.option(
    "--from-source",
    "majors",
    required=True,
    metavar="MAJOR,…",
    help="Major versions, built from the source packages of Debian, Ubuntu or apt.postgresql.org.",
)
@click.option("--with-liburing", is_flag=True, help="Build with io_method=io_uring (PostgreSQL 18 or later).")
@click.option("--cflags", metavar="TEXT", default=DEFAULT_CFLAGS, show_default=True, help="Compiler flags.")
@json_option
def install(*, majors: str, with_liburing: bool, cflags: str, is_json: bool) -> None:
    """Build PostgreSQL versions with identical options and flags.

    Each build is named source-MAJOR. The sources come from the archives that apt uses on this host, including
    the archives' other releases. apt's own files are not touched, and no package is installed. ICU, OpenSSL,
    lz4, zstd and readline are used if their headers are installed. A build takes about 6 minutes on two idle
    cores. It can be interrupted: an incomplete build gets no name. Existing builds are not changed. Logs and
    manifests are kept.
    """
    from pgdyno.base.facts import to_document
    from pgdyno.builds.install import InstallRequest, install_from_source
    from pgdyno.builds.spec.configure_options import parse_majors

    request = InstallRequest(parse_majors(majors), cflags, with_liburing)
    progress = open_progress()
    try:
        manifests = install_from_source(request, progress)
    finally:
        progress.close()
    if is_json:
        print_json({"servers": to_document(manifests)})
        return
    for manifest in manifests:
        echo(f"{manifest.name:14} {manifest.server_version:8} {manifest.summary}")
        for note in manifest.notes:
            echo(f"{'':14} {note}")


@command.command(name="remove")
@click.argument("name")
@json_option
def remove(name: str, *, is_json: bool) -> None:
    """Remove a server built by pgdyno."""
    from pgdyno.builds.servers import remove_server

    prefix = remove_server(name)
    if is_json:
        print_json({"removed": str(prefix)})
    else:
        echo(f"{name} removed from {prefix}")
