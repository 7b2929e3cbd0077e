"""What fits into a budget is said, or refused, before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pgdyno.accelerate import budget as accelerate_budget
from pgdyno.accelerate.budget import what_fits
from pgdyno.accelerate.request import AccelerateRequest
from pgdyno.base.errors import UsageError
from pgdyno.base.numbers import SPACE
from pgdyno.cli.main import cli
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.design.parts import Attribute
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.plans.plan import Layer
from pgdyno.model.plans.recipe import KnownBuild
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.planner import PlanRequest
from pgdyno.workload.workload_choice import find_workloads

ALL = (Layer.APPLICATION, Layer.COMPILER, Layer.SYSTEM, Layer.HARDWARE)


@pytest.fixture(autouse=True)
def home(own_home: Path) -> Path:
    return own_home


def request(
    budget_s: float, *, layers: tuple[Layer, ...] = ALL, attribute: Attribute | None = None
) -> AccelerateRequest:
    workloads = find_workloads(("sysbench-read-only", "sysbench-read-write"))
    stretch_s = 0.0 if attribute else 15.0
    conditions = Conditions(None, workloads, Design(blocks_per_round=1, stretch_s=stretch_s))
    plan = PlanRequest(layers=layers)
    return AccelerateRequest(conditions, Variant("default"), budget_s, plan=plan, attribute=attribute)


def said(found: str) -> str:
    return found.replace(SPACE, " ")


def test_the_usual_budget_holds_the_whole_plan_and_not_its_layers() -> None:
    # The plan, what it is without plan_cache_mode, and the baseline: 34 s a round after 61 s, and 90 s in
    # which one server at a time has load. Without a build three layers can be planned: nine arms, 81 turns a
    # square of which writing takes 500 ms, 105 s a round.
    assert said(what_fits(request(600))) == (
        "up to 10 min: about 12 rounds, or 5 if those already decide; "
        "measuring each layer separately (--attribute) also fits"
    )
    # Two servers alone.
    assert said(what_fits(request(300))) == (
        "up to 5 min: about 6 rounds, or 5 if those already decide; "
        "measuring each layer separately (--attribute) takes 10 min"
    )


def test_a_build_is_a_layer_more(monkeypatch: pytest.MonkeyPatch) -> None:
    build = KnownBuild("built-1", "18.6", "gcc", "lto+pgo", (), 428)
    monkeypatch.setattr(accelerate_budget, "builds_to_choose", lambda _: (build,))
    assert said(what_fits(request(300))).endswith("each layer separately (--attribute) takes 13 min")


def test_one_layer_alone_is_the_whole_plan() -> None:
    assert (
        said(what_fits(request(600, layers=ALL[:1])))
        == "up to 10 min: about 12 rounds, or 5 if those already decide"
    )


def test_layers_apart_are_measured_where_they_fit() -> None:
    assert said(what_fits(request(1500, attribute=Attribute.LAYERS))) == (
        "25 min: the whole plan, and up to 3 layers alone and left out, about 12 rounds, and latencies "
        "at 60 % of the measured throughput"
    )


def test_a_server_itself_is_measured_in_whole_trials() -> None:
    assert said(what_fits(request(600), is_loaded=True)) == "up to 10 min: about 7 rounds"


REFUSED = """a budget of {budget} is too small for {what}
DETAIL:  it takes 5 rounds of about {round}, after about 1 min 1 s of preparation{alone}; these are estimates
HINT:  {hint}"""


@pytest.mark.parametrize(
    ("asked", "is_loaded", "figures"),
    [
        (request(60), False, ("1 min", "a verdict", "25 s", "--budget 5m")),
        (
            request(300, attribute=Attribute.LAYERS),
            False,
            ("5 min", "verdicts on single layers", "1 min 45 s", "--budget 10m, or leave out --attribute"),
        ),
        (request(300), True, ("5 min", "a verdict", "1 min 12 s", "--budget 8m")),
    ],
)
def test_a_budget_without_a_verdict_is_refused(
    asked: AccelerateRequest, figures: tuple[str, ...], *, is_loaded: bool
) -> None:
    with pytest.raises(UsageError) as caught:
        what_fits(asked, is_loaded=is_loaded)
    budget, what, round_, hint = figures
    is_alone = not (is_loaded or asked.attribute)
    alone = ", and 1 min 30 s for running servers one at a time" if is_alone else ""
    assert said(str(caught.value)) == REFUSED.format(
        budget=budget, what=what, round=round_, hint=hint, alone=alone
    )


def test_the_command_refuses_it_before_anything_is_loaded(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["accelerate", "--embedded", "--budget", "1m"])
    assert isinstance(done.exception, UsageError)
    assert "is too small for a verdict" in str(done.exception)
    assert not (tmp_path / "datasets").exists() or not list((tmp_path / "datasets").iterdir())
