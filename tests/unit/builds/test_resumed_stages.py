"""Stages that are done once, however often they are begun."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pgdyno.builds.make import Stage, Stages, Watch


class Workshop:
    """Stages a, b, c, one of which may fail."""

    def __init__(self, record: Path) -> None:
        self.ran: list[str] = []
        self.shares: list[float] = []
        self.breaks = ""
        stages = [
            Stage(name, expected_s, self.work(name)) for name, expected_s in (("a", 1), ("b", 3), ("c", 4))
        ]
        self.stages = Stages(stages, record)

    def work(self, name: str) -> Callable[[Watch], None]:
        def run(watch: Watch) -> None:
            watch(0.5)
            if name == self.breaks:
                raise KeyboardInterrupt
            self.ran.append(name)

        return run

    def go(self) -> None:
        self.stages.run(lambda _: None, self.shares.append)


def test_every_stage_is_done_and_timed(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "done")
    workshop.go()
    assert workshop.ran == ["a", "b", "c"]
    assert list(workshop.stages.seconds()) == ["a", "b", "c"]
    assert all(seconds >= 0 for seconds in workshop.stages.seconds().values())


def test_shares_are_of_all_the_work(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "done")
    workshop.go()
    assert workshop.shares == [0.0625, 0.125, 0.3125, 0.5, 0.75, 1.0]


def test_what_was_interrupted_is_done_again_and_nothing_else(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "done")
    workshop.breaks = "b"
    with pytest.raises(KeyboardInterrupt):
        workshop.go()
    again = Workshop(tmp_path / "done")
    assert again.stages.share_done() == 0.125
    again.go()
    assert (workshop.ran, again.ran) == (["a"], ["b", "c"])
    third = Workshop(tmp_path / "done")
    third.go()
    assert third.ran == []
