"""clang counts a second time, in the program that it has optimised by the first counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_progress import Remembered
from tests.integration.builds.small_tree import STAGES, build, interrupted, request, stages_of

from pgdyno.app.building.build_request import BuildRequest
from pgdyno.app.local_machine import workspace
from pgdyno.model.errors import InstallationError
from pgdyno.model.plans.recipe import parse_recipe
from pgdyno.server.process.registry import find_installation
from pgdyno.toolchain.compilers import clang
from pgdyno.toolchain.host.find_compiler import find_compiler

RECIPE = "pgo+cspgo+lto"
BY_CONTEXT = [*STAGES[:4], "compile for contexts", "train on contexts", *STAGES[4:]]


@pytest.fixture
def asked(tree: Path, monkeypatch: pytest.MonkeyPatch) -> BuildRequest:
    """What is asked of clang, which is content with a program of one function."""
    try:
        find_compiler("clang", parse_recipe(RECIPE))
    except InstallationError as error:
        pytest.skip(f"needs clang with what profiles and lto take: {error}")
    monkeypatch.setattr(clang, "LEAST_FUNCTIONS", 1)
    return replace(request(tree, RECIPE), compiler="auto")


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("at", [None, "compile"])
def test_what_is_installed_has_both_counts_and_counts_nothing(at: str | None, asked: BuildRequest) -> None:
    if at is not None:
        with interrupted(at), pytest.raises(KeyboardInterrupt):
            build(asked, Remembered())
    said = Remembered()
    manifest = build(asked, said)
    assert stages_of(said) == BY_CONTEXT[0 if at is None else BY_CONTEXT.index(at) :]
    done = manifest.optimised
    assert done is not None
    assert (done.recipe, done.reached) == ("lto+pgo+cspgo", "1 functions")
    used = [flag for flag in done.common_flags if flag.startswith("-fprofile-use=")]
    assert [flag.rpartition("/builds/")[2] for flag in used] == [f"{manifest.name}/contexts/merged.profdata"]
    assert not any(flag.startswith("-fcs-profile-generate") for flag in done.common_flags)
    program = Path(find_installation(manifest.name, workspace()).program("postgres"))
    assert b"__llvm_prf" not in program.read_bytes()
