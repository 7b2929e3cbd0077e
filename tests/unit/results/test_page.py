"""The page: complete, escaped, and forbidding itself everything but its own style sheet."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from tests.golden.synthetic import READ_ONLY, experiment

from pgdyno.model.experiments.experiment import Experiment, SettingDifference
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.plans.plan import Finding
from pgdyno.model.variants.variant import Variant
from pgdyno.results.page import render_page

VOID_ELEMENTS = {"meta", "link", "br", "wbr", "img", "input", "hr"}
HOSTILE = '<script>alert("x")</script>&"\'><img src=//evil.example onerror=y>{{7*7}}'


class Outline(HTMLParser):
    """What is in a page: elements with their attributes, texts, headings, and nesting errors."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.errors: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID_ELEMENTS:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.errors.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All text with spaces made equal, without the style sheet."""
        return re.sub(r"\s+", " ", " ".join(t for t in self.texts if "{" not in t or "}" not in t))

    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def everywhere(value: str) -> Experiment:
    """Return an experiment with one text in every place that is filled from outside."""
    base = experiment()
    assert base.plan is not None
    line = base.plan.lines[0]
    return replace(
        base,
        name=value,
        question=value,
        variants=(Variant("default"), Variant("plan", {"cluster_name": value}, server=value)),
        blocks=tuple(replace(b, void=value) if b.void else b for b in base.blocks),
        verdicts=tuple(replace(v, reason=value, checks={value: value}) for v in base.verdicts),
        settings=(SettingDifference("plan", value, value, value),),
        plan=replace(
            base.plan,
            lines=(replace(line, reason=value, evidence=value, undo=value),),
            findings=(Finding("danger", value, value),),
        ),
        host={"hostname": {"value": value, "source": value}, value: {"unknown": value, "source": value}},
        server={"settings": {value: {"setting": value, "unit": value, "source": value, "sourcefile": value}}},
        notes=(value, f"not durable {value}"),
    )


def test_page_is_well_formed_and_says_what_matters_first() -> None:
    outline = Outline(render_page(experiment()))
    assert outline.errors == []
    text = outline.text
    first = text.index("Is the planned configuration faster than the default one?", 100)
    answer = text.index("Better on sysbench-read-only; no difference that matters on sysbench-read-write.")
    card = text.index("20.0 % more transactions per second 95 % interval +18.5 % … +21.5 %")
    assert first < answer < card < text.index("Every trial")


def test_page_shows_every_part_of_the_experiment() -> None:
    text = Outline(render_page(experiment())).text
    for part in (
        "1,484 → 1,779 transactions/s",
        "round 4, block 2: 14.2% of the CPU time was stolen by the hypervisor (limit 10%)",
        "differs from the requested value",
        "checkpoints came every 38 s under load",
        "work_mem = 4MB, reload",
        "6.9 GB worst case, 69 % of the limit",
        "the pool is empty: vm.nr_hugepages is 0",
        "Example CPU 9000 @ 2.60GHz",
        "unknown: no such file: frequency is not visible to this virtual machine",
        "PostgreSQL 18.6 on x86_64-pc-linux-gnu",
        "Noise floor: two identical variants compared with each other on this host",
        "Time-sliced duet.",
        "above 10 %",
        "from a snapshot, before every round",
        "20261121",
        "pgdyno revert --all",
        "--workload sysbench-read-only --workload sysbench-read-write --embedded --scale 4 --blocks 12",
    ):
        assert part in text, part


def test_policy_allows_the_style_sheet_by_its_hash_and_nothing_else() -> None:
    page = render_page(experiment())
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policies = [m["content"] for m in Outline(page).of("meta") if m.get("http-equiv")]
    assert policies == [
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    ]


