"""Experiment files: read strictly, every mistake at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.errors import ExperimentFileError
from pgdyno.model.experiments.experiment import Phase
from pgdyno.store.experiment_file import DESIGN_KEYS, read_experiment_file

GUIDE = Path(__file__).parents[3] / "docs/guides/experiment-files.md"

GOOD = """
question = "Does it help?"
workloads = ["pgbench-select"]
[design]
rounds = 4
[variants.default]
[variants.big]
settings = { shared_buffers = "1GB" }
"""


def write(directory: Path, text: str) -> Path:
    path = directory / "buffers.toml"
    path.write_text(text)
    return path


def test_a_file_becomes_a_study_whose_first_variant_is_the_baseline(tmp_path: Path) -> None:
    study = read_experiment_file(write(tmp_path, GOOD))
    assert (study.name, study.baseline, study.design.rounds) == ("buffers", "default", 4)
    assert dict(study.variants[1].settings) == {"shared_buffers": "1GB"}


def test_the_example_of_the_guide_is_a_study(tmp_path: Path) -> None:
    text = GUIDE.read_text().partition("```toml\n")[2].partition("```")[0]
    study = read_experiment_file(write(tmp_path, text))
    assert [variant.name for variant in study.variants] == ["default", "eager"]
    assert study.design.phase is Phase.CYCLE


@pytest.mark.parametrize("key", DESIGN_KEYS)
def test_the_guide_explains_every_key(key: str) -> None:
    assert f"| `{key}` |" in GUIDE.read_text()


@pytest.mark.parametrize(("written", "phase"), [("minute", Phase.AFTER_CHECKPOINT), ("cycle", Phase.CYCLE)])
def test_a_file_names_the_phase_that_its_figures_cover(tmp_path: Path, written: str, phase: Phase) -> None:
    text = GOOD.replace("rounds = 4", f'phase = "{written}"')
    assert read_experiment_file(write(tmp_path, text)).design.phase is phase


def test_a_phase_that_there_is_not_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ExperimentFileError) as caught:
        read_experiment_file(write(tmp_path, GOOD.replace("rounds = 4", 'phase = "hour"')))
    assert caught.value.detail == "\"design.phase\": input should be 'minute' or 'cycle', found 'hour'"


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    text = GOOD.replace('question = "Does it help?"', 'why = "x"').replace(
        "rounds = 4", "rounds = 1\nturbo = true"
    )
    with pytest.raises(ExperimentFileError) as caught:
        read_experiment_file(write(tmp_path, text))
    assert caught.value.message.endswith("has 4 mistakes")
    assert caught.value.detail is not None
    for part in (
        'key "question" is missing',
        'unknown key "why"',
        'unknown key "design.turbo"',
        '"design.rounds"',
    ):
        assert part in caught.value.detail


def test_broken_toml_says_where(tmp_path: Path) -> None:
    with pytest.raises(ExperimentFileError) as caught:
        read_experiment_file(write(tmp_path, "question = \n"))
    assert "is not valid TOML" in caught.value.message
    assert "line 1" in (caught.value.detail or "")


def test_variants_and_factors_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(ExperimentFileError, match=r"either \[variants.NAME\] tables or a \[factors\] table"):
        read_experiment_file(write(tmp_path, GOOD + '[factors]\njit = ["on", "off"]\n'))


def test_names_of_settings_are_folded_so_that_nothing_passes_unmarked(tmp_path: Path) -> None:
    text = GOOD.replace('shared_buffers = "1GB"', 'FSYNC = "off"')
    study = read_experiment_file(write(tmp_path, text))
    assert study.variants[1].unsafe_settings == ("fsync=off",)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (GOOD.replace('shared_buffers = "1GB"', 'JIT = "on", jit = "off"'), "variants.big.settings"),
        (
            GOOD.partition("[variants.default]")[0] + '[factors]\nJIT = ["on"]\njit = ["off"]\n',
            "factors",
        ),
    ],
)
def test_one_setting_in_two_spellings_is_a_mistake(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(ExperimentFileError) as caught:
        read_experiment_file(write(tmp_path, text))
    assert (caught.value.detail or "").startswith(f'"{place}": jit is set twice')


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExperimentFileError, match=r'could not read ".*none\.toml"'):
        read_experiment_file(tmp_path / "none.toml")


@pytest.mark.parametrize("value", ["[" * 2_000, "9" * 5_000])
def test_toml_that_python_cannot_hold_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(ExperimentFileError, match="is not valid TOML"):
        read_experiment_file(write(tmp_path, f"question = {value}\n"))


def test_a_file_that_would_take_minutes_to_parse_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentFileError) as caught:
        read_experiment_file(write(tmp_path, GOOD + "#" * (256 << 10)))
    assert str(caught.value) == (
        f'"{tmp_path}/buffers.toml" is too large\n'
        "DETAIL:  it has more than 262144 characters, which is the limit\n"
        "HINT:  a file contains one study: split it"
    )
    with pytest.raises(ExperimentFileError) as caught:
        read_experiment_file(write(tmp_path, GOOD + "a." * 100_000 + "a = 1\n"))
    assert caught.value.message == f'line 9 of "{tmp_path}/buffers.toml" has 100000 dots'


def test_of_many_mistakes_the_first_are_listed(tmp_path: Path) -> None:
    with pytest.raises(ExperimentFileError) as caught:
        read_experiment_file(write(tmp_path, "".join(f"a{n} = 1\n" for n in range(20_000)) + GOOD))
    assert caught.value.message == f'"{tmp_path}/buffers.toml" has 20000 mistakes'
    mistakes = (caught.value.detail or "").split("; ")
    assert mistakes == [*(f'unknown key "a{n}"' for n in range(8)), "and 19992 more"]


def test_many_settings_take_no_longer_than_their_number(tmp_path: Path) -> None:
    names = "".join(f's{n} = "1"\n' for n in range(20_000))
    text = GOOD.partition("[variants.default]")[0] + f'[variants.big.settings]\n{names}JIT = "1"\njit = "1"'
    with pytest.raises(ExperimentFileError, match="jit is set twice"):
        read_experiment_file(write(tmp_path, text))


def test_an_endless_block_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ExperimentFileError) as caught:
        read_experiment_file(write(tmp_path, GOOD.replace("rounds = 4", "block_s = inf")))
    assert caught.value.detail == '"design.block_s": input should be a finite number, found inf'


def test_a_variant_of_a_file_may_have_sql(tmp_path: Path) -> None:
    sql = 'sql = ["CREATE INDEX ON orders (customer_id);", "ANALYZE"]'
    text = GOOD.replace("settings =", f"{sql}\nsettings =")
    study = read_experiment_file(write(tmp_path, text))
    assert study.variants[1].statements == ("CREATE INDEX ON orders (customer_id)", "ANALYZE")
    assert study.variants[1].gucs == {"shared_buffers": "1GB"}
    assert study.variants[0].statements == ()


def test_sql_among_the_settings_or_factors_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace("shared_buffers", "sql")
    with pytest.raises(ExperimentFileError) as caught:
        read_experiment_file(write(tmp_path, text))
    assert 'sql is no setting: write [variants.NAME] sql = ["CREATE INDEX …"]' in (caught.value.detail or "")
