"""The command that measures peers in a benchmark's steps again, from what the store has of the experiment."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from tests.golden.synthetic_peers import experiment as of_peers
from tests.golden.synthetic_steps import experiment as of_steps
from tests.golden.synthetic_tpch import experiment as of_tpch

from pgdyno.cli.run import command
from pgdyno.cli.study_options import taken_out
from pgdyno.measure.bundled_study import Sizing
from pgdyno.measure.view.repeat import repeat_command
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.variants.variant import Variant
from pgdyno.store.experiments import ExperimentStore
from pgdyno.studies.run import find_study

OURS = (Variant("plan", {"work_mem": "8MB"}), Variant("without-plan_cache_mode"), Variant("whole-stack"))
PEERS = (Variant("default"), Variant("pgtune", {"jit": "off"}), Variant("pgconfig", {"jit": "on"}), *OURS)
MINE = Variant("mine", {"work_mem": "7MB", "search_path": '"$user", public'}, "source-17")
STEPS = "--benchmark insert-benchmark --memory 2048MB --rows 2000/500/100 --step-seconds 7 --mode faithful"
TPCH = "--benchmark tpch --memory 4096MB"


def given_by(words: str) -> dict[str, tuple[str, ...]]:
    """Return the studies' options that the command line has in these words, by name."""
    context = command.make_context("run", ["peers", "--embedded", *shlex.split(words)])
    return taken_out(context.params)


def repeated(base: Experiment, words: str, *added: Variant, scale: str | None = None) -> str:
    """Return the command for an experiment that was asked for in these words, stored and loaded."""
    given = given_by(words)
    options = find_study("peers", given).recorded_options(Sizing(given))
    options |= {} if scale is None else {"scale": scale}
    stored = replace(
        base, name="peers", variants=(*PEERS, *added), baseline="default", factors=(), options=options,
        blocks=(), verdicts=(),
    )  # fmt: skip
    return repeat_command(stored_and_loaded(stored)) or ""


def stored_and_loaded(experiment: Experiment) -> Experiment:
    store = ExperimentStore(Path(":memory:"))
    store.save(experiment)
    return store.load(experiment.id)


def test_all_steps_are_asked_for_with_their_size_and_the_memory_of_the_machine() -> None:
    assert repeated(of_steps(), STEPS) == (
        "pgdyno run peers --embedded --memory 2048MB --benchmark insert-benchmark --rows 2000/500/100 "
        "--step-seconds 7 --mode faithful --blocks 6 --seed 20261121 --clients 2"
    )


def test_single_steps_are_named() -> None:
    names = ("insert-benchmark-l.i1", "insert-benchmark-qr100")
    assert "--mode faithful --step l.i1 --step qr100 --blocks 6" in repeated(
        replace(of_steps(), workloads=names), STEPS
    )
    assert "--mode faithful --step l.i1 --blocks 6" in repeated(
        replace(of_steps(), workloads=names[:1]), STEPS
    )


def test_runs_like_tpch_have_their_scale_and_no_steps() -> None:
    assert repeated(of_tpch(), TPCH, scale="0.01") == (
        "pgdyno run peers --embedded --memory 4096MB --benchmark tpch --scale 0.01 "
        "--blocks 6 --seed 20261121 --clients 2 --no-isolate"
    )


def test_further_configurations_are_given_again_and_those_of_known_peers_are_made_anew() -> None:
    words = shlex.split(repeated(of_steps(), STEPS, MINE, Variant("other", {"jit": "off"})))
    assert words[3:8] == ["--embedded", "--variant", str(MINE), "--variant", "other:jit=off"]


@pytest.mark.parametrize(("base", "words"), [(of_steps(), STEPS), (of_tpch(), TPCH)], ids=["steps", "tpch"])
def test_the_command_line_understands_the_command_and_has_the_same_options_then(
    base: Experiment, words: str
) -> None:
    found = repeated(base, words, MINE, scale="0.01" if words == TPCH else None)
    start = "pgdyno run peers --embedded "
    assert found.startswith(start)
    assert given_by(found.removeprefix(start)) == {**given_by(words), "variant": (str(MINE),)}


def test_loads_that_take_turns_repeat_as_a_plain_comparison_of_the_configurations() -> None:
    assert (repeat_command(of_peers()) or "").startswith("pgdyno compare default pgconfig ")
