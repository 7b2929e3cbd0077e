"""The reference pages name everything that there is, and links lead somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from chores.reference import ROOT, broken_links, write

from pgdyno.cli.main import COMMANDS
from pgdyno.plan import levers
from pgdyno.studies.bundled import load as bundled_studies
from pgdyno.workload import bundled as workloads


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that they were written to."""
    directory = tmp_path_factory.mktemp("reference")
    write(directory)
    return directory


def test_every_entry_has_its_place(pages: Path) -> None:
    for page, names in (
        ("levers", [f"### {name}" for name in levers.load()]),
        ("commands", [f"## pgdyno {name}" for name in COMMANDS]),
        ("studies", [f"## {name}" for name in bundled_studies()]),
        ("workloads", [f"| `{name}` |" for name in workloads.load()]),
        ("errors", ["| PGD-201 | DurabilityError | 4 |", "| PGD-700 | StillChangedError | 3 |"]),
        ("meters", ["(`latency_ms_tail_mean`) | ms | lower | yes | the load |"]),
        ("settings", ["| `work_mem` | [work_mem](levers.md#work_mem) |", "- `fsync`"]),
    ):
        text = (pages / f"{page}.md").read_text()
        assert not [name for name in names if name not in text], page


def test_links_lead_somewhere(pages: Path) -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *pages.glob("*.md")]
    assert list(broken_links(documents)) == []


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A heading, with a comma\n")
    page = tmp_path / "page.md"
    links = "[a](there.md#a-heading-with-a-comma) [b](there.md#another)", "[c](nowhere.md) [d](https://x)"
    page.write_text("\n".join(links))
    assert list(broken_links([page])) == [
        f"{page}:1: there.md#another is not there",
        f"{page}:2: nowhere.md is not there",
    ]
