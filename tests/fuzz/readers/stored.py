"""Files of pgdyno's own that others may have written: bundles, series, journals, manifests, experiments."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import zlib
from functools import cache
from typing import Any

from tests.fuzz.mutation import mutated
from tests.fuzz.scratch import file_with
from tests.fuzz.words import refused_in_words
from tests.golden import synthetic

from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.ledger.receipt import receipt_document, receipt_of
from pgdyno.base.facts import Unknown
from pgdyno.builds.product.manifest import dump_manifest, parse_manifest
from pgdyno.measure.blocks import histogram
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.remote.answers import FactsAnswer, ProbeAnswer, WakeUpAnswer, parse_answer
from pgdyno.results.bundle import portable_experiment, verify_bundle
from pgdyno.store.bundle import EXPERIMENT, check_bundle, pack_bundle, verified_lines
from pgdyno.store.documents import dump_experiment, load_experiment
from pgdyno.store.experiment_file import read_experiment_file
from pgdyno.store.hosts_file import read_hosts_file
from pgdyno.store.series import read_slices, with_histograms

_INNER = struct.Struct(">iiiiqqd")


def check_experiment_file(data: bytes) -> None:
    """A TOML file is a study with variants, or all that is wrong with it."""
    path = file_with("experiment.toml", data)
    with refused_in_words():
        study = read_experiment_file(path)
        assert study.variants
        assert study.workloads
        assert 0 < study.design.block_s < float("inf")


def check_hosts_file(data: bytes) -> None:
    """A TOML file is a cell whose hosts ssh does not take for options, or all that is wrong with it."""
    with refused_in_words():
        cell = read_hosts_file(file_with("hosts.toml", data))
        assert cell.loads
        assert not any(host.destination.startswith("-") for host in cell.all)


def check_remote_answer(data: bytes) -> None:
    """A line of another host is one of the answers, with figures that can be computed with, or refused."""
    for kind in (FactsAnswer, WakeUpAnswer, ProbeAnswer):
        with refused_in_words():
            answer = parse_answer(data, kind)
            assert json.loads(json.dumps(answer.model_dump(), allow_nan=False)) == answer.model_dump()


def check_journal(data: bytes) -> None:
    """Lines with the checksum of what they say, as a writer of another version would write them."""
    content = b"\n".join(_with_checksum(line) for line in data.split(b"\n"))
    with refused_in_words():
        contents = read_journal(file_with("journal.jsonl", content).parent)
        for receipt in contents.receipts:
            document = receipt_document(receipt)
            assert receipt_document(receipt_of(json.loads(json.dumps(document)))) == document


def _with_checksum(line: bytes) -> bytes:
    try:
        entry = json.loads(line)
        digest = hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()[:16]
        return json.dumps({"sha256": digest, "entry": entry}).encode()
    except (ValueError, RecursionError):
        return line


def check_bundle_file(data: bytes) -> None:
    """Bytes as a zip file: what is wrong is said, and what is not listed as wrong can be read."""
    path = file_with("bundle.zip", data)
    with refused_in_words():
        found = check_bundle(path)
        assert found.problems or found.experiment is not None
        for file in found.files:
            list(verified_lines(path, found, file.name) or ())


def check_bundle_document(data: bytes) -> None:
    """A bundle whose checksums are right and whose experiment was changed: it is whole, or has problems."""
    document = json.dumps(mutated(_document(), data))
    path = file_with("bundle.zip", pack_bundle("a", {EXPERIMENT: document.encode()}))
    with refused_in_words():
        found = verify_bundle(path)
        assert found.problems or found.experiment is not None
        if found.experiment is not None:
            again = load_experiment(json.loads(json.dumps(dump_experiment(found.experiment))))
            assert found.problems or again == found.experiment


def check_slices(data: bytes) -> None:
    """Slices of an experiment are those of its blocks, with numbers that a store can hold."""
    experiment = _experiment()
    with refused_in_words():
        for place, one in read_slices(_lines(data), experiment):
            assert place.workload in experiment.workloads
            assert 0 <= one.start_ns < 1 << 63
            assert 0 <= one.end_ns < 1 << 63


def check_histograms_file(data: bytes) -> None:
    """Counts of slices that are not there are refused."""
    with refused_in_words():
        assert list(with_histograms([], _lines(data), _experiment(), histogram.decode)) == []


def _lines(data: bytes) -> list[str]:
    return data.decode(errors="replace").splitlines(keepends=True)


def check_histogram(data: bytes) -> None:
    """A text is a histogram or is refused; a histogram that was read is read again from its text."""
    for text in (data.decode("latin-1"), _as_histogram(data)):
        try:
            found = histogram.decode(text)
        except ValueError as error:
            assert str(error)
            continue
        again = histogram.decode(histogram.encode(found))
        assert again.indexes.tolist() == found.indexes.tolist()
        assert again.counts.tolist() == found.counts.tolist()


def _as_histogram(counts: bytes) -> str:
    """Return a text whose frame is right, so that the counts are read."""
    body = zlib.compress(_INNER.pack(0x1C849313, len(counts), 0, 3, 1, 2, 1.0) + counts, 1)
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(body)) + body).decode()


def check_manifest(data: bytes) -> None:
    """A manifest that was read is read again as it is written."""
    found = parse_manifest(data.decode(errors="replace"))
    if isinstance(found, Unknown):
        assert found.reason
        return
    again = parse_manifest(dump_manifest(found))
    assert again == found
    assert isinstance(found.summary + found.verification, str)


@cache
def _experiment() -> Experiment:
    return portable_experiment(synthetic.experiment())


@cache
def _document() -> str:
    """Return the experiment with its first blocks only, as text: it is read again for every input."""
    document: dict[str, Any] = json.loads(json.dumps(dump_experiment(_experiment())))
    return json.dumps({**document, "blocks": document["blocks"][:3]})
