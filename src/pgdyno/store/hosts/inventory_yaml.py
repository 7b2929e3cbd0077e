"""Ansible inventories in YAML: groups below groups, each with hosts, vars and children."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode

from pgdyno.store.hosts.inventory import ENCRYPTED, InventoryGroup

_MOST_GROUPS = 1000  # arbitrary; an alias may stand for groups that have it several times
_MOST_ENTRIES = 100_000  # arbitrary: hosts and variables of all groups, as often as aliases repeat them
_MOST_DEPTH = 100  # arbitrary
_MERGE, _MERGE_TAG = "<<", "tag:yaml.org,2002:merge"
_NESTS = {"[": 1, "{": 1, "]": -1, "}": -1}


class _TagsOfAnsible(SafeConstructor):
    """Reads values with tags like ``!vault`` as encrypted; refuses merge keys, and lists as names."""

    def flatten_mapping(self, node: MappingNode) -> None:
        """Look at the names before any is read: merges of merges, and lists of lists, grow with each level.

        Raises: ValueError.
        """
        if not all(isinstance(name, ScalarNode) for name, _ in node.value):
            raise ValueError("a list or a mapping has the place of a name")
        if any(name.value == _MERGE or name.tag == _MERGE_TAG for name, _ in node.value):
            raise ValueError(f'merge keys ("{_MERGE}") are not read: give the hosts a group with these vars')


_TagsOfAnsible.add_constructor(None, lambda _constructor, _node: ENCRYPTED)


def yaml_groups(text: str) -> dict[str, InventoryGroup]:
    """Return the groups of an inventory. Raises: ValueError for text that is none."""
    _require_shallow(text)
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _TagsOfAnsible
    try:
        document = yaml.load(text)
    except YAMLError as error:
        raise ValueError(" ".join(str(error).split("\n\n")[0].split())) from error
    groups: dict[str, InventoryGroup] = {}
    entries = 0
    for count, (name, body) in enumerate(_walk(document, "the inventory")):
        if count >= _MOST_GROUPS:
            raise ValueError(f"more than {_MOST_GROUPS} groups")
        group = groups.setdefault(name, InventoryGroup())
        for host, found in _mapping(body.get("hosts"), f'"hosts" of "{name}"').items():
            variables = _mapping(found, f'"{host}"')
            entries += 1 + len(variables)
            if entries > _MOST_ENTRIES:
                raise ValueError(f"more than {_MOST_ENTRIES} hosts and variables")
            group.hosts.setdefault(host, {}).update(variables)
        group.variables.update(_mapping(body.get("vars"), f'"vars" of "{name}"'))
        group.children.update(_mapping(body.get("children"), f'"children" of "{name}"'))
    return groups


def _require_shallow(text: str) -> None:
    """Raise ValueError for brackets within brackets, for which the parser takes time by the square."""
    depth = 0
    for character in text:
        depth = max(0, depth + _NESTS.get(character, 0))
        if depth > _MOST_DEPTH:
            raise ValueError(f"brackets are more than {_MOST_DEPTH} deep")


def _walk(groups: object, what: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield each group, those below it after it."""
    for name, found in _mapping(groups, what).items():
        body = _mapping(found, f'"{name}"')
        yield name, body
        yield from _walk(body.get("children"), f'"children" of "{name}"')


def _mapping(value: object, what: str) -> dict[str, object]:
    """Return a mapping; nothing is an empty one. Raises: ValueError for anything else."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is no mapping of names")  # noqa: TRY004 — of the file, not of a caller
    return {str(name): one for name, one in value.items()}
