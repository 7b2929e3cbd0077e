"""HTML files that need nothing else: no network, no scripts, no fonts. Pure.

A page forbids itself everything but its own style sheet (Content Security Policy with that sheet's hash), so
that nothing which came in with names, settings or log lines can ever load or run. Control characters in these
are replaced: people read pages with a pager as well.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pgdyno.base import numbers
from pgdyno.base.terminal import printable
from pgdyno.base.text import sentence

_STYLE = "page.css"


def render(template: str, **values: object) -> str:
    """Return a whole page; the template gets the style sheet and its hash besides the values."""
    environment = _environment()
    # As the page will have it: its hash is of that. A file of this package.
    style = Markup(printable(environment.get_template(_STYLE).render()))  # noqa: S704
    return environment.get_template(template).render(style=style, style_hash=_csp_hash(style), **values)


def _csp_hash(style: str) -> str:
    """Return the style sheet's hash as CSP level 3 §2.3.1 writes it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pgdyno.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_without_controls,
    )
    environment.filters.update(
        share=numbers.share, sentence=sentence, breakable=_breakable, lower_first=_lower_first
    )
    return environment


def _without_controls(value: object) -> object:
    if isinstance(value, Markup):
        return Markup(printable(str(value)))  # noqa: S704 — it loses characters, and gains none
    return printable(value) if isinstance(value, str) else value


def _lower_first(words: str) -> str:
    """Return words as they stand within a sentence."""
    return f"{words[:1].lower()}{words[1:]}"


def _breakable(name: str) -> Markup:
    """Allow a line break inside long names and paths where people would put it."""
    text = str(escape(name))
    for separator in "_/.":  # none of them in what escapes are made of
        text = text.replace(separator, f"{separator}<wbr>")
    return Markup(text)  # noqa: S704 — escaped above
