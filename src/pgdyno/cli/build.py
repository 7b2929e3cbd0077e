"""``pgdyno build``: build an optimised PostgreSQL from source, and list builds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.base.errors import InterruptedByUserError, UsageError
from pgdyno.cli.output import echo, json_option, open_progress, print_json
from pgdyno.model.plans.recipe import AUTO, COMPILERS

if TYPE_CHECKING:
    from pgdyno.builds.product.manifest import Manifest

_RESUMABLE = "finished stages are kept: the same command resumes at the interrupted stage"


def _refuse_profile(_: click.Context, __: click.Parameter, value: str | None) -> None:
    """Point to the new name of ``--profile``; click itself would suggest ``--portable``."""
    if value is not None:
        raise UsageError("no such option: --profile", hint=f"did you mean --recipe {value}?")


@click.group(
    name="build",
    invoke_without_command=True,
    epilog="\b\nExamples:\n"
    "  pgdyno build --source debian:18\n"
    "  pgdyno build --source postgresql-18.6.tar.bz2 --recipe pgo+lto --compiler gcc\n"
    "  pgdyno build --source debian:18 --like /usr/lib/postgresql/18 --extensions contrib\n"
    "  pgdyno build --source debian:18 --recipe o2 --machine aarch64\n"
    "  pgdyno build --source debian:18 --patch send-buffer\n"
    "  pgdyno build --source debian:18 --train sysbench-read-only:plan_cache_mode=force_generic_plan\n"
    "  pgdyno compare source-18@plain built@fast --workload sysbench-read-only",
)
@click.option(
    "--source",
    metavar="DIR|TARBALL|debian:MAJOR",
    help="A clean source tree, a tarball, or a source package from the archives that apt uses here.",
)
@click.option(
    "--recipe",
    default=AUTO,
    show_default=True,
    metavar="RECIPE",
    help="o2, o3, native, lto, pgo, bolt, hugetext, unhardened, joined with +. auto: pgo+lto+bolt.",
)
@click.option("--profile", hidden=True, expose_value=False, is_eager=True, callback=_refuse_profile)
@click.option(
    "--compiler",
    type=click.Choice([AUTO, *COMPILERS]),
    default=AUTO,
    show_default=True,
    help="auto: clang if everything it needs is installed, else gcc.",
)
@click.option(
    "--portable",
    "target",
    metavar="CPU",
    help="Target CPU: x86-64-v3, neoverse-n1, … [default: this CPU; with o2 and o3: all]",
)
@click.option(
    "--train",
    "training",
    multiple=True,
    metavar="WORKLOAD[:setting=value,…]",
    help="Training workload and its server's settings; repeatable. [default: reads, writes and maintenance]",
)
@click.option(
    "--like",
    metavar="PREFIX|SERVER",
    help="Build with exactly the features of the installation that the build will replace.",
)
@click.option(
    "--extensions",
    multiple=True,
    metavar="DIR|NAME",
    help="Also build this extension: a PGXS source tree, a contrib module, or contrib for all modules; "
    "repeatable.",
)
@click.option(
    "--patch",
    "patches",
    multiple=True,
    metavar="NAME",
    help="Apply this patch of pgdyno's to the source; repeatable. The recipe's name then ends in +patched.",
)
@click.option(
    "--machine",
    metavar="MACHINE",
    help="Machine as named by uname -m: aarch64 is cross-built here, and run under emulation. [default: this "
    "machine]",
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    *,
    source: str | None,
    recipe: str,
    compiler: str,
    target: str | None,
    training: tuple[str, ...],
    like: str | None,
    extensions: tuple[str, ...],
    machine: str | None,
    patches: tuple[str, ...],
    is_json: bool,
) -> None:
    """Build PostgreSQL for this machine and workload.

    Variants refer to a build as built, or built-ID. With pgo, PostgreSQL is compiled twice: an instrumented
    build runs the training load, and the second build is optimised with its profile. With bolt, the finished
    program is rearranged by the branches that it takes.

    Each build is verified before it is installed: PostgreSQL's own tests, results identical to the last bit
    with a plain build of the same source, data readable by both builds, and crash tests that lose no commit.

    A build that already exists is returned at once; an interrupted build resumes where it stopped. Nothing is
    installed outside pgdyno's own directory, and no server is touched.
    """
    if context.invoked_subcommand is not None:
        return
    if source is None:
        raise UsageError(
            "no source was named", hint="pgdyno build --source debian:18, or a directory, or a tarball"
        )

    from pgdyno.builds.build import build
    from pgdyno.builds.build_request import BuildRequest

    progress = open_progress()
    try:
        request = BuildRequest(source, recipe, compiler, target, training, like, extensions, machine, patches)
        manifest = build(request, progress)
    except KeyboardInterrupt as interrupt:
        raise InterruptedByUserError("interrupted", hint=_RESUMABLE) from interrupt
    finally:
        progress.close()
    _print_one(manifest, is_json=is_json)


@command.command(name="list")
@json_option
def list_(*, is_json: bool) -> None:
    """List the builds, the newest first."""
    from pgdyno.base.facts import to_document
    from pgdyno.builds.servers import list_builds

    builds = list_builds()
    if is_json:
        print_json({"builds": to_document(builds)})
        return
    for build in builds:
        _echo(build.manifest)
        if build.is_packaged:
            echo(f"{'':20} from a package, in {build.prefix}")
    if not builds:
        echo("no builds yet: pgdyno build --source debian:18")


@command.command(name="patches")
@json_option
def patches(*, is_json: bool) -> None:
    """List the patches, with their measured verdicts."""
    from pgdyno.builds.patching.patches import known_patches

    if is_json:
        print_json({"patches": [one.described for one in known_patches()]})
        return
    for one in known_patches():
        echo(f"{one.name}  (PostgreSQL {one.major})\n  {one.title}\n  {one.verdict}")


@command.command(name="diff")
@click.argument("first")
@click.argument("second")
@json_option
def diff(first: str, second: str, *, is_json: bool) -> None:
    """Show the differences between two builds.

    Compares source, compiler, flags, training and sizes, from the builds' manifests.
    """
    from pgdyno.base.facts import to_document
    from pgdyno.builds.servers import diff_builds

    differences = diff_builds(first, second)
    if is_json:
        print_json({"differences": to_document(differences)})
        return
    for one in differences:
        left, right = _without_common(one.first, one.second)
        echo(f"{one.what}\n  {first}: {left}\n  {second}: {right}")
    if not differences:
        echo("the builds differ only in name and time")


@command.command(name="verify")
@click.argument("name")
@json_option
def verify(name: str, *, is_json: bool) -> None:
    """Verify the build NAME again.

    Repeats the verification made before installation, with freshly compiled tests: about five minutes. Plans
    no longer use a build that fails, unless it came from a package: packaged files are never changed.
    """
    from pgdyno.builds.verifying.verify_again import verify_build

    progress = open_progress()
    try:
        verified = verify_build(name, progress)
    finally:
        progress.close()
    _print_one(verified, is_json=is_json)


@command.command(name="remove")
@click.argument("name")
@json_option
def remove(name: str, *, is_json: bool) -> None:
    """Remove the build NAME."""
    from pgdyno.builds.servers import remove_build

    prefix = remove_build(name)
    if is_json:
        print_json({"removed": str(prefix)})
    else:
        echo(f"{name} removed from {prefix}")


@command.command(
    name="deb",
    epilog="\b\nExamples:\n  pgdyno build deb built\n  apt-get install ./pgdyno-postgresql-18-*.deb",
)
@click.argument("name")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    default=Path(),
    help="Where to write it. [default: here]",
)
@json_option
def deb(name: str, *, output: Path, is_json: bool) -> None:
    """Write a Debian package of the verified build NAME.

    The package installs into /usr/lib/pgdyno/NAME, separate from the distribution's PostgreSQL, and starts
    nothing. Where it is installed, variants can name the build as they do here. A build for this CPU runs
    only on such CPUs. The maintainer is taken from DEBFULLNAME and DEBEMAIL. The same build always gives the
    same bytes.
    """
    from pgdyno.builds.product.debian_packing import package_build

    progress = open_progress()
    try:
        package = package_build(name, output, progress)
    finally:
        progress.close()
    if is_json:
        print_json({"path": str(package.path), "fields": package.fields})
    else:
        echo(package.path)


def _print_one(manifest: Manifest, *, is_json: bool) -> None:
    from pgdyno.base.facts import to_document
    from pgdyno.builds.servers import list_builds

    if is_json:
        prefix = next(build.prefix for build in list_builds() if build.manifest.name == manifest.name)
        print_json({"server": to_document(manifest), "prefix": prefix})
        return
    _echo(manifest)


def _echo(manifest: Manifest) -> None:
    echo(f"{manifest.name:20} {manifest.server_version:8} {manifest.summary}")
    if manifest.training:
        echo(f"{'':20} trained on {manifest.training}")
    echo(f"{'':20} {manifest.verification}")


def _without_common(first: object, second: object) -> tuple[str, str]:
    """Return two values as text; of lists of words, such as flags, only the words that the other lacks."""
    words, others = _words(first), _words(second)
    if len(words) == 1 or len(others) == 1:
        return " ".join(words), " ".join(others)
    only = [word for word in words if word not in others], [word for word in others if word not in words]
    return " ".join(only[0]) or "(no more)", " ".join(only[1]) or "(no more)"


def _words(value: object) -> list[str]:
    if value is None:
        return ["none"]
    texts = [_text(one) for one in value] if isinstance(value, list) else [str(value)]
    return " ".join(texts).split() or ["none"]


def _text(one: object) -> str:
    """Return an element of a list as text; for a record, only its values."""
    return " ".join(map(str, one.values())) if isinstance(one, dict) else str(one)
