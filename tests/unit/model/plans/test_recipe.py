"""Recipes, as they are asked for."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.model.plans.recipe import Recipe, parse_recipe, patched, patches_in


@pytest.mark.parametrize(
    ("text", "parts", "flag", "target"),
    [
        ("o2", ("o2",), "-O2", None),
        ("o3", ("o3",), "-O3", None),
        ("native", ("native",), "-O3", "native"),
        ("lto", ("lto",), "-O3", "native"),
        ("PGO+LTO", ("lto", "pgo"), "-O3", "native"),
        ("o2+pgo", ("o2", "pgo"), "-O2", "native"),
        ("o2+unhardened", ("o2", "unhardened"), "-O2", None),
        ("hugetext+o2", ("o2", "hugetext"), "-O2", None),
        ("patched+o2", ("o2", "patched"), "-O2", None),
    ],
)
def test_a_recipe_is_made_of_parts(text: str, parts: tuple[str, ...], flag: str, target: str | None) -> None:
    recipe = parse_recipe(text)
    assert recipe == Recipe(parts)
    assert (recipe.optimisation, recipe.target) == (flag, target)


def test_the_order_of_parts_makes_no_difference() -> None:
    assert parse_recipe("pgo+lto").name == parse_recipe("lto+pgo").name == "lto+pgo"


def test_an_unknown_part_is_named_with_those_that_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        parse_recipe("pgo+fast")
    assert str(caught.value) == (
        '--recipe "pgo+fast": unknown part "fast"\n'
        "DETAIL:  parts are o2, o3, native, lto, pgo, bolt, hugetext, unhardened, patched, joined with +\n"
        "HINT:  for example pgo+lto+bolt, or auto for the strongest available here"
    )


@pytest.mark.parametrize("text", ["pgo+pgo", "o2+o3"])
def test_a_part_twice_or_two_levels_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="names a part twice, or two levels"):
        parse_recipe(text)


def test_patches_are_a_part_of_a_recipe_and_the_last_one() -> None:
    recipe = patched(parse_recipe("pgo+unhardened"))
    assert (recipe.name, recipe.target) == ("pgo+unhardened+patched", "native")
    assert patched(recipe) == recipe
    assert not parse_recipe("pgo+unhardened").is_patched


@pytest.mark.parametrize(
    ("configure", "patches"),
    [
        (
            "'--with-icu' 'PGDYNO_PATCHES=send-buffer,no-failing-recv' 'CC=gcc'",
            ("send-buffer", "no-failing-recv"),
        ),
        ("--with-icu PGDYNO_PATCHES=send-buffer", ("send-buffer",)),
        ("'--with-icu' 'CFLAGS=-DXPGDYNO_PATCHES=1'", ()),
        ("", ()),
    ],
)
def test_a_servers_configure_names_its_patches(configure: str, patches: tuple[str, ...]) -> None:
    assert patches_in(configure) == patches
