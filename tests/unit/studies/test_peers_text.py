"""pgdyno's configurations beside each peer's, as the terminal, the page and JSON show them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.golden.synthetic_layers import experiment as of_layers
from tests.golden.synthetic_peers import SPEEDS, experiment

from pgdyno.measure.verdicts.peer_effects import own_arms_of, peer_effects, peers_of
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.failures import Failures
from pgdyno.model.experiments.step_record import TpchFacts
from pgdyno.results.documents import comparison_document
from pgdyno.results.page import render_page
from pgdyno.studies.peers_text import peers_text


def test_added_configurations_stand_among_the_peers() -> None:
    assert peers_of(experiment()) == ["pgconfig", "pgtune", "mine"]
    assert own_arms_of(experiment()) == ["plan", "without-plan_cache_mode", "whole-stack"]


def test_of_a_pass_like_tpch_its_runs_alone_have_a_table() -> None:
    names = dict(zip(SPEEDS, ("tpch-q1", "tpch-power"), strict=True))
    base = experiment()
    like_tpch = replace(
        base,
        workloads=tuple(names.values()),
        blocks=tuple(replace(block, workload=names[block.workload]) for block in base.blocks),
        tpch=TpchFacts(10, 2),
    )
    assert [one.workload for one in peer_effects(like_tpch)] == ["tpch-power"]


def test_other_experiments_have_no_such_table() -> None:
    assert peers_of(of_layers()) == []
    assert peer_effects(of_layers()) == ()
    assert peers_text(of_layers()) == ""
    two = tuple(one for one in experiment().variants if one.name in ("default", "pgtune", "plan"))
    assert peers_of(replace(experiment(), variants=two)) == []
    strangers = tuple(one for one in experiment().variants if one.name in ("default", "pgtune", "pgconfig"))
    assert peers_of(replace(experiment(), variants=strangers)) == []


def test_every_peer_has_a_line_with_each_of_pgdynos_configurations() -> None:
    text = peers_text(experiment()).replace("\N{NO-BREAK SPACE}", " ")
    lines = [re.sub(r"[+\N{MINUS SIGN}]?[\d.]+ %", "N", line) for line in text.splitlines()]
    assert lines[0].startswith(
        "sysbench-read-only: throughput of pgdyno's configurations against each peer's"
    )
    assert lines[1].split() == ["Peer", "plan", "without-plan_cache_mode", "whole-stack"]
    assert [line.split()[0] for line in lines[2:5]] == ["pgtune", "mine", "pgconfig"]
    assert lines[2].split() == ["pgtune", "(fastest)", *["N", "(N", "…", "N)"] * 3]
    assert "look smaller than it is, not larger" in lines[-1]


def failing(*names: str) -> Experiment:
    """Return the experiment with 3 % of the transactions of these servers failed on the first workload."""
    base, (workload, _) = experiment(), SPEEDS
    blocks = tuple(
        replace(
            block,
            arms=tuple(
                replace(arm, failures=(Failures("40P01", arm.transactions * 3 // 97),))
                if arm.variant in names and block.workload == workload
                else arm
                for arm in block.arms
            ),
        )
        for block in base.blocks
    )
    return replace(base, blocks=blocks)


def test_a_configuration_of_pgdyno_on_which_more_fails_has_no_figure() -> None:
    measured = failing("plan")
    found = peer_effects(measured)[0]
    assert list(found.ratios["pgtune"]) == ["without-plan_cache_mode", "whole-stack"]
    assert found.left_out == ("plan over pgconfig", "plan over pgtune", "plan over mine")
    line = peers_text(measured).splitlines()[2]
    assert line.split()[:3] == ["pgtune", "(fastest)", "–"]


def test_the_page_and_the_document_have_the_same() -> None:
    page = render_page(experiment())
    assert '<h2 id="peers">Against each peer</h2>' in page
    assert page.count("against each peer&#39;s") >= 2
    document = comparison_document(experiment())
    peers = document["peers"]
    assert isinstance(peers, list)
    assert peers[0]["workload"] == "sysbench-read-only"
    assert peers[0]["ratios"]["pgtune"]["plan"]["point"] == pytest.approx(1.2, rel=0.01)
    assert 'id="peers"' not in render_page(of_layers())


def test_a_workload_without_a_comparison_is_named() -> None:
    base, first = experiment(), next(iter(SPEEDS))
    few = tuple(block for block in base.blocks if block.workload != first or block.round == 0)
    text = peers_text(replace(base, blocks=few))
    assert f"Not compared on {first}: too few rounds are valid on all servers, or more " in text
    assert "Not compared" not in peers_text(base)
