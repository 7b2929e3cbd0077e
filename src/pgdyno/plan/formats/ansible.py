"""An Ansible playbook that installs a plan as files, using only modules of ansible-core.

The files are those of the formats conf, sysctl and udev, and one for tmpfiles.d. Their text, and every other
text from the server, is marked unsafe, which in Ansible means: not a template. Sources: Ansible's
documentation, "Unsafe or raw strings", ansible.builtin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pgdyno.base.text import counted
from pgdyno.model.plans.plan import Plan, PlanLine
from pgdyno.plan.formats import conf, sysctl, udev
from pgdyno.plan.formats._contract import (
    Format,
    comments,
    explanation,
    host_lines,
    setting_lines,
    summary,
)
from pgdyno.plan.formats._places import TMPFILES_PATH, Place, elsewhere, former_value, lines_in, tmpfiles_line
from pgdyno.plan.formats._yaml import document, quoted, untemplated, verbatim
from pgdyno.plan.formats.systemd import configuration_file, unit_of
from pgdyno.postgres.server import Server

FORMAT = Format("ansible", "Ansible playbook")
_HERE = (Place.SYSCTL, Place.UDEV, Place.TMPFILES)
_SNIPPET = "pgdyno.conf"
_RELOAD, _RESTART = "reload the server", "restart the server"
_SYSCTL, _UDEV, _TMPFILES = "load the sysctls", "apply the udev rules", "write the kernel files"

Task = dict[str, Any]


def render(plan: Plan, server: Server) -> str:
    """Return the playbook."""
    head = [
        f"pgdyno: {summary(plan, server)}; {counted(len(host_lines(plan)), 'change')} of the machine.",
        "Run: ansible-playbook FILE --check --diff, then without --check. Only ansible-core is needed.",
        "For other hosts: -i INVENTORY -e target=HOSTS. All get the same values.",
        "Changes that need a server restart stay pending; with -e restart=true the playbook restarts it.",
        "Undo: delete its files and its line in postgresql.conf, reload or restart the server, then restart",
        "the machine, or write the former values named in each file.",
        "Limits of the server's unit are not included: --format systemd.",
    ]
    play = {
        "name": untemplated(f"settings for PostgreSQL {server.version}, as planned by pgdyno"),
        "hosts": quoted("{{ target | default('localhost') }}"),
        "become": True,
        "gather_facts": False,
        "vars": {
            "postgresql_conf": untemplated(configuration_file(server)),
            "postgresql_unit": untemplated(unit_of(server)),
            "restart": False,
        },
        "tasks": [*_settings(plan, server), *_machine(plan)],
        "handlers": list(_handlers(plan)),
    }
    return document(head, [play], elsewhere(plan, lines_in(plan, *_HERE), settings=False))


def _settings(plan: Plan, server: Server) -> Iterator[Task]:
    if not setting_lines(plan):
        return
    yield {
        "name": "write PostgreSQL settings to a separate file",
        "ansible.builtin.copy": {
            "dest": quoted("{{ postgresql_conf | dirname }}/" + _SNIPPET),
            "content": verbatim(conf.render(plan, server)),
            "mode": quoted("0644"),
        },
        "notify": [_RELOAD, _RESTART],
    }
    yield {
        "name": "include this file last in postgresql.conf",
        "ansible.builtin.lineinfile": {
            "path": quoted("{{ postgresql_conf }}"),
            "line": quoted(f"include '{_SNIPPET}'"),
        },
        "notify": [_RELOAD, _RESTART],
    }


def _machine(plan: Plan) -> Iterator[Task]:
    if lines_in(plan, Place.SYSCTL):
        yield _file("sysctls", sysctl.PATH, sysctl.settings(plan), _SYSCTL)
    if lines_in(plan, Place.TMPFILES):
        yield _file("other kernel files", TMPFILES_PATH, _tmpfiles(plan), _TMPFILES)
    if lines_in(plan, Place.UDEV):
        yield _file("disks and network interfaces", udev.PATH, udev.rules(plan), _UDEV)


def _file(name: str, path: str, text: str, handler: str) -> Task:
    content = verbatim(f"# Written by a pgdyno playbook.\n\n{text}\n")
    copy = {"dest": quoted(path), "content": content, "mode": quoted("0644")}
    return {"name": name, "ansible.builtin.copy": copy, "notify": [handler]}


def _tmpfiles(plan: Plan) -> str:
    return "\n\n".join(map(_block, lines_in(plan, Place.TMPFILES)))


def _block(line: PlanLine) -> str:
    undo = f"delete this file; until the next restart: {former_value(line.change)}"
    return f"{comments(explanation(line, undo))}\n{tmpfiles_line(line.change)}"


def _handlers(plan: Plan) -> Iterator[Task]:
    """Yield the handlers that activate the files; none runs with --check."""
    commands = [
        (Place.SYSCTL, _SYSCTL, ["sysctl -p " + sysctl.PATH]),
        (Place.TMPFILES, _TMPFILES, ["systemd-tmpfiles --create " + TMPFILES_PATH]),
        (Place.UDEV, _UDEV, [udev.RELOAD, udev.TRIGGER]),
    ]
    for place, handler, steps in commands:
        if lines_in(plan, place):
            for step in steps:
                yield {"name": step, "listen": handler, "ansible.builtin.command": {"argv": step.split()}}
    if setting_lines(plan):
        unit = quoted("{{ postgresql_unit }}")
        yield {
            "name": _RELOAD,
            "ansible.builtin.systemd": {"name": unit, "state": "reloaded"},
            "when": ["not restart | bool", "not ansible_check_mode"],
        }
        yield {
            "name": _RESTART,
            "ansible.builtin.systemd": {"name": unit, "state": "restarted"},
            "when": ["restart | bool", "not ansible_check_mode"],
        }