def test_page_loads_nothing_and_runs_nothing() -> None:
    page = render_page(experiment())
    outline = Outline(page)
    assert outline.tags().isdisjoint({"script", "link", "img", "iframe", "object", "embed", "form", "base"})
    for _, attributes in outline.elements:
        assert not any(name.startswith("on") or name in {"src", "style", "srcset"} for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert not re.search(r"url\(|@import|https?://", page)


@pytest.mark.parametrize("value", [HOSTILE, "]]></svg></style><p id=evil>", "\u202eevil\u0000\x1b[31m"])
def test_hostile_texts_stay_texts_wherever_they_come_from(value: str) -> None:
    harmless = Outline(render_page(everywhere("x")))
    hostile = Outline(render_page(everywhere(value)))
    assert hostile.errors == []
    assert hostile.tags() == harmless.tags()
    assert not any("evil" in (a.get("id") or "") for _, a in hostile.elements if "id" in a)
    assert not any(name.startswith("on") for _, attributes in hostile.elements for name in attributes)


def test_texts_are_never_taken_for_templates() -> None:
    assert "{{7*7}}" in render_page(everywhere("{{7*7}}"))


def test_every_identity_is_unique_and_every_link_leads_somewhere() -> None:
    outline = Outline(render_page(experiment()))
    identities = [a["id"] for _, a in outline.elements if "id" in a]
    assert len(identities) == len(set(identities))
    for link in outline.of("a"):
        assert (link["href"] or "").lstrip("#") in identities


def test_every_table_has_a_caption_and_its_headers_a_scope() -> None:
    outline = Outline(render_page(experiment()))
    assert len(outline.of("table")) == len(outline.of("caption")) > 10
    assert all(header.get("scope") in {"col", "row"} for header in outline.of("th"))


def test_headings_descend_one_level_at_a_time() -> None:
    levels = [
        int(tag[1]) for tag, _ in Outline(render_page(experiment())).elements if re.fullmatch(r"h\d", tag)
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_every_chart_is_followed_by_the_numbers_behind_it() -> None:
    page = render_page(experiment())
    figures = page.split("<figure>")[1:]
    assert len(figures) > 5
    assert all("<table" in figure for figure in figures)


def test_interrupted_experiment_is_marked_and_shows_what_there_is() -> None:
    base = experiment()
    partial = replace(base, is_complete=False, verdicts=(), blocks=base.blocks[:3], noise_floor=())
    outline = Outline(render_page(partial))
    assert outline.errors == []
    for part in (
        "INTERRUPTED",
        "There is no verdict yet",
        "geometric mean of 2 blocks",
        "The noise floor was not measured in this experiment.",
    ):
        assert part in outline.text, part


def test_experiment_that_has_nothing_yet_still_renders() -> None:
    base = experiment()
    empty = Experiment(
        id="e",
        name="n",
        question="?",
        created="2026-11-21T09:30:12+00:00",
        pgdyno_version="0.1.0",
        design=base.design,
        variants=(),
        baseline="default",
        workloads=(READ_ONLY,),
        reset_policies={},
    )
    outline = Outline(render_page(empty))
    assert outline.errors == []
    for part in (
        "Nothing was measured for this workload.",
        "No block was measured.",
        "No facts about the host",
    ):
        assert part in outline.text, part


def test_variant_alone_is_shown_with_its_figures_instead_of_a_verdict() -> None:
    base = experiment()
    alone = replace(
        base,
        variants=base.variants[:1],
        verdicts=(),
        plan=None,
        blocks=tuple(replace(block, arms=block.arms[:1]) for block in base.blocks),
    )
    text = Outline(render_page(alone)).text
    assert "There is no verdict: nothing was compared." in text
    assert "1,484 transactions/s geometric mean of 11 blocks, 1,404 … 1,569" in text
    assert (
        "pgdyno bench sysbench-read-only sysbench-read-write --variant default --embedded --scale 4" in text
    )


def test_variant_that_is_not_durable_carries_a_loud_mark_once() -> None:
    base = experiment()
    unsafe = replace(
        base,
        variants=(Variant("default"), Variant("plan", {"fsync": "off"})),
        notes=("NOT DURABLE: plan: fsync=off", *base.notes),
    )
    text = Outline(render_page(unsafe)).text
    assert text.count("NOT DURABLE") == 1
    assert "This variant can lose committed data in a crash: fsync=off ." in text
    assert "measured from an experiment file only" in text


def test_server_that_really_ran_without_durability_is_marked_even_if_nobody_asked_for_it() -> None:
    base = experiment()
    found = replace(base, settings=(SettingDifference("default", "fsync", "on", "off"),))
    assert "NOT DURABLE: default" in Outline(render_page(found)).text


def test_what_an_emulator_made_is_marked_before_any_figure() -> None:
    text = Outline(render_page(replace(experiment(), emulated_machine="aarch64"))).text
    assert text.count("EMULATED: the server was built for aarch64 and ran emulated") == 1
    assert text.index("EMULATED") < text.index("Throughput")


def test_loud_note_stands_apart_from_the_others() -> None:
    page = render_page(replace(experiment(), notes=("measured on a server that is NOT DURABLE", "harmless")))
    assert '<div class="mark-loud" role="note"><p>measured on a server that is NOT DURABLE</p></div>' in page
    assert page.count("NOT DURABLE") == 1


def test_several_confounded_pairs_are_folded_so_that_they_do_not_hide_the_verdicts() -> None:
    page = render_page(
        replace(experiment(), notes=("CONFOUNDED: a and b differ", "CONFOUNDED: a and c differ"))
    )
    assert page.count("<strong>CONFOUNDED</strong>: 2 pairs of builds differ in more than their version") == 1
    assert page.count("<p>a and b differ</p>") == page.count("<p>a and c differ</p>") == 1
    assert '<div class="mark-loud" role="note"><p>CONFOUNDED' not in page


def test_machine_that_was_too_noisy_is_said_loudly_and_the_verdicts_say_why_they_are_none() -> None:
    base = experiment()
    noisy = replace(
        base,
        notes=("machine too noisy: 100% of the blocks are void (limit 30%); measuring stopped early",),
        verdicts=tuple(
            replace(v, effect=None, interval=None, decision=Decision.INCONCLUSIVE, reason="no block counts")
            for v in base.verdicts
        ),
    )
    page = render_page(noisy)
    assert '<div class="mark-loud" role="note"><p>machine too noisy: 100% of the blocks are void' in page
    text = Outline(page).text
    assert "Not decided for throughput" in text
    assert "All verdicts and why" in text


def test_danger_found_on_the_server_stands_on_the_first_screen() -> None:
    base = experiment()
    assert base.plan is not None
    finding = Finding("danger", "fsync is off", "switch it on: ALTER SYSTEM SET fsync = on")
    text = Outline(render_page(replace(base, plan=replace(base.plan, findings=(finding,))))).text
    shown = text.index("FOUND ON THIS SERVER fsync is off switch it on: ALTER SYSTEM SET fsync = on")
    assert shown < text.index("more transactions per second")


def test_more_variants_than_a_card_can_hold_get_a_line_each() -> None:
    base = experiment()
    names = ("plan", "second", "third", "fourth")
    many = replace(
        base,
        variants=(Variant("default"), *map(Variant, names)),
        verdicts=tuple(replace(v, variant=name) for name in names for v in base.verdicts),
        blocks=tuple(
            replace(b, arms=(b.arms[0], *(replace(b.arms[1], variant=name) for name in names)))
            for b in base.blocks
        ),
    )
    outline = Outline(render_page(many))
    assert outline.errors == []
    assert [a["class"] for a in outline.of("article")] == ["card compact", "card compact"]
    assert "Throughput · sysbench-read-only" in outline.text
    assert (
        "More of sysbench-read-only (13 charts)" in outline.text
    )  # 1 + 2 metrics × 4 variants + 4 of values


def test_rendering_twice_gives_the_same_bytes() -> None:
    assert render_page(experiment()) == render_page(experiment())


def test_a_patched_server_is_marked_before_any_figure() -> None:
    note = "PATCHED: PostgreSQL 18.6 (built-1) is not PostgreSQL as it was released: send-buffer"
    page = Outline(render_page(replace(experiment(), notes=(note,)))).text
    assert page.count(note) == 1
    assert page.index(note) < page.index("Throughput")
