"""The front on the page of its proof."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.synthetic_front import RATIOS, experiment, tuning

from pgdyno.model.tuning.aims import Aim
from pgdyno.report.page.front_figure import FrontView, front_view
from pgdyno.report.page.page import render_page
from pgdyno.report.page.search_trials import search_view


def view() -> FrontView:
    found = front_view(tuning(), experiment())
    assert found is not None
    return found


def test_the_table_has_every_configuration_and_which_are_left() -> None:
    assert [row[0] for row in view().effects.rows] == [name for name in RATIOS if name != "default"]
    assert [row[-1] for row in view().effects.rows] == ["yes", "yes", "left out", "left out", "left out"]
    assert [column.title for column in view().effects.columns] == [
        "Configuration",
        "throughput (more is better)",
        "WAL per transaction (less is better)",
        "On the front",
    ]


def test_two_aims_are_drawn_with_a_mark_for_each_configuration() -> None:
    chart = view().chart
    assert chart is not None
    for drawn in (chart.wide, chart.narrow):
        assert all(f">{name}</text>" in drawn for name in RATIOS if name != "default")
        assert drawn.count("mark hollow") == 3


def test_three_aims_have_a_table_alone() -> None:
    found = tuning()
    three = replace(
        found,
        aims=(*found.aims, Aim.MEMORY),
        trials=tuple(
            replace(
                trial,
                rounds=tuple(replace(one, by_aim={**one.by_aim, Aim.MEMORY: 0.1}) for one in trial.rounds),
            )
            for trial in found.trials
        ),
    )
    seen = front_view(three, experiment())
    assert seen is not None
    assert seen.chart is None
    assert [row[3] for row in seen.effects.rows] == ["+10.5\u00a0%"] * 5


def test_settings_that_all_have_stand_once() -> None:
    assert view().settings.rows[:3] == (
        ("all", "shared_buffers=2048MB, work_mem=16MB"),
        ("member-1", "plan_cache_mode=force_generic_plan"),
        ("member-2", "wal_compression=lz4"),
    )
    alone = replace(tuning(), members=tuning().members[:1])
    seen = front_view(alone, experiment())
    assert seen is not None
    assert len(seen.settings.rows) == 1


def test_its_search_has_a_table_with_every_aim_and_no_curve() -> None:
    found = search_view(tuning())
    assert found is not None
    assert found.curve is None
    assert found.table.rows[2][:4] == ("3", "+25.0\u00a0%", "\u221245.0\u00a0%", "2")
    assert found.table.rows[5][1:5] == ("–", "–", "0", "failed: it did not start")


def test_the_page_has_the_front_and_a_link_to_it() -> None:
    page = render_page(experiment(), tuning=tuning())
    assert '<h2 id="front">The front: throughput and WAL per transaction</h2>' in page
    assert '<a href="#front">' in page
    assert 'id="front"' not in render_page(experiment())
