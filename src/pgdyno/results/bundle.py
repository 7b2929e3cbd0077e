"""Exports and verifies bundles. ``store/privacy/portable_facts.py`` lists the contents of a bundle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from pgdyno.base.errors import StorageError
from pgdyno.base.text import escaped_json, printable
from pgdyno.measure.blocks.histogram import decode
from pgdyno.measure.verdicts.consistency import contradictions, slice_contradictions
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.slices import Slice
from pgdyno.results.page import render_page
from pgdyno.results.report import drawing, file_name
from pgdyno.store.bundle import EXPERIMENT, Verification, check_bundle, pack_bundle, verified_lines
from pgdyno.store.documents import dump_experiment, experiment_schema, load_experiment
from pgdyno.store.experiments import Place
from pgdyno.store.files import write_whole
from pgdyno.store.privacy.portable_facts import portable
from pgdyno.store.series import FILE as HISTOGRAMS
from pgdyno.store.series import SLICES_FILE as SLICES
from pgdyno.store.series import (
    SlicesOf,
    blocks_csv,
    histograms_csv,
    intervals_csv,
    read_slices,
    slices_csv,
    steps_csv,
    with_histograms,
)
from pgdyno.store.signature import NAMESPACE, sign

_README = """\
pgdyno bundle of experiment {id}

{question}

report.html              the report: open it in a browser, it needs no network
experiment.json          the whole experiment: design, settings, every block, verdicts, facts
experiment.schema.json   the form of experiment.json (JSON Schema)
blocks.csv               every block: one line per variant and metric, with any failed transactions
{slices}{steps}SHA256SUMS               checksums of all other files
{signature}{parts}
Check it with either of:
  pgdyno bundle verify FILE.zip
  sha256sum --check SHA256SUMS      (in the unpacked directory)
{signed}
Passwords, connection strings, commands, paths of people and of the server, and names of hosts, roles and
databases were left out.
{query}Written by pgdyno {version}.
"""
_QUERY_LINES = """
The bundle contains the measured query verbatim, with its constants and the names of tables and columns: in
experiment.json (options.query, notes) and in report.html. Only what is listed above was removed from it,
where it was recognised. Read it before you pass the bundle on.

"""
_SQL_LINES = """
The bundle contains the SQL of variants verbatim, with its constants and the names of tables, columns and
indexes: in experiment.json (variants, question, schema_changes, notes), above and in report.html. Read it
before you pass the bundle on.

"""
_PARTS_LINE = """
This experiment combines others, which have their own bundles with blocks and series: {ids}.
"""
_SIGNATURE_LINE = "SHA256SUMS.sig           signature of SHA256SUMS\n"
_SIGNED_LINES = f"""\
Check the signer with a file of allowed signers (see ssh-keygen(1)) and either of:
  pgdyno bundle verify FILE.zip --signers SIGNERS
  ssh-keygen -Y verify -f SIGNERS -I NAME -n {NAMESPACE} -s SHA256SUMS.sig < SHA256SUMS
"""
_SLICES_LINES = """\
slices.csv               every turn of every variant
histograms.csv           counts of each turn, where recorded: transactions, and their latencies in
                         microseconds (HdrHistogram V2; HdrHistogram's libraries decode and merge it)
"""
_STEPS_LINES = """\
steps.csv                every step: counters, waits, clients, the benchmark's published fields
intervals.csv            every step over time: transactions by kind of client
"""


def export_bundle(
    experiment: Experiment,
    destination: Path | None = None,
    *,
    slices_of: SlicesOf | None = None,
    key: Path | None = None,
) -> Path:
    """Write a bundle and return its path: ``destination``, or a zip file in the current directory.

    ``slices_of`` reads the raw series from the store; without it they are left out. ``key`` signs the bundle.
    Raises: StorageError if it cannot be written or signed.
    """
    name = file_name(experiment.id)
    path = destination or Path(f"{name}.zip")
    files = _files(portable_experiment(experiment), slices_of, is_signed=key is not None)
    write_whole(path, pack_bundle(name, files, None if key is None else partial(sign, key=key)))
    return path


def portable_experiment(experiment: Experiment) -> Experiment:
    """Return the experiment as stored in a bundle: without data that identify people, hosts or networks."""
    return load_experiment(portable(dump_experiment(experiment)))


def part_ids(experiment: Experiment) -> tuple[str, ...]:
    """Return the ids of the experiments that this one combines. Its bundle lacks their blocks and series."""
    return tuple(part.experiment for part in experiment.parts)


def verify_bundle(path: Path, signers: Path | None = None) -> Verification:
    """Check a bundle's checksums, signature and schema, and the consistency of its experiment.

    ``problems`` of the result lists what is wrong.
    Raises: StorageError if the file does not exist or is not a bundle.
    """
    found = check_bundle(path, signers)
    if found.experiment is None:
        return found
    problems = (*found.problems, *contradictions(found.experiment))
    if not problems:  # only a consistent experiment can be compared with its slices
        slices = read_bundle_slices(path, found, found.experiment)
        series = (((place.workload, place.round, place.block), one) for place, one in slices)
        try:
            problems = slice_contradictions(found.experiment, series)
        except StorageError as error:
            problems = (f"{error.message}: {error.detail}",)
    return replace(found, problems=problems)


def read_bundle_slices(
    path: Path, found: Verification, experiment: Experiment
) -> Iterator[tuple[Place, Slice]]:
    """Yield the slices of a verified bundle, with their counts; nothing if it has no slices.

    Raises: StorageError naming the first invalid line.
    """
    slices, histograms = (verified_lines(path, found, name) for name in (SLICES, HISTOGRAMS))
    rows = iter(()) if slices is None else read_slices(slices, experiment)
    return rows if histograms is None else with_histograms(rows, histograms, experiment, decode)


def _files(experiment: Experiment, slices_of: SlicesOf | None, *, is_signed: bool) -> dict[str, bytes]:
    """Return the bundle's files by name; ``experiment`` is already portable."""
    has_steps = any(arm.step for block in experiment.blocks for arm in block.arms)
    with drawing(f'experiment "{experiment.id}"'):
        page = render_page(experiment)
    texts = {
        EXPERIMENT: _json(dump_experiment(experiment)),
        "experiment.schema.json": _json(experiment_schema()),
        "report.html": page,
        "blocks.csv": blocks_csv(experiment.blocks),
        "README.txt": _README.format(
            id=experiment.id,
            question=printable(experiment.question),
            version=printable(experiment.pgdyno_version),
            slices=_SLICES_LINES if slices_of else "",
            steps=_STEPS_LINES if has_steps else "",
            signature=_SIGNATURE_LINE if is_signed else "",
            query=(_QUERY_LINES if "query" in experiment.options else "")
            + (_SQL_LINES if experiment.schema_changes else ""),
            parts=_PARTS_LINE.format(ids=", ".join(part_ids(experiment))) if experiment.parts else "",
            signed=_SIGNED_LINES if is_signed else "",
        ),
    }
    if has_steps:
        texts |= {
            "steps.csv": steps_csv(experiment.blocks),
            "intervals.csv": intervals_csv(experiment.blocks),
        }
    if slices_of:
        names = [variant.name for variant in experiment.variants]
        texts[SLICES] = slices_csv(experiment.blocks, slices_of, names)
        if (histograms := histograms_csv(experiment.blocks, slices_of, names)) is not None:
            texts[HISTOGRAMS] = histograms
    return {name: text.encode() for name, text in texts.items()}


def _json(document: object) -> str:
    return escaped_json(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"
