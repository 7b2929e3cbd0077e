"""What was built can be listed, compared, tried again and removed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from tests.fix_progress import Remembered
from tests.unit.app.test_layers_of_a_plan import MANIFEST

from pgdyno.app import build_inventory, wiring
from pgdyno.app.build_inventory import Difference, diff_builds, list_builds, remove_build, verify_build
from pgdyno.cli.build import command
from pgdyno.model.errors import InstallationError, UsageError
from pgdyno.server.account import caller
from pgdyno.server.workspace import Workspace
from pgdyno.toolchain.manifest import FILE, Manifest, Passed, Verified, dump_manifest, read_manifest

POSTGRES = "#!/bin/sh\necho 'postgres (PostgreSQL) 18.6'\n"
AGAIN = Verified((Passed("regress", 231),), "", 0, 20, 150.0)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path))
    monkeypatch.setattr(wiring, "current_account", caller)
    return Workspace(tmp_path, caller())


@pytest.fixture
def install(place: Workspace) -> Callable[[Manifest], Path]:
    def installed(manifest: Manifest) -> Path:
        prefix = place.servers() / manifest.name
        (prefix / "bin").mkdir(parents=True)
        (prefix / "bin/postgres").write_text(POSTGRES)
        (prefix / "bin/postgres").chmod(0o755)
        (prefix / FILE).write_text(dump_manifest(manifest))
        return prefix

    return installed


def test_builds_are_listed_and_nothing_else(install: Callable[[Manifest], Path]) -> None:
    prefix = install(MANIFEST)
    install(replace(MANIFEST, name="source-18", optimised=None))
    assert [(one.manifest.name, one.prefix) for one in list_builds()] == [(MANIFEST.name, str(prefix))]
    done = CliRunner().invoke(command, ["list"])
    assert done.exit_code == 0
    assert "built-00000000000a   18.6" in done.output
    assert "verified: 353 tests of PostgreSQL's own, 40 crashes, 63332 answers and all data" in done.output
    assert "the same as source-18's" in done.output


def test_without_any_it_says_how_to_make_one(place: Workspace) -> None:
    assert place.root.is_dir()
    assert CliRunner().invoke(command, ["list"]).output == (
        "nothing was built yet: pgdyno build --source debian:18\n"
    )


def test_two_builds_differ_in_what_they_were_made_of(install: Callable[[Manifest], Path]) -> None:
    assert MANIFEST.optimised is not None
    install(MANIFEST)
    rearranged = replace(MANIFEST.optimised, profile="lto+pgo+bolt", text_bytes=2)
    install(replace(MANIFEST, name="built-00000000000b", optimised=rearranged, build_s=99.0))
    assert diff_builds("built-00000000000a", "built-00000000000b") == [
        Difference("optimised.profile", "lto+pgo", "lto+pgo+bolt"),
        Difference("optimised.text_bytes", 1, 2),
    ]
    done = CliRunner().invoke(command, ["diff", "built-00000000000a", "built-00000000000b"])
    assert done.output.startswith(
        "optimised.profile\n  built-00000000000a: lto+pgo\n  built-00000000000b: lto+pgo+bolt\n"
    )


def test_of_flags_those_are_shown_that_the_other_one_has_not(install: Callable[[Manifest], Path]) -> None:
    install(replace(MANIFEST, cflags="-Wall -O3 -fPIE", configure=("--with-icu", "CFLAGS=-O3 -g")))
    install(
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


def test_a_build_is_removed_and_no_other_server(install: Callable[[Manifest], Path]) -> None:
    prefix = install(MANIFEST)
    source = install(replace(MANIFEST, name="source-18", optimised=None))
    with pytest.raises(UsageError) as caught:
        remove_build("source-18")
    assert str(caught.value) == (
        'there is no build "source-18"\nDETAIL:  there are: built-00000000000a\n'
        "HINT:  pgdyno build list shows them"
    )
    assert remove_build(MANIFEST.name) == prefix
    assert (prefix.exists(), source.exists()) == (False, True)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The source that is fetched: a tree with tests that are compiled by writing down how."""

    def unpack(tree: Path) -> None:
        for directory in ("src/test/regress", "src/test/isolation"):
            (tree / directory).mkdir(parents=True)
            (tree / directory / "Makefile").write_text("all:\n\techo '$(rpathdir)' > compiled\n")
        (tree / "configure").write_text("#!/bin/sh\necho $* > configured\n")
        (tree / "configure").chmod(0o755)

    found = SimpleNamespace(sha256="ab", version="18.6", unpack=unpack)
    monkeypatch.setattr(build_inventory, "fetch", lambda *_: found)
    return found


