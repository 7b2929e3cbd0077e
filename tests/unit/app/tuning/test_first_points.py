"""Points to begin a search with, and the words on why these and not others."""

from __future__ import annotations

import pytest
from tests.fix_progress import Remembered
from tests.fix_settings import server_of

from pgdyno.app.tuning.earlier_configurations import EarlierConfiguration
from pgdyno.app.tuning.first_points import WarmStart, warm_start
from pgdyno.experiments.machines.nearness import Circumstances
from pgdyno.model.errors import UsageError
from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.space import Dimension, Space

GB = 1 << 30
SPACE = Space(
    (
        Dimension("shared_buffers", Layer.APPLICATION, ("512MB", "1536MB", "6GB"), "128MB", planned="512MB"),
        Dimension("work_mem", Layer.APPLICATION, ("16MB", "64MB", "256MB"), "4MB"),
    )
)
LOADS = {"mine": "transactions that write"}
TRIED = "tried after the plan, as it is in"
HERE = Circumstances(major=18, cpus=2, memory_bytes=8 * GB, loads=LOADS)


def earlier(
    source: str,
    settings: dict[str, str],
    cpus: float | None = 2,
    *,
    is_named: bool = False,
    problem: str = "",
    created: str = "",
) -> EarlierConfiguration:
    there = Circumstances(major=18, cpus=cpus, memory_bytes=8 * GB if cpus else None, loads=LOADS)
    return EarlierConfiguration(source, settings, there, is_named, problem, created)


def begun(*found: EarlierConfiguration) -> WarmStart:
    said = Remembered()
    start = warm_start(SPACE, found, server_of(), HERE, said)
    assert said.steps == list(start.notes)
    return start


def test_a_named_one_is_tried_however_far_away_and_says_how_far() -> None:
    found = begun(earlier("mine.zip", {"shared_buffers": "2GB", "max_wal_size": "8GB"}, 64, is_named=True))
    assert found.points == ({"shared_buffers": "1536MB"},)
    assert found.notes == (
        f"{TRIED} mine.zip or nearest to that: shared_buffers=1536MB (named; 64 CPUs there, 2 here)",
    )


def test_a_named_one_is_tried_although_it_was_slower_there() -> None:
    slower = "it was slower there than the default"
    found = begun(earlier("mine.zip", {"work_mem": "64MB"}, is_named=True, problem=slower))
    assert found.points == ({"work_mem": "64MB"},)
    assert found.notes[0].endswith(f"work_mem=64MB (named; {slower}; host and load as here)")


def test_a_named_one_that_shares_nothing_with_the_space_is_refused() -> None:
    with pytest.raises(UsageError, match=r'nothing of "mine\.zip" can be tried here') as caught:
        begun(earlier("mine.zip", {"jit": "off"}, is_named=True))
    assert caught.value.detail == "it sets jit; this search varies shared_buffers, work_mem"


def test_of_many_the_nearest_are_tried_and_what_is_too_far_is_said() -> None:
    found = begun(
        earlier("large", {"work_mem": "256MB"}, 64),
        earlier("twice", {"work_mem": "64MB"}, 4),
        earlier("same", {"work_mem": "16MB"}, 2),
    )
    assert found.points == ({"work_mem": "16MB"}, {"work_mem": "64MB"})
    assert found.notes == (
        f"{TRIED} same or nearest to that: work_mem=16MB (the nearest of 3; host and load as here)",
        f"{TRIED} twice or nearest to that: work_mem=64MB (the second choice of 3; 4 CPUs there, 2 here)",
        "left out of the warm start, large: 64 CPUs there, 2 here",
    )


def test_a_configuration_is_tried_once_and_of_the_newest() -> None:
    found = begun(
        earlier("older", {"work_mem": "15MB"}, created="2026-11-20T08:00:00+00:00"),
        earlier("newer", {"work_mem": "16MB"}, created="2026-11-23T08:00:00+00:00"),
        earlier("plan", {"shared_buffers": "512MB"}),
        earlier("other", {"jit": "off"}),
        earlier("damaged", {}, problem='"damaged" is not a bundle'),
    )
    assert found.points == ({"work_mem": "16MB"},)
    assert found.notes[1:] == (
        "left out of the warm start, older, plan: the same here as the plan, or as one that is tried",
        "left out of the warm start, other: nothing of it can be tried here",
        'left out of the warm start, damaged: "damaged" is not a bundle',
    )


def test_three_at_most_are_tried_and_few_reasons_are_told() -> None:
    sizes = [
        {"work_mem": work_mem, "shared_buffers": buffers}
        for work_mem in ("16MB", "64MB") for buffers in ("1536MB", "6GB")
    ]  # fmt: skip
    near = [earlier(f"near-{place}", settings) for place, settings in enumerate(sizes)]
    far = [earlier(f"far-{cpus}", {"work_mem": "256MB"}, cpus) for cpus in (16, 32, 64, 128, 256, 512)]
    found = begun(*far, *near)
    assert list(found.points) == sizes[:3]
    assert [note.rpartition(": ")[0].partition("start, ")[2] for note in found.notes[3:]] == [
        "near-3", "far-16", "far-32", "far-64", "far-128", "",
    ]  # fmt: skip
    assert found.notes[3].endswith("one from a like host and load is tried")
    assert found.notes[-1] == "left out of the warm start as well, farther away: far-256, far-512"


def test_no_second_one_of_a_host_is_tried_before_one_of_another() -> None:
    of_this = [earlier(f"this-{size}", {"work_mem": size}) for size in ("16MB", "64MB", "256MB")]
    of_other = earlier("other", {"shared_buffers": "1536MB"}, 4)
    plan_of_third = earlier("third", {"shared_buffers": "512MB"}, 8)  # is the plan here
    found = begun(*of_this, of_other, plan_of_third)
    assert found.points == ({"work_mem": "16MB"}, {"shared_buffers": "1536MB"}, {"work_mem": "64MB"})
    assert "(the third choice of 5; host and load as here)" in found.notes[2]
    assert found.notes[3:] == (
        "left out of the warm start, this-256MB: one from a like host and load is tried",
        "left out of the warm start, third: the same here as the plan, or as one that is tried",
    )


def test_with_all_places_taken_a_further_host_is_left_out() -> None:
    by_cpus = {
        2: {"work_mem": "16MB"},
        4: {"work_mem": "64MB"},
        1: {"work_mem": "256MB"},
        8: {"shared_buffers": "6GB"},
    }
    hosts = [earlier(f"{cpus} CPUs", settings, cpus) for cpus, settings in by_cpus.items()]
    found = begun(*hosts)
    assert len(found.points) == 3
    assert found.notes[3:] == ("left out of the warm start, 8 CPUs: three are nearer, or as near and newer",)


def test_named_and_chosen_ones_go_together() -> None:
    found = begun(
        earlier("chosen", {"work_mem": "64MB"}), earlier("mine.zip", {"work_mem": "64MB"}, is_named=True)
    )
    assert found.points == ({"work_mem": "64MB"},)
    assert found.notes[1].startswith("left out of the warm start, chosen: the same here as")


def test_nothing_to_begin_with_is_said() -> None:
    assert begun() == WarmStart((), ())
