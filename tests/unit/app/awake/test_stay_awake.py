"""``pgdyno awake``: refused where it would cost somebody else or does not help."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from pgdyno.app.awake import stay_awake
from pgdyno.app.awake.stay_awake import staying_awake
from pgdyno.cli.awake import command
from pgdyno.host.files.tree import Tree
from pgdyno.model.errors import RefusedError
from pgdyno.model.experiments.awake import Awake, AwakeMeans


@pytest.fixture
def spun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A machine that may spin; what is listed spins now."""
    running: list[int] = []

    @contextmanager
    def spinning(cpus: tuple[int, ...], _top: Path) -> Iterator[tuple[int, ...]]:
        running.extend(cpus)
        try:
            yield cpus
        finally:
            running.clear()

    monkeypatch.setattr(stay_awake, "why_no_spinners", lambda *_: None)
    monkeypatch.setattr(stay_awake, "find_top", lambda _: tmp_path)
    monkeypatch.setattr(stay_awake, "spinning", spinning)
    return running


def test_it_says_what_a_wake_up_takes_now(spun: list[int]) -> None:
    with staying_awake((0, 1), Tree(), lambda: 12.0 if spun else 115.0) as awake:
        assert awake == Awake(AwakeMeans.SPINNERS, "", 115.0, 12.0)
        assert spun == [0, 1]
    assert spun == []


def refused(tree: Tree, held_us: float, spun: list[int]) -> str:
    with (
        pytest.raises(RefusedError) as caught,
        staying_awake((0, 1), tree, lambda: held_us if spun else 16.0),
    ):
        pytest.fail("it stays awake")
    assert spun == []
    return str(caught.value)


def test_where_it_does_not_help_it_is_refused(spun: list[int]) -> None:
    assert refused(Tree(), 15.0, spun) == (
        "keeping CPUs busy does not shorten a wake-up here\n"
        "DETAIL:  it takes 15.0 µs, and 16.0 µs without\n"
        "HINT:  in a guest of KVM the lever halt_polling may: pgdyno advise --layers system"
    )


def test_where_nothing_is_known_of_the_machine_it_is_refused(tmp_path: Path) -> None:
    said = refused(Tree(tmp_path), 1.0, [])
    assert said.startswith("CPUs are not kept awake here\nDETAIL:  it is not known what the kernel runs on: ")


def test_a_unit_is_printed_and_nothing_done() -> None:
    done = CliRunner().invoke(command, ["--unit"])
    assert done.exit_code == 0
    assert "ExecStart=" in done.output
    assert " awake\n" in done.output
