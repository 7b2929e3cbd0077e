"""A TOML file of a user's as a form of pydantic's, or every mistake in it at once."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from pgdyno.base.errors import UsageError
from pgdyno.store.toml_mistakes import mistakes
from pgdyno.store.toml_text import toml_text

_Form = TypeVar("_Form", bound=BaseModel)


def read_toml_file(
    path: Path,
    form: type[_Form],
    kind: type[UsageError],
    *,
    most_characters: int,
    if_larger: str,
    if_unreadable: str | None = None,
) -> _Form:
    """Return a file's contents in a form. ``if_larger`` and ``if_unreadable`` are hints.

    Raises: an error of this ``kind`` listing everything that is wrong with it.
    """
    try:
        return form.model_validate(tomllib.loads(toml_text(path, most_characters, kind, if_larger)))
    except OSError as error:
        raise kind(f'could not read "{path}"', detail=str(error.strerror), hint=if_unreadable) from error
    except ValidationError as error:
        raise mistakes(path, error, kind) from error
    except (ValueError, RecursionError) as error:  # TOML's and UTF-8's, a number of 5,000 digits, …
        raise kind(f'"{path}" is not valid TOML', detail=str(error)) from error
