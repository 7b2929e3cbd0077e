"""A network link for tests: a port that leads to another one, until it is cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from select import select

from tests.fix_servers import free_port

_PART_BYTES = 65536
_LOOK_S = 0.02


class CutLink:
    """Hands on what comes to its port. When it is cut, connections break and new ones are refused."""

    def __init__(self, target: int) -> None:
        """Lead to a port of this machine."""
        self.port = free_port()
        self._target = target
        self.mend()

    def mend(self) -> None:
        """Take connections, at the same port as before."""
        listening = socket.create_server(("127.0.0.1", self.port))
        self.port = int(listening.getsockname()[1])
        self._is_cut = threading.Event()
        self._threads: list[threading.Thread] = []
        self._start(self._accept, listening)

    def cut(self) -> None:
        """Break all connections."""
        self._is_cut.set()
        for one in self._threads:  # the first one adds others until it has ended
            one.join()

    def _start(self, do: Callable[[socket.socket], None], one: socket.socket) -> None:
        self._threads.append(threading.Thread(target=do, args=(one,)))
        self._threads[-1].start()

    def _accept(self, listening: socket.socket) -> None:
        with listening:
            while not self._is_cut.is_set():
                if select([listening], [], [], _LOOK_S)[0]:
                    near, _ = listening.accept()
                    self._start(self._lead, near)

    def _lead(self, near: socket.socket) -> None:
        with near, suppress(OSError), socket.create_connection(("127.0.0.1", self._target)) as far:
            while not self._is_cut.is_set():
                for one in select([near, far], [], [], _LOOK_S)[0]:
                    part = one.recv(_PART_BYTES)
                    if not part:
                        return
                    (far if one is near else near).sendall(part)


@contextmanager
def link_to(port: int) -> Iterator[CutLink]:
    """Provide a link to a port."""
    link = CutLink(port)
    try:
        yield link
    finally:
        link.cut()
