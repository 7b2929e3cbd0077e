"""Write the file of a new lever: it passes the tests, plans nothing yet, and says what to fill in.

python -m chores.new_lever NAME SETTING
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from pgdyno.plan.levers import application
from pgdyno.plan.levers._contract import HEADINGS

ASKED = {
    "What it does": "Which value the setting gets, and from which facts.",
    "Why it helps": "What the server does less of, or sooner.",
    "When it hurts": "The workload that it makes slower, and what to do there.",
    "How it is verified": "pg_settings of the running server, and what else shows it.",
    "How it is undone": "The value found is restored; takes a reload, or a restart.",
    "Evidence": "A figure with its source; our own, with the bundle in docs/results.",
    "References": "https://www.postgresql.org/docs/current/…",
}
CODE = '''
from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk

LEVER = Lever(
    name="{name}",
    title="{title}",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    settings=("{setting}",),
)


def plan(ctx: PlanContext) -> Planned:
    """Leave it, until there is a rule: give ``LEVER.propose`` another value than the one found.

    ``plan/levers/_contract.py`` has all that a rule may use. Compare memory in bytes:
    ``ctx.settings.size_bytes``.
    Levers that plan a setting read here go into ``order_after``, with the reason.
    """
    found = ctx.settings.text("{setting}")
    line = LEVER.propose(ctx, "{setting}", found, reason="fill in", evidence="fill in")
    return LEVER.planned([line], "no rule yet")
'''

USAGE = "usage: make new-lever NAME=wal_compression SETTING=wal_compression"
NEXT = """\
  .venv/bin/ruff format src
  .venv/bin/python -m pytest tests/contract/test_levers.py
  .venv/bin/pgdyno levers {name} --embedded     # its page, and its state on a server
  .venv/bin/pgdyno advise --embedded            # whether it plans a change
The test of its rule, and its measurement: see CONTRIBUTING.md."""


def main() -> None:
    """Write the file, and say where it is and what comes next."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="the thing, not the advice: wal_compression")
    parser.add_argument("setting", help="the setting of PostgreSQL that it plans")
    asked = parser.parse_args()
    for what, name in (("lever", asked.name), ("setting", asked.setting)):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            sys.exit(f'"{name}" is not the name of a {what}: lower case letters, digits and "_"\n{USAGE}')
    path = Path(application.__path__[0]) / f"{asked.name}.py"
    if path.exists():
        sys.exit(f"lever {asked.name} exists already: {path}")
    path.write_text(text_of(asked.name, asked.setting))
    print(f"{path}\nFill in the docstring and plan(). Then:\n{NEXT.format(name=asked.name)}")


def text_of(name: str, setting: str) -> str:
    """Return the file's text."""
    title = f"{setting}: fill in what it is for"
    sections = (f"{heading}:\n    {ASKED[heading]}\n" for heading in HEADINGS)
    docstring = f'"""{name}: fill in the rule, in one line.\n\n' + "\n".join(sections) + '"""\n'
    return docstring + CODE.format(name=name, title=title, setting=setting)


if __name__ == "__main__":
    main()
