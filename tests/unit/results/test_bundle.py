"""What slices have counted goes from the store into a bundle, is held against the blocks, and comes back."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.golden.synthetic import experiment

from pgdyno.measure.blocks.attribution import tail_mean
from pgdyno.measure.blocks.observation import count_slices
from pgdyno.measure.blocks.transactions import Transactions
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import TAIL_MEAN
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.variants.schema_sql import SchemaChange
from pgdyno.model.variants.variant import Variant
from pgdyno.results.bundle import export_bundle, verify_bundle
from pgdyno.results.bundle_import import import_bundle
from pgdyno.store.bundle import pack_bundle
from pgdyno.store.documents import dump_experiment
from pgdyno.store.experiments import open_store
from pgdyno.store.series import FILE

MS = 1_000_000
TURNS = [Slice(0, 0, 100 * MS, (1, 1)), Slice(0, 300 * MS, 400 * MS, (1, 1))]
# One ends in a head of 5 ms, one began in it, one after its turn has ended; the slowest two are of a stall.
LATENCY_US = np.array([2_000, 4_000, 7_000, 3_000, 48_000, 51_000, 2_500], dtype=np.int64)
COMPLETED_NS = np.array([4, 7, 50, 90, 99, 120, 360], dtype=np.int64) * MS
COUNTED = np.array([7_000, 3_000, 48_000, 51_000, 2_500], dtype=np.int64)


def counted() -> list[Slice]:
    return count_slices(TURNS, 0, Transactions(COMPLETED_NS, LATENCY_US), 5 * MS, is_drained=True)


def measured() -> Experiment:
    """Return an experiment whose first block has just these transactions of the baseline."""
    first, *others = experiment().blocks
    baseline, variant = first.arms
    p50, p95, p99 = (float(one) / 1000 for one in np.percentile(COUNTED, [50, 95, 99]))
    values = {
        **baseline.values,
        "latency_ms_p50": p50,
        "latency_ms_p95": p95,
        "latency_ms_p99": p99,
        TAIL_MEAN: tail_mean(COUNTED) / 1000,
    }
    arm = replace(baseline, transactions=5, values=values)
    return replace(experiment(), blocks=(replace(first, arms=(arm, variant)), *others))


def of_first_block(slices: Sequence[Slice]) -> object:
    first = experiment().blocks[0]
    place = (first.workload, first.round, first.index)
    return lambda *asked: slices if asked == place else []


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path / "home"))


def test_each_slice_counts_what_ended_in_it_and_the_latencies_of_what_began_in_it() -> None:
    assert [one.completed for one in counted()] == [4, 1]


def test_what_slices_counted_comes_back_from_a_bundle(tmp_path: Path) -> None:
    path = export_bundle(measured(), tmp_path / "b.zip", slices_of=of_first_block(counted()))  # type: ignore[arg-type]
    assert verify_bundle(path).problems == ()
    import_bundle(path)
    first = measured().blocks[0]
    with closing(open_store()) as store:
        assert list(store.slices(measured().id, first.workload, first.round, first.index)) == counted()


def test_a_block_that_its_slices_contradict_is_a_problem(tmp_path: Path) -> None:
    found = measured()
    first, *others = found.blocks
    better = {**first.arms[0].values, "latency_ms_p99": 40.0}
    arms = (replace(first.arms[0], transactions=6, values=better), first.arms[1])
    changed = replace(found, blocks=(replace(first, arms=arms), *others))
    path = export_bundle(changed, tmp_path / "b.zip", slices_of=of_first_block(counted()))  # type: ignore[arg-type]
    name = f"block 1 of round 1 of {first.workload}"
    # By hand, 0.96 of the way from the second slowest to the slowest: 50.88, and a bucket's middle is 50.87.
    assert verify_bundle(path).problems == (
        f"{name}: transactions of default is 6, but its slices have 5",
        f"{name}: latency_ms_p99 of default is 40, but its slices have 50.87",
    )


def test_slices_that_were_left_out_of_a_block_do_not_contradict_it(tmp_path: Path) -> None:
    """The disturbed one, between the two turns, has 900 transactions that the block does not have."""
    found = measured()
    first, *others = found.blocks
    disturbed = replace(counted()[0], start_ns=150 * MS, end_ns=250 * MS, completed=900)
    slices = [counted()[0], disturbed, counted()[1]]
    for left_out, problems in ((1,), 0), ((), 1):
        changed = replace(found, blocks=(replace(first, left_out=left_out), *others))
        path = export_bundle(changed, tmp_path / f"{problems}.zip", slices_of=of_first_block(slices))  # type: ignore[arg-type]
        assert bool(verify_bundle(path).problems) is bool(problems)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "sysbench-read-only,1,1,default,0,4,x",
            "line 2 of histograms.csv is not a count of a slice: not an Hdr",
        ),
        ("sysbench-read-only,1,1,default,0,-4,x", '"-4" is not a time in nanoseconds or a count'),
        ("sysbench-read-only,1,1,nothing,0,4,x", 'the experiment has no variant "nothing"'),
        ("sysbench-read-only,1,1", "it has 3 values, not 7"),
        (
            f"sysbench-read-only,1,1,default,77,4,{counted()[0].latencies}",
            "has a line without a matching slice, or out of order: it begins at 77 in block 1",
        ),
    ],
)
def test_a_damaged_file_is_a_problem(line: str, why: str, tmp_path: Path) -> None:
    text = f"workload,round,block,variant,start_ns,completed,latency_us\r\n{line}\r\n"
    (problem,) = verify_bundle(with_file(tmp_path, text)).problems
    assert why in problem


def test_other_columns_are_a_problem(tmp_path: Path) -> None:
    (problem,) = verify_bundle(with_file(tmp_path, "start_ns\r\n")).problems
    assert problem == (
        "line 1 of histograms.csv is not a count of a slice: its columns are start_ns, "
        "not workload, round, block, variant, start_ns, completed, latency_us"
    )


def with_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "changed.zip"
    document = json.dumps(dump_experiment(measured())).encode()
    path.write_bytes(pack_bundle("x", {"experiment.json": document, FILE: text.encode()}))
    return path


def test_sql_of_variants_is_in_a_bundle_verbatim_and_its_text_warns_of_that(tmp_path: Path) -> None:
    sql = "CREATE INDEX vip ON orders (id) WHERE email = 'kim.possible@example.org'"
    baseline, other, *others = experiment().variants
    changed = replace(
        experiment(),
        question=f"How does {other.name}:sql={sql} compare?",
        variants=(baseline, Variant(other.name, {"sql": sql}), *others),
        schema_changes=(SchemaChange(other.name, experiment().workloads[0], (sql,), 0.1, 8192, 0, 4096),),
    )
    warning = (
        "The bundle contains the SQL of variants verbatim, with its constants and the names of tables, "
        "columns and indexes: in experiment.json (variants, question, schema_changes, notes), above and in "
        "report.html. Read it before you pass the bundle on."
    )
    with zipfile.ZipFile(export_bundle(changed, tmp_path / "b.zip")) as bundle:
        texts = {Path(name).name: bundle.read(name).decode() for name in bundle.namelist()}
    assert warning in " ".join(texts["README.txt"].split())
    assert sql in texts["README.txt"]
    document = json.loads(texts["experiment.json"])
    assert document["variants"][1]["settings"] == {"sql": sql}
    assert document["schema_changes"][0]["statements"] == [sql]
    with zipfile.ZipFile(export_bundle(experiment(), tmp_path / "c.zip")) as bundle:
        readme = next(name for name in bundle.namelist() if name.endswith("README.txt"))
        assert "SQL of variants" not in bundle.read(readme).decode()