assert MANIFEST.optimised is not None
PLAIN = replace(
    MANIFEST, name="built-0000000000ff", optimised=replace(MANIFEST.optimised, profile="o2", target=None),
    verified=AGAIN,
)  # fmt: skip
needs_make = pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("setpriv") is None, reason="needs make and setpriv"
)


@needs_make
@pytest.mark.usefixtures("source")
def test_a_build_that_is_tried_again_has_the_new_result(
    install: Callable[[Manifest], Path], monkeypatch: pytest.MonkeyPatch, place: Workspace
) -> None:
    prefix = install(replace(MANIFEST, configure=("--with-icu",)))
    install(replace(PLAIN, configure=("--with-icu", "CFLAGS=-O2")))
    os.utime(prefix, (2_000_000_000, 2_000_000_000))  # the newest
    seen: list[str] = []

    def passed(subject: Any, *_: object) -> Verified:
        tree = subject.making.tree
        seen.append((tree / "configured").read_text().strip())
        seen.append((tree / "src/test/regress/compiled").read_text().strip())
        assert subject.tested.bin_directory == prefix / "bin"
        assert subject.reference.name == PLAIN.name
        return AGAIN

    monkeypatch.setattr(build_inventory, "verify", passed)
    assert verify_build("built", Remembered()).manifest.verified == AGAIN
    assert seen == [f"--prefix={prefix} --with-icu", "$ORIGIN/../lib:$ORIGIN/.."]
    assert read_manifest(prefix).value == replace(MANIFEST, configure=("--with-icu",), verified=AGAIN)
    assert list(place.builds().iterdir()) == []
    assert prefix.stat().st_mtime == 2_000_000_000


@needs_make
@pytest.mark.usefixtures("source")
def test_a_plain_build_is_held_against_nothing(
    install: Callable[[Manifest], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(replace(PLAIN, verified=None))
    references = []

    def passed(subject: Any, *_: object) -> Verified:
        references.append(subject.reference)
        return AGAIN

    monkeypatch.setattr(build_inventory, "verify", passed)
    verify_build(PLAIN.name, Remembered())
    assert references == [None]


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize(
    "other", [replace(PLAIN, verified=None), replace(PLAIN, configure=("--with-lz4",)), None]
)
def test_without_a_plain_build_of_the_same_source_nothing_is_compared(
    install: Callable[[Manifest], Path], other: Manifest | None
) -> None:
    prefix = install(MANIFEST)
    if other is not None:
        install(other)
    with pytest.raises(InstallationError) as caught:
        verify_build(MANIFEST.name, Remembered())
    assert caught.value.message == "there is no plain build to hold built-00000000000a against"
    assert caught.value.hint == "pgdyno build --source debian:18 --profile o2 makes one"
    assert read_manifest(prefix).value == MANIFEST


@needs_make
@pytest.mark.usefixtures("source")
def test_one_that_fails_is_not_called_verified_any_more(
    install: Callable[[Manifest], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = install(MANIFEST)
    install(PLAIN)

    def failed(*_: object) -> Verified:
        raise InstallationError("PostgreSQL 18.6 does not pass its own tests: regress")

    monkeypatch.setattr(build_inventory, "verify", failed)
    with pytest.raises(InstallationError, match="does not pass"):
        verify_build(MANIFEST.name, Remembered())
    assert read_manifest(prefix).value == replace(MANIFEST, verified=None)


def test_another_source_is_no_ground_to_judge_by(
    install: Callable[[Manifest], Path], source: SimpleNamespace
) -> None:
    install(MANIFEST)
    source.sha256, source.version = "cd", "18.7"
    with pytest.raises(InstallationError) as caught:
        verify_build(MANIFEST.name, Remembered())
    assert caught.value.message == 'the source of built-00000000000a, "debian:18", is another now'
    assert caught.value.detail == "PostgreSQL 18.7, sha256 cd; it was 18.6, ab"


def test_what_is_not_finished_can_be_removed(place: Workspace) -> None:
    unfinished, copied = (
        place.builds() / "built-00000000000a",
        place.servers() / ".built-00000000000a.partial",
    )
    for directory in (unfinished, copied):
        (directory / "bin").mkdir(parents=True)
    assert remove_build("built-00000000000a") == unfinished
    assert (unfinished.exists(), copied.exists()) == (False, False)


def test_a_build_needs_a_source() -> None:
    done = CliRunner().invoke(command, [])
    assert isinstance(done.exception, UsageError)
    assert done.exception.message == "no source was named"
