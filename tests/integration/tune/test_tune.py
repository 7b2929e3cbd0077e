"""A search on real servers: PostgreSQL 18 of the embedded wheel, pgbench at scale 1."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.fix_rounds import WHATEVER_ELSE_RUNS

from pgdyno.base.errors import UsageError
from pgdyno.cli.output import Lines
from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.tuning.tuning import Point, Removal, Space, Trial, TrialState, Tuning
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import embedded
from pgdyno.store.tunings import load_tuning, save_tuning
from pgdyno.tune.tune import tune
from pgdyno.tune.tune_request import TuneRequest
from pgdyno.workload.workload_choice import find_workloads

NAME = "pgbench-select"
SHORT = Design(block_s=0.5, warmup_s=0.2, slice_s=0.05, clients=1, thresholds=WHATEVER_ELSE_RUNS)


@dataclass
class Heard:
    """Collects what a search tells of."""

    trials: list[Trial] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    answers: list[Point] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def tried(self, trial: Trial) -> None:
        self.trials.append(trial)

    def noted(self, note: str) -> None:
        self.notes.append(note)

    def left_out(self, removal: Removal) -> None:
        self.removals.append(removal)

    def answered(self, tuning: Tuning) -> None:
        self.answers.append(tuning.answer)


@pytest.mark.server
@pytest.mark.usefixtures("pg18_bin", "home")
def test_a_search_is_kept_as_it_goes_and_can_be_gone_on_with() -> None:
    design = replace(SHORT, rounds=2, blocks_per_round=1)
    conditions = Conditions(embedded(), find_workloads((NAME,), (), 1), design, as_booted=AS_BOOTED_GIVEN)
    request = TuneRequest(conditions, Variant("default"), budget_s=1.0, most_trials=1)
    heard = Heard()
    first = tune(request, Lines(), heard).tuning
    assert heard.trials == list(first.trials)
    assert first.trials[0].point == first.space.plan
    assert first.trials[0].rounds or first.trials[0].state is TrialState.FAILED
    assert all(set(one.by_workload) == {NAME} for one in first.trials[0].rounds)
    kept = load_tuning(workspace().experiments(), first.id)
    assert kept == first
    unproven = replace(kept, experiment=None)  # as if its proof had been interrupted
    save_tuning(workspace().experiments(), unproven)

    again = replace(request, resume=first.id, most_trials=2, budget_s=12.0)
    heard_again = Heard()
    second = tune(again, Lines(), heard_again)
    assert second.tuning.id == first.id
    assert second.tuning.trials[:1] == first.trials
    numbers = [one.number for one in second.tuning.trials]
    assert numbers == list(range(1, len(numbers) + 1))
    assert sum(one.state is not TrialState.REFUSED for one in second.tuning.trials) == 2
    assert heard_again.answers == ([second.tuning.answer] if second.tuning.answer else [])
    winner = (second.tuning.winner or second.tuning.trials[0]).point
    assert second.tuning.answer.keys() <= {*winner, *second.tuning.space.kept}
    if second.tuning.answer:
        assert second.experiment is not None
        assert "tuned" in [one.name for one in second.experiment.variants]

        with pytest.raises(UsageError, match="is finished"):
            tune(again, Lines(), heard)
    else:
        other = replace(again, base=Variant("default", {"shared_buffers": "16MB"}))
        with pytest.raises(UsageError, match="has a different subject"):
            tune(other, Lines(), heard)


def latest_search() -> Tuning:
    """Return the search that was begun last, as it is stored."""
    kept = max(workspace().experiments().glob("*.tuning.json"))  # their names begin with the time
    return load_tuning(workspace().experiments(), kept.name.removesuffix(".tuning.json"))


class EnoughError(Exception):
    """Ends a search from outside."""


@dataclass
class Impatient(Heard):
    """Ends the search after its second trial."""

    def tried(self, trial: Trial) -> None:
        super().tried(trial)
        if len(self.trials) == 2:
            raise EnoughError


@pytest.fixture
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each trial end after its first round."""
    for name in ("race.MOST_ROUNDS", "searching.MOST_ROUNDS"):
        monkeypatch.setattr(f"pgdyno.tune.search.{name}", 1)


@pytest.mark.server
@pytest.mark.usefixtures("pg18_bin", "home", "one_round")
def test_an_earlier_answer_is_tried_right_after_the_plan(tmp_path: Path) -> None:
    answer = {"plan_cache_mode": "force_custom_plan", "fsync": "off"}
    subject = f"embedded {embedded().version}; somewhere else"
    save_tuning(tmp_path, Tuning("earlier", "guided", 1, (NAME,), subject, Space(()), answer=answer))
    conditions = Conditions(embedded(), find_workloads((NAME,), (), 1), SHORT, as_booted=AS_BOOTED_GIVEN)
    source = str(tmp_path / "earlier.tuning.json")
    request = TuneRequest(conditions, Variant("default"), budget_s=400.0, warm_start=(source,))
    heard = Impatient()
    with pytest.raises(EnoughError):
        tune(request, Lines(), heard)
    tuning = latest_search()
    assert [one.point for one in heard.trials] == [
        tuning.space.plan,
        {"plan_cache_mode": "force_custom_plan"},
    ]
    assert f"tried after the plan, as in {source} or nearest to it: " in "\n".join(tuning.notes)


@pytest.mark.server
def test_a_search_that_does_not_exist_is_named(home: Path) -> None:
    conditions = Conditions(embedded(), find_workloads((NAME,), (), 1), Design(), as_booted=AS_BOOTED_GIVEN)
    request = TuneRequest(conditions, Variant("default"), budget_s=1.0, resume="20200101-000000-tune")
    with pytest.raises(UsageError, match='search "20200101-000000-tune" does not exist'):
        tune(request, Lines(), Heard())
    assert home.is_dir()
