"""Packing a build: libraries move with their programs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext as does_not_raise
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_builds import MANIFEST
from tests.fix_progress import Remembered

from pgdyno.base.errors import InstallationError, RefusedError, UsageError
from pgdyno.builds.product.debian_packing import package_build, require_movable, require_tools
from pgdyno.builds.product.manifest import Manifest
from pgdyno.postgres.process.workspace import Workspace

MOVABLE = """
/w/root/usr/lib/pgdyno/built-00000000000a/bin/psql:     file format elf64-x86-64

Dynamic Section:
  NEEDED               libpq.so.5
  RUNPATH              $ORIGIN/../lib:$ORIGIN/..

/w/root/usr/lib/pgdyno/built-00000000000a/lib/libpq.so.5.18:     file format elf64-x86-64

Dynamic Section:
  NEEDED               libc.so.6
"""


def test_libraries_beside_their_programs_move_with_them() -> None:
    with does_not_raise():
        require_movable(MOVABLE)


@pytest.mark.parametrize("kind", ["RPATH  ", "RUNPATH"])
def test_a_build_whose_libraries_are_at_a_fixed_place_is_not_packaged(kind: str) -> None:
    with pytest.raises(InstallationError) as caught:
        require_movable(f"{MOVABLE}  {kind}              $ORIGIN/..:/var/lib/pgdyno/servers/source-18/lib\n")
    assert str(caught.value) == (
        "the build cannot be packaged, because it cannot be moved\n"
        "DETAIL:  libpq.so.5.18 looks for its libraries in /var/lib/pgdyno/servers/source-18/lib\n"
        "HINT:  build again: current builds find libraries relative to their programs"
    )


def refusal(name: str, place: Workspace) -> str:
    with pytest.raises(RefusedError) as caught:
        package_build(name, place.root, Remembered())
    return str(caught.value)


def test_what_is_not_verified_is_not_packaged(
    install_build: Callable[[Manifest], Path], builds_place: Workspace
) -> None:
    install_build(replace(MANIFEST, verified=None))
    assert refusal("built", builds_place) == (
        "built-00000000000a is not verified\n"
        "DETAIL:  its last verification failed; a failed build is not packaged\n"
        "HINT:  pgdyno build verify built-00000000000a verifies it again"
    )


def test_what_is_not_finished_is_not_packaged(builds_place: Workspace) -> None:
    unfinished = builds_place.builds() / "built-00000000000a"
    unfinished.mkdir()
    assert refusal("built-00000000000a", builds_place) == (
        "built-00000000000a is unfinished or failed\n"
        f"DETAIL:  it is still in {unfinished}, and was not installed\n"
        "HINT:  run the same pgdyno build again to resume it"
    )


def test_servers_of_server_install_are_not_packaged(builds_place: Workspace) -> None:
    assert refusal("source-17", builds_place) == (
        "source-17 cannot be packaged\n"
        "DETAIL:  pgdyno server install made it: it is not verified, and works only at its present path\n"
        "HINT:  pgdyno build --source debian:17 --recipe o2 makes a plain one to package"
    )


def test_a_name_that_is_none_is_answered_with_those_that_are(builds_place: Workspace) -> None:
    with pytest.raises(UsageError, match=r'build "\.\./built" does not exist'):
        package_build("../built", builds_place.root, Remembered())


def test_the_directory_must_be_there(
    install_build: Callable[[Manifest], Path], builds_place: Workspace
) -> None:
    install_build(MANIFEST)
    with pytest.raises(UsageError) as caught:
        package_build("built", builds_place.root / "nowhere", Remembered())
    assert str(caught.value) == (
        f'--output "{builds_place.root}/nowhere" is not a directory\nHINT:  create it, or name another'
    )


def test_missing_tools_are_named_with_their_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dpkg-deb").write_text("#!/bin/sh\n")
    (tmp_path / "dpkg-deb").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallationError) as caught:
        require_tools()
    assert str(caught.value) == (
        "Debian packages cannot be made on this host yet\n"
        "DETAIL:  missing: dpkg-shlibdeps, objdump\n"
        "HINT:  apt-get install dpkg-dev binutils"
    )
