"""Searches on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.base.errors import StorageError, UsageError
from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.tuning import (
    Dimension,
    Removal,
    RoundRatios,
    Space,
    Trial,
    TrialRound,
    TrialState,
    Tuning,
)
from pgdyno.store.tunings import load_tuning, save_tuning, tuning_of

TUNING = Tuning(
    id="20261125-200000-tune",
    sampler="guided",
    seed=3,
    workloads=("sysbench-read-only",),
    subject="embedded 18.6",
    space=Space((Dimension("jit", Layer.APPLICATION, ("off",), "on", planned="off", worth=0.1),)),
    trials=(
        Trial(
            1,
            {"jit": "off"},
            None,
            (TrialRound(0.1, 0.1, 0.0, {"sysbench-read-only": RoundRatios(0.1, 0.1, 0.0)}),),
            TrialState.WON,
        ),
        Trial(2, {}, 1, (), TrialState.FAILED, "it did not start"),
    ),
    removals=(Removal(("jit",), is_kept=False, rounds=2, ratio=(0.9, 0.88, 0.92)),),
    answer={"jit": "off"},
)


def test_what_was_saved_last_is_what_is_loaded(tmp_path: Path) -> None:
    save_tuning(tmp_path, Tuning(TUNING.id, "random", 1, (), "", Space(())))
    save_tuning(tmp_path, TUNING)
    assert load_tuning(tmp_path, TUNING.id) == TUNING


def test_a_search_of_an_older_version_is_read_without_ratios_by_workload(tmp_path: Path) -> None:
    recorded = Path(__file__).parents[3] / "docs/results/tuning/20261125-205454-tune.tuning.json"
    (tmp_path / recorded.name).write_bytes(recorded.read_bytes())
    found = load_tuning(tmp_path, recorded.name.removesuffix(".tuning.json"))
    assert found.trials[0].state is TrialState.WON
    assert not any(one.by_workload for trial in found.trials for one in trial.rounds)


def test_an_unknown_search_is_an_error_that_names_those_there_are(tmp_path: Path) -> None:
    save_tuning(tmp_path, TUNING)
    with pytest.raises(UsageError, match=r'search "\.\./passwd" does not exist') as caught:
        load_tuning(tmp_path, "../passwd")
    assert caught.value.detail == "known searches: 20261125-200000-tune"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "could not be read"),
        ('{"schema_version": 1, "id": 7}', "could not be read"),
        ('{"schema_version": 99}', "was written by another version of pgdyno"),
        ("[]", "could not be read"),
    ],
)
def test_a_damaged_file_is_an_error_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / f"{TUNING.id}.tuning.json").write_text(text)
    with pytest.raises(StorageError, match=message):
        load_tuning(tmp_path, TUNING.id)


def test_a_proof_has_its_search_and_other_experiments_have_none(tmp_path: Path) -> None:
    proven = replace(TUNING, experiment="20261125-201500-tune-proof")
    save_tuning(tmp_path, proven)
    save_tuning(tmp_path, replace(TUNING, id="20261125-210000-tune", experiment=None))
    (tmp_path / "20261125-220000-tune.tuning.json").write_text("{")
    assert tuning_of(tmp_path, "20261125-201500-tune-proof") == proven
    assert tuning_of(tmp_path, "20261125-201500-compare") is None
