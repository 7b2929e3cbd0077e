"""Effects of pgdyno's configurations over each peer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic_peers import SPEEDS, experiment
from tests.unit.studies.test_peers_text import failing

from pgdyno.measure.verdicts.peer_effects import peer_effects
from pgdyno.studies.peers_text import peers_text


def test_ratios_are_those_that_were_planted_and_the_fastest_peer_stands_first() -> None:
    found = peer_effects(experiment())
    assert [one.workload for one in found] == list(SPEEDS)
    assert [list(one.ratios) for one in found] == [
        ["pgtune", "mine", "pgconfig"],
        ["pgconfig", "pgtune", "mine"],
    ]
    assert [one.fastest for one in found] == ["pgtune", "pgconfig"]
    for one in found:
        speeds = SPEEDS[one.workload]
        for peer, ratios in one.ratios.items():
            assert list(ratios) == ["plan", "without-plan_cache_mode", "whole-stack"]
            for arm, interval in ratios.items():
                assert interval.point == pytest.approx(speeds[arm] / speeds[peer], rel=0.01)
                assert interval.low < interval.point < interval.high


def test_a_peer_on_which_more_fails_is_left_out_by_name_and_the_others_are_compared() -> None:
    found = peer_effects(failing("pgtune"))
    assert [list(one.ratios) for one in found] == [["mine", "pgconfig"], ["pgconfig", "pgtune", "mine"]]
    assert [one.left_out for one in found] == [("pgtune",), ()]
    usual = peer_effects(experiment())
    assert found[0].ratios["mine"] == usual[0].ratios["mine"]
    assert found[1] == usual[1]
    first, *_ = peers_text(failing("pgtune")).splitlines()
    assert first.endswith("not compared, because more transactions failed on one side: pgtune")


def test_too_few_rounds_are_said() -> None:
    short = replace(experiment(), blocks=experiment().blocks[:4])
    assert "too few rounds are valid on all servers" in peers_text(short)
