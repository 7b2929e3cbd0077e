"""Write reference pages from the code, and look whether links in the documentation lead anywhere.

python -m chores.reference [DIRECTORY]      docs/reference by default
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from pgdyno.base.errors import PgdynoError
from pgdyno.cli.main import COMMANDS, cli
from pgdyno.measure import meters
from pgdyno.model.experiments.metric import METRICS
from pgdyno.model.plans.plan import Layer
from pgdyno.plan import levers
from pgdyno.plan.engine.durability import LOCKED_SETTINGS
from pgdyno.store.documents import experiment_schema
from pgdyno.studies.bundled import load as bundled_studies
from pgdyno.workload import bundled as workloads

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def main() -> None:
    """Write the pages; exit with 1 if a link leads nowhere."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "reference"
    write(directory)
    broken = list(broken_links([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *directory.glob("*.md")]))
    print("\n".join(broken) or f"{directory}: {len(PAGES)} pages; every link leads somewhere")
    sys.exit(1 if broken else 0)


def write(directory: Path) -> None:
    """Write every page, and a list of them."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, (title, lines) in PAGES.items():
        (directory / f"{name}.md").write_text("\n".join([f"# {title}", "", *lines()]) + "\n")
    (directory / "experiment.schema.json").write_text(json.dumps(experiment_schema(), indent=2) + "\n")
    listed = [f"- [{title}]({name}.md)" for name, (title, _) in PAGES.items()]
    text = ["# Reference", "", *listed, "- [JSON Schema of an experiment](experiment.schema.json)", ""]
    (directory / "README.md").write_text("\n".join(text))


def _levers() -> Iterator[str]:
    known = levers.load()
    for layer in Layer:
        names = sorted(name for name, module in known.items() if module.LEVER.layer is layer)
        if names:
            yield from (f"## {layer.value.capitalize()}", "")
        for name in names:
            lever = known[name].LEVER
            touches = ", ".join(f"`{one}`" for one in (*lever.settings, *lever.files))
            page = known[name].page.splitlines()
            yield from (f"### {name}", "", f"{lever.title}. *{lever.maturity}*, risk: {lever.risk}.", "")
            yield from (f"Changes: {touches or 'nothing, it reports'}", "", "```", *page, "```", "")


def _settings() -> Iterator[str]:
    owners = [
        (key, name)
        for name, module in levers.load().items()
        for key in (*module.LEVER.settings, *module.LEVER.files)
    ]
    yield from ("| setting or file | lever |", "|---|---|")
    yield from (f"| `{key}` | [{name}](levers.md#{name}) |" for key, name in sorted(owners))
    yield from ("", "Never planned, because they could lose committed data:", "")
    yield from (f"- `{name}`" for name in sorted(LOCKED_SETTINGS))


def _commands() -> Iterator[str]:
    context = click.Context(cli, info_name="pgdyno", max_content_width=100)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None  # noqa: S101 — COMMANDS are those that there are
        yield from _command(command, click.Context(command, parent=context, info_name=name))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield from (f"## {context.command_path}", "", "```", *command.get_help(context).splitlines(), "```", "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from _command(found, click.Context(found, parent=context, info_name=name))


def _errors() -> Iterator[str]:
    yield from ("| code | error | exit code | meaning |", "|---|---|---:|---|")
    found = sorted(_kinds(PgdynoError), key=lambda kind: kind.code)
    yield from (
        f"| {kind.code} | {kind.__name__} | {kind.exit_code} | {(kind.__doc__ or '').splitlines()[0]} |"
        for kind in found
    )


def _kinds(kind: type[PgdynoError]) -> Iterator[type[PgdynoError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _kinds(one)


def _meters() -> Iterator[str]:
    sources = {module.METER.metric: module.METER.source for module in meters.load()}
    yield from ("| metric | unit | better | verdict | source |", "|---|---|---|---|---|")
    for metric in METRICS.values():
        source = sources.get(metric.name, "the load")
        verdict = "yes" if metric.has_verdict else ""
        yield f"| {metric.title} (`{metric.name}`) | {metric.unit} | {metric.better} | {verdict} | {source} |"


def _workloads() -> Iterator[str]:
    yield from ("| workload | what it does | data set |", "|---|---|---|")
    for name, workload in sorted(workloads.load().items()):
        data = workload.data_set
        yield f"| `{name}` | {workload.title} | {data.name}, {data.size_bytes / 1e6:,.0f} MB |"


def _studies() -> Iterator[str]:
    for name, study in bundled_studies().items():
        yield from (f"## {name}", "", f"{study.title[:1].upper()}{study.title[1:]}.", "")
        yield from (f"- `--{option.name}`: {option.help}" for option in study.options)
        yield ""


PAGES: dict[str, tuple[str, Callable[[], Iterator[str]]]] = {
    "levers": ("Levers", _levers),
    "settings": ("Settings and kernel files", _settings),
    "commands": ("Commands", _commands),
    "studies": ("Studies", _studies),
    "workloads": ("Workloads", _workloads),
    "meters": ("Metrics and meters", _meters),
    "errors": ("Errors", _errors),
}


def broken_links(files: list[Path]) -> Iterator[str]:
    """Yield every link to a file or heading that is not there; links elsewhere are not followed."""
    for path in sorted(set(files)):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for match in LINK.finditer(line):
                target = match.group(1) or match.group(2)
                if not _leads_somewhere(path, target):
                    yield f"{path}:{number}: {target} is not there"


def _leads_somewhere(path: Path, target: str) -> bool:
    if "://" in target or target.startswith("mailto:"):
        return True
    place, _, heading = target.partition("#")
    file = (path.parent / place).resolve() if place else path
    if not heading or file.suffix != ".md" or not file.exists():
        return file.exists()
    return heading in {_anchor(line) for line in file.read_text().splitlines() if line.startswith("#")}


def _anchor(line: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")


if __name__ == "__main__":
    main()
