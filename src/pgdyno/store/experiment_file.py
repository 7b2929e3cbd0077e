"""Experiment files: a study in TOML. All mistakes in a file are reported at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pgdyno.base.errors import ExperimentFileError
from pgdyno.model.experiments.experiment import PHASES, Design
from pgdyno.model.experiments.study import Study, cross
from pgdyno.model.variants.schema_sql import script_of
from pgdyno.model.variants.variant import SQL, Variant, require_measurable
from pgdyno.store.files import read_toml_file

V = TypeVar("V")

_MOST_CHARACTERS = 256 << 10  # of a file: arbitrary; a file with 1,000 variants has 60,000
_SPLIT = "a file contains one study: split it"


def _named_once(settings: dict[str, V]) -> dict[str, V]:
    """Refuse one setting in two spellings: the server does not distinguish ``FSYNC`` and ``fsync``."""
    if SQL in map(str.lower, settings):
        raise ValueError(f'{SQL} is no setting: write [variants.NAME] {SQL} = ["CREATE INDEX …"]')
    folded = Counter(name.lower() for name in settings)
    repeated = sorted(name for name, count in folded.items() if count > 1)
    if repeated:
        raise ValueError(f"{', '.join(repeated)} is set twice")
    return settings


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class VariantTable(_Strict):
    """``[variants.NAME]``: settings in PostgreSQL's syntax, always as text, and SQL run once."""

    server: str | None = None
    settings: Annotated[dict[str, str], AfterValidator(_named_once)] = Field(default_factory=dict)
    sql: list[str] = Field(default_factory=list)

    def variant(self, name: str) -> Variant:
        """Return the variant of this name."""
        sql = {SQL: script_of(self.sql)} if self.sql else {}
        return Variant(name, {**self.settings, **sql}, self.server)


class DesignTable(_Strict):
    """The ``[design]`` table; omitted keys keep their defaults."""

    rounds: Annotated[int, Field(ge=2)] | None = None
    blocks_per_round: Annotated[int, Field(ge=1)] | None = None
    block_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    slice_s: Annotated[float, Field(ge=0.02, allow_inf_nan=False)] | None = None
    seed: int | None = None
    clients: Annotated[int, Field(ge=1)] | None = None
    phase: Literal["minute", "cycle"] | None = None
    equivalence_margin: Annotated[float, Field(gt=0, lt=1)] | None = None


DESIGN_KEYS = tuple(sorted(DesignTable.model_fields))


class ExperimentFile(_Strict):
    """The whole file. The first variant, or the first value of every factor, is the baseline."""

    question: str
    workloads: Annotated[list[str], Field(min_length=1)]
    variants: dict[str, VariantTable] = Field(default_factory=dict)
    factors: Annotated[dict[str, list[str]], AfterValidator(_named_once)] = Field(default_factory=dict)
    design: DesignTable = Field(default_factory=DesignTable)


def read_experiment_file(path: Path) -> Study:
    """Return the study in a TOML file.

    Raises: ExperimentFileError with all mistakes; VariantError for an invalid setting, or one that may not
    be measured.
    """
    parsed = read_toml_file(
        path,
        ExperimentFile,
        ExperimentFileError,
        most_characters=_MOST_CHARACTERS,
        if_larger=_SPLIT,
    )
    return _study(path, parsed)


def _study(path: Path, parsed: ExperimentFile) -> Study:
    if bool(parsed.variants) == bool(parsed.factors):
        raise ExperimentFileError(
            f'"{path}" must have either [variants.NAME] tables or a [factors] table',
            hint='write [variants.default] and [variants.big] settings = { shared_buffers = "4GB" }, '
            'or [factors] shared_buffers = ["128MB", "4GB"]',
        )
    variants = (
        cross(parsed.factors)
        if parsed.factors
        else tuple(table.variant(name) for name, table in parsed.variants.items())
    )
    require_measurable(variants)
    changes = {name: value for name, value in parsed.design.model_dump().items() if value is not None}
    if parsed.design.slice_s is not None:
        changes["writing_slice_s"] = parsed.design.slice_s
    if parsed.design.phase is not None:
        changes["phase"] = PHASES[parsed.design.phase]
    return Study(
        name=path.stem,
        question=parsed.question,
        variants=variants,
        workloads=tuple(parsed.workloads),
        design=Design(**changes),
    )
