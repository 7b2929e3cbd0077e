"""What is built for another machine, and what is said where that cannot be."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from pgdyno.base.errors import InstallationError, UsageError
from pgdyno.builds.spec.foreign import Foreign, parse_machine, require_possible, require_runs
from pgdyno.model.plans.recipe import parse_recipe

AARCH64 = Foreign("aarch64", "aarch64-linux-gnu", "arm64")
OF_NO_MACHINE = "\\177ELF\\002\\001\\001" + 9 * "\\000" + "\\003\\000\\377\\376"  # e_machine is nobody's


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """An x86_64 host, whatever this one is."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


@pytest.mark.usefixtures("host")
def test_another_machine_is_asked_for_by_its_name() -> None:
    assert parse_machine(None) is None
    assert parse_machine("x86_64") is None
    assert parse_machine("aarch64") == AARCH64
    with pytest.raises(UsageError) as caught:
        parse_machine("riscv64")
    assert str(caught.value) == (
        '--machine "riscv64" is not supported\nHINT:  pgdyno builds for x86_64, aarch64'
    )


def test_configure_is_told_of_one_machine_and_tries_programs() -> None:
    """With --build as well, it would take for granted that none runs."""
    assert AARCH64.options == (
        "--host=aarch64-linux-gnu",
        "PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig",
    )


@pytest.mark.parametrize(
    ("recipe", "detail"),
    [
        ("pgo+bolt", "bolt is not possible: its instrumentation runtime supports only programs for"),
        ("o2+hugetext", "hugetext is not possible: an emulator runs translated code, so the "),
    ],
)
def test_what_cannot_be_had_for_another_machine_is_refused(recipe: str, detail: str) -> None:
    require_possible(AARCH64, parse_recipe("pgo+lto"), "neoverse-n1")
    with pytest.raises(UsageError) as caught:
        require_possible(AARCH64, parse_recipe(recipe), None)
    part = recipe.partition("+")[2]
    assert caught.value.message == f'--recipe "{recipe}" is not possible for --machine aarch64'
    assert (caught.value.detail or "").startswith(detail)
    assert caught.value.hint == f"omit {part}, or use --recipe pgo+lto"


@pytest.mark.parametrize(("recipe", "target"), [("native", None), ("o3", "native")])
def test_native_is_no_other_cpu(recipe: str, target: str | None) -> None:
    with pytest.raises(UsageError, match="native means this CPU, but --machine aarch64 is a different"):
        require_possible(AARCH64, parse_recipe(recipe), target)


def compiler(directory: Path, script: str) -> str:
    """Make a compiler that does what a script says with the path of what it is to make."""
    path = directory / "cc"
    path.write_text(f"#!/bin/sh\nfor made; do :; done\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_compiler_that_makes_no_such_programs_is_named_with_the_packages(tmp_path: Path) -> None:
    cc = compiler(tmp_path, "echo 'stdlib.h: No such file' >&2; exit 1")
    with pytest.raises(InstallationError) as caught:
        require_runs(AARCH64, cc, (), tmp_path)
    assert str(caught.value) == (
        "PostgreSQL cannot be built for aarch64 on this host yet\n"
        f'DETAIL:  "{cc}" cannot compile for it: stdlib.h: No such file\n'
        "HINT:  dpkg --add-architecture arm64 && apt-get update && "
        "apt-get install gcc-aarch64-linux-gnu libc6-dev:arm64"
    )


def test_without_an_emulator_it_is_named(tmp_path: Path) -> None:
    cc = compiler(tmp_path, f'printf \'{OF_NO_MACHINE}\' > "$made"; chmod +x "$made"')
    with pytest.raises(InstallationError) as caught:
        require_runs(AARCH64, cc, (), tmp_path)
    assert caught.value.detail == "a program for it does not run on this host: Exec format error"
    assert (caught.value.hint or "").endswith("apt-get install qemu-user-static libc6:arm64")


def test_an_emulator_that_lacks_the_machines_libraries_is_quoted(tmp_path: Path) -> None:
    lacking = "#!/bin/sh\necho no ld-linux-aarch64.so.1 >&2\nexit 255\n"
    cc = compiler(tmp_path, f'cat > "$made" <<\'END\'\n{lacking}END\nchmod +x "$made"')
    with pytest.raises(InstallationError) as caught:
        require_runs(AARCH64, cc, (), tmp_path)
    assert caught.value.detail == "a program for it does not run on this host: no ld-linux-aarch64.so.1"


def test_what_runs_is_run_and_nothing_is_left(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    require_runs(AARCH64, compiler(tmp_path, 'cp /bin/true "$made"'), (), place)
    assert not any(place.iterdir())
