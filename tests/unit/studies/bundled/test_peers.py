"""The study of peers: its variants, and the options that it reads."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import DurabilityError, UsageError, VariantError
from pgdyno.measure.bundled_study import Sizing, StudyContext
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled import peers
from pgdyno.studies.bundled.insert_benchmark import study as insert_benchmark
from pgdyno.studies.bundled.tpch import study as tpch


def test_every_configuration_stands_beside_the_default_on_its_own_programs() -> None:
    context = StudyContext(
        Variant("default", {"huge_pages": "off"}),
        ("sysbench-read-only",),
        Design(),
        {"pgtune": {"work_mem": "4MB"}, "plan": {"work_mem": "8MB"}, "whole-stack": {"work_mem": "8MB"}},
        notes=("a note",),
        servers={"whole-stack": "built-00000000000a"},
    )
    study = peers.study(context)
    assert [(one.name, dict(one.settings), one.server) for one in study.variants] == [
        ("default", {"huge_pages": "off"}, None),
        ("pgtune", {"work_mem": "4MB"}, None),
        ("plan", {"work_mem": "8MB"}, None),
        ("whole-stack", {"work_mem": "8MB"}, "built-00000000000a"),
    ]
    assert study.baseline == "default"
    assert study.notes == ("a note",)


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("4GB", 4 << 30), ("3328MB", 3328 << 20), ("1.5GB", 3 << 29)]
)
def test_memory_is_read_as_postgresql_writes_it(text: str, size_bytes: int) -> None:
    assert Sizing(given={"memory": (text,)}).of(peers.MEMORY) == size_bytes
    assert Sizing().of(peers.MEMORY) is None


@pytest.mark.parametrize("text", ["4", "much", "4kB", "4 apples", "1023MB", "0GB", "-4GB"])
def test_what_is_no_such_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--memory .* is") as refused:
        Sizing(given={"memory": (text,)}).of(peers.MEMORY)
    assert refused.value.hint == "write it like --memory 4GB"


def test_further_configurations_are_read_like_those_of_compare() -> None:
    (found,) = Sizing(given={"variant": ("optuna:work_mem=8MB,jit=off",)}).of(peers.VARIANT)
    assert (found.name, found.settings) == ("optuna", {"work_mem": "8MB", "jit": "off"})
    with pytest.raises(DurabilityError, match="not durable"):
        Sizing(given={"variant": ("fast:fsync=off",)}).of(peers.VARIANT)
    with pytest.raises(VariantError):
        Sizing(given={"variant": ("fast:",)}).of(peers.VARIANT)


def test_the_memory_is_recorded_and_the_further_configurations_are_variants_themselves() -> None:
    sizing = Sizing(given={"memory": ("4GB",), "variant": ("optuna:jit=off",)})
    assert peers.STUDY.recorded_options(sizing) == {"memory": "4GB"}


def test_the_loads_of_a_benchmark_are_those_of_its_study_and_so_are_their_options() -> None:
    of_tpch = peers.STUDY.with_loads_of(tpch.STUDY)
    assert of_tpch.workloads is not None
    assert "tpch-power" in of_tpch.workloads(Sizing(scale=0.01))
    assert (of_tpch.takes_scale, of_tpch.needs_peers, of_tpch.measures) == (True, True, ())
    of_steps = peers.STUDY.with_loads_of(insert_benchmark.STUDY)
    sizing = Sizing(given={"benchmark": ("insert-benchmark",), "rows": ("2000/500/100",), "step": ("l.i0",)})
    assert of_steps.workloads is not None
    assert list(of_steps.workloads(sizing)) == ["insert-benchmark-l.i0"]
    assert of_steps.takes(peers.MEMORY)
    assert of_steps.recorded_options(sizing) == {
        "benchmark": "insert-benchmark", "rows": "2000/500/100", "mode": "corrected",
    }  # fmt: skip


def test_another_benchmark_is_refused() -> None:
    with pytest.raises(UsageError, match='no benchmark "tpcc" for peers') as refused:
        Sizing(given={"benchmark": ("tpcc",)}).of(peers.BENCHMARK)
    assert refused.value.hint == "known: insert-benchmark and tpch; other loads are named with --workload"
