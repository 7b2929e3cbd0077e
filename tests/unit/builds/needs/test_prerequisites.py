"""What is missing is named at once, with the packages that have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.errors import InstallationError
from pgdyno.builds.needs import prerequisites
from pgdyno.builds.needs.prerequisites import find_options, missing_error, missing_headers
from pgdyno.builds.spec.configure_options import DEFAULT_CFLAGS
from pgdyno.builds.spec.foreign import Foreign


def test_a_bare_host_is_told_every_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallationError) as caught:
        find_options((17,), DEFAULT_CFLAGS, wants_liburing=False)
    assert str(caught.value) == (
        "PostgreSQL cannot be built on this host yet\n"
        "DETAIL:  missing: gcc, make, bison, flex, perl, pkg-config, tar, bzip2, setpriv\n"
        "HINT:  apt-get install gcc make bison flex perl pkg-config tar bzip2 util-linux"
    )


def test_missing_headers_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "is_installed", lambda _: True)
    monkeypatch.setattr(prerequisites, "_there", lambda *_: [])
    with pytest.raises(InstallationError) as caught:
        find_options((18,), DEFAULT_CFLAGS, wants_liburing=True)
    assert caught.value.detail == "missing: stdlib.h, zlib.h, liburing.h"
    assert caught.value.hint == "apt-get install libc6-dev zlib1g-dev liburing-dev"


def test_for_another_machine_its_own_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "_there", lambda *_: [])
    foreign = Foreign("aarch64", "aarch64-linux-gnu", "arm64")
    assert str(missing_error(missing_headers("gcc", foreign), foreign)) == (
        "PostgreSQL cannot be built for aarch64 on this host yet\n"
        "DETAIL:  missing: stdlib.h of aarch64, zlib.h of aarch64\n"
        "HINT:  dpkg --add-architecture arm64 && apt-get update && "
        "apt-get install libc6-dev:arm64 zlib1g-dev:arm64"
    )
