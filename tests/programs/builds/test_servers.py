"""What was built can be listed, compared and removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fix_builds import MANIFEST, put_build

from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.builds.product.manifest import Manifest, Trained
from pgdyno.builds.servers import Difference, diff_builds, list_builds, list_servers, remove_build
from pgdyno.cli.build import command
from pgdyno.postgres.process.workspace import Workspace


def test_builds_are_listed_and_nothing_else(install_build: Callable[[Manifest], Path]) -> None:
    prefix = install_build(MANIFEST)
    install_build(replace(MANIFEST, name="source-18", optimised=None))
    assert [(one.manifest.name, one.prefix) for one in list_builds()] == [(MANIFEST.name, str(prefix))]
    done = CliRunner().invoke(command, ["list"])
    assert done.exit_code == 0
    assert "built-00000000000a   18.6" in done.output
    assert "trained on sysbench-read-only\n" in done.output
    assert "verified: 353 of PostgreSQL's own tests, 40 crashes, 63332 results and all data" in done.output
    assert "the same as source-18's" in done.output


def test_without_any_it_says_how_to_make_one(builds_place: Workspace) -> None:
    assert builds_place.root.is_dir()
    assert CliRunner().invoke(command, ["list"]).output == (
        "no builds yet: pgdyno build --source debian:18\n"
    )


def test_two_builds_differ_in_what_they_were_made_of(install_build: Callable[[Manifest], Path]) -> None:
    assert MANIFEST.optimised is not None
    install_build(MANIFEST)
    rearranged = replace(MANIFEST.optimised, recipe="lto+pgo+bolt", text_bytes=2)
    install_build(replace(MANIFEST, name="built-00000000000b", optimised=rearranged, build_s=99.0))
    assert diff_builds("built-00000000000a", "built-00000000000b") == [
        Difference("optimised.recipe", "lto+pgo", "lto+pgo+bolt"),
        Difference("optimised.text_bytes", 1, 2),
    ]
    done = CliRunner().invoke(command, ["diff", "built-00000000000a", "built-00000000000b"])
    assert done.output.startswith(
        "optimised.recipe\n  built-00000000000a: lto+pgo\n  built-00000000000b: lto+pgo+bolt\n"
    )


def test_builds_that_were_trained_with_other_settings_differ_in_these(
    install_build: Callable[[Manifest], Path],
) -> None:
    assert MANIFEST.optimised is not None
    install_build(MANIFEST)
    generic = Trained("sysbench-read-only:plan_cache_mode=force_generic_plan", 40.0)
    optimised = replace(MANIFEST.optimised, training=(generic,))
    install_build(replace(MANIFEST, name="built-00000000000b", optimised=optimised))
    listed = CliRunner().invoke(command, ["list"]).output
    assert "trained on sysbench-read-only:plan_cache_mode=force_generic_plan\n" in listed
    done = CliRunner().invoke(command, ["diff", "built-00000000000a", "built-00000000000b"])
    assert done.output == (
        "optimised.training\n  built-00000000000a: sysbench-read-only\n"
        "  built-00000000000b: sysbench-read-only:plan_cache_mode=force_generic_plan\n"
    )


def test_of_flags_those_are_shown_that_the_other_one_has_not(
    install_build: Callable[[Manifest], Path],
) -> None:
    install_build(replace(MANIFEST, cflags="-Wall -O3 -fPIE", configure=("--with-icu", "CFLAGS=-O3 -g")))
    install_build(
        replace(
            MANIFEST,
            name="built-00000000000b",
            cflags="-Wall -O2 -fPIE",
            configure=("--with-icu", "CFLAGS=-O3"),
        )
    )
    done = CliRunner().invoke(command, ["diff", "built-00000000000a", "built-00000000000b"])
    assert done.output == (
        "configure\n  built-00000000000a: -g\n  built-00000000000b: (no more)\n"
        "cflags\n  built-00000000000a: -O3\n  built-00000000000b: -O2\n"
    )


def test_paths_with_a_builds_own_name_are_no_difference(
    install_build: Callable[[Manifest], Path],
) -> None:
    for name in ("built-00000000000a", "built-00000000000b"):
        install_build(replace(MANIFEST, name=name, cflags=f"-O3 -fprofile-use=/var/builds/{name}/counts"))
    assert diff_builds("built-00000000000a", "built-00000000000b") == []
    install_build(replace(MANIFEST, name="built-00000000000c", cflags="-O3 -fprofile-use=/elsewhere"))
    (difference,) = diff_builds("built-00000000000a", "built-00000000000c")
    assert difference.first == "-O3 -fprofile-use=/var/builds/built-ID/counts"


def test_a_build_is_removed_and_no_other_server(install_build: Callable[[Manifest], Path]) -> None:
    prefix = install_build(MANIFEST)
    source = install_build(replace(MANIFEST, name="source-18", optimised=None))
    with pytest.raises(UsageError) as caught:
        remove_build("source-18")
    assert str(caught.value) == (
        'build "source-18" does not exist\nDETAIL:  existing builds: built-00000000000a\n'
        "HINT:  pgdyno build list shows them"
    )
    assert remove_build(MANIFEST.name) == prefix
    assert (prefix.exists(), source.exists()) == (False, True)


def test_a_build_that_does_not_run_here_is_listed_with_the_reason(
    install_build: Callable[[Manifest], Path],
) -> None:
    prefix = install_build(MANIFEST)
    (prefix / "bin/postgres").write_text("#!/bin/sh\nkill -ILL $$\n")
    listed = {one.name: one for one in list_servers()}["built-00000000000a"]
    assert (listed.version, listed.failure) == (None, "it was killed: Illegal instruction")


@pytest.mark.usefixtures("builds_place")
def test_what_a_package_has_brought_is_listed_and_left_to_dpkg(packaged_builds: Path) -> None:
    prefix = put_build(packaged_builds, MANIFEST)
    assert [one.prefix for one in list_builds() if one.is_packaged] == [str(prefix)]
    assert f"from a package, in {prefix}\n" in CliRunner().invoke(command, ["list"]).output
    assert {one.name for one in list_servers()} >= {"built", "built-00000000000a"}
    for name in ("built", "built-00000000000a"):
        with pytest.raises(RefusedError) as caught:
            remove_build(name)
        assert str(caught.value) == (
            f"built-00000000000a belongs to a package\nDETAIL:  {prefix} is managed by dpkg\n"
            "HINT:  apt-get remove pgdyno-postgresql-18-00000000000a removes it"
        )
    assert (prefix / "bin/postgres").is_file()


def test_of_a_package_and_a_build_here_the_latter_is_removed(
    packaged_builds: Path, install_build: Callable[[Manifest], Path]
) -> None:
    packaged, ours = put_build(packaged_builds, MANIFEST), install_build(MANIFEST)
    assert [one.prefix for one in list_builds()] == [str(ours)]
    assert remove_build("built") == ours
    assert [one.prefix for one in list_builds()] == [str(packaged)]


def test_what_is_not_finished_can_be_removed(builds_place: Workspace) -> None:
    unfinished, copied = (
        builds_place.builds() / "built-00000000000a",
        builds_place.servers() / ".built-00000000000a.partial",
    )
    for directory in (unfinished, copied):
        (directory / "bin").mkdir(parents=True)
    assert remove_build("built-00000000000a") == unfinished
    assert (unfinished.exists(), copied.exists()) == (False, False)


def test_a_build_needs_a_source() -> None:
    done = CliRunner().invoke(command, [])
    assert isinstance(done.exception, UsageError)
    assert done.exception.message == "no source was named"
