"""The search on the page of its proof."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.synthetic import experiment
from tests.golden.synthetic_tuning import tuning

from pgdyno.model.tuning.tuning import Trial, TrialState
from pgdyno.results.page import render_page
from pgdyno.tune.view.search_trials import SearchView, search_view

OUTCOME, CHANGES = 3, 4


def view(*trials: Trial) -> SearchView:
    found = search_view(replace(tuning(), trials=trials) if trials else tuning())
    assert found is not None
    return found


def test_each_trial_says_what_it_changed_against_the_best_at_its_time() -> None:
    changes = [row[CHANGES] for row in view().table.rows]
    assert changes[0] == "shared_buffers=2GB, work_mem=16MB, vm.swappiness=1"
    assert changes[3] == "plan_cache_mode=force_generic_plan"
    assert changes[7] == (
        "plan_cache_mode=auto, shared_buffers as found, work_mem as found, vm.swappiness as found"
    )


def test_each_trial_says_how_it_ended() -> None:
    outcomes = [row[OUTCOME] for row in view().table.rows]
    assert outcomes == [
        "became the best",
        "slower",
        "no clear difference",
        "became the best",
        "slower on sysbench-read-write",
        "failed: it did not start",
        "refused: the worst case does not fit",
        "slower",
    ]


def test_the_legend_has_the_marks_that_are_there() -> None:
    won = Trial(1, {"jit": "off"}, None, tuning().trials[0].rounds, TrialState.WON)
    assert [words for _, words in view(won).legend] == ["became the best"]
    assert len(view().legend) == 5


def test_the_steps_rise_where_a_trial_became_the_best() -> None:
    curve = view().curve
    assert curve is not None
    line = str(curve.wide).split('<polyline points="')[1].split('"')[0]
    corners = [tuple(map(float, pair.split(","))) for pair in line.split()]
    heights = [y for _, y in corners]
    assert len(corners) == 6  # the default, two for each of two steps, and the right end
    assert heights == sorted(heights, reverse=True)  # upwards is less
    assert len(set(heights)) == 3


def test_what_was_left_out_and_what_was_kept_is_in_a_table() -> None:
    removals = view().removals
    assert removals is not None
    assert [row[:3] for row in removals.rows] == [
        ("vm.swappiness, work_mem", "left out", "−0.20\xa0%"),
        ("shared_buffers", "kept", "−21.0\xa0%"),
        ("plan_cache_mode", "kept", "–"),
    ]


def test_the_page_says_that_trials_prove_nothing() -> None:
    page = render_page(experiment(), tuning=tuning())
    assert "Trials only guide the search" in page
    assert '<a href="#search">' in page


def test_a_page_without_a_search_speaks_of_none() -> None:
    assert 'href="#search"' not in render_page(experiment())
    assert search_view(replace(tuning(), trials=())) is None
