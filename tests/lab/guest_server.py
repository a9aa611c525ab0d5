# SPDX-License-Identifier: GPL-2.0-only
"""A guest that outlives the command that booted it, shared by any number of processes.

I/O: a background process that holds the guest and relays requests from its own unix socket; a
link `guests/NAME` in the cache folder leads to the guest's folder.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import socket
import sys
import threading
from pathlib import Path

from tests.lab import host
from tests.lab.bcache_stack import BcacheStack
from tests.lab.channel import Channel, Message
from tests.lab.downloads import cache_dir
from tests.lab.errors import LabError, LostGuest
from tests.lab.guest import CHECKOUT, START_TIMEOUT_S, Guest
from tests.lab.session import Session, why_lost
from tests.lab.wait import wait_until

DEFAULT_NAME = "default"
_SOCKET = "keeper"

# Held on to: Python warns of a child that runs on when its handle is dropped.
_started: list[host.Running] = []


def link_of(name: str) -> Path:
    """The link that leads to a kept guest's folder."""
    guests = cache_dir() / "guests"
    guests.mkdir(exist_ok=True)
    return guests / name


def is_up(name: str = DEFAULT_NAME) -> bool:
    """Whether a kept guest answers."""
    try:
        attach(name).close()
    except LabError:
        return False
    return True


def attach(name: str = DEFAULT_NAME) -> Session:
    """A session with a kept guest; LostGuest if there is none.

    What the session's owner has spawned ends with it.
    """
    return attach_to(link_of(name).resolve())


def attach_to(folder: Path) -> Session:
    """A session with the kept guest whose folder this is."""
    channel = Channel.connect(folder / _SOCKET, lambda: False, lambda: why_lost(folder))
    channel.hello(30)
    return Session(channel, folder / "share", folder)


def bring_up(name: str, scheduler: str, cache_mode: str, *, with_stack: bool) -> None:
    """Boot a guest that stays; returns once it can be attached to."""
    if is_up(name):
        raise LabError(f"guest {name} is up already (down ends it)")
    log = cache_dir() / f"keeper-{name}.log"
    log.write_bytes(b"")
    command = [sys.executable, "-m", "tests.lab.guest_server", name, scheduler, cache_mode]
    process = host.start([*command, str(int(with_stack))], log, cwd=CHECKOUT, outlive=True)
    _started.append(process)

    def ready() -> bool:
        if process.poll() is not None:
            raise LostGuest(f"guest {name} did not come up:\n{log.read_text(errors='replace')}")
        return is_up(name)

    wait_until(ready, START_TIMEOUT_S, f"guest {name}")


def take_down(name: str = DEFAULT_NAME) -> None:
    """End a kept guest and its relay process."""
    with contextlib.suppress(LostGuest), contextlib.closing(attach(name)) as session:
        session.channel.send("power_off")
        wait_until(lambda: not is_up(name), 30, f"guest {name} to end")
    link_of(name).unlink(missing_ok=True)


class GuestRelay:
    """Relays between many clients and one guest."""

    def __init__(self, guest: Guest) -> None:
        self._upstream = guest.channel
        self._numbers = itertools.count(1)
        self._clients: dict[str, socket.socket] = {}
        self._lock = threading.Lock()
        self._server = socket.socket(socket.AF_UNIX)
        self._path = guest.folder / _SOCKET
        self._server.bind(str(self._path))
        self._server.listen()
        self.ended = threading.Event()
        self._upstream.relay(self._downstream)

    def serve(self) -> None:
        """Relay until the guest ends."""
        threading.Thread(target=self._accept, daemon=True).start()
        self.ended.wait()

    def close(self) -> None:
        """Hang up on all clients; the guest goes on."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._path.unlink()
        with self._lock:
            for wire in self._clients.values():
                wire.shutdown(socket.SHUT_RDWR)
        self.ended.set()

    def _accept(self) -> None:
        while True:
            try:
                wire, _ = self._server.accept()
            except OSError:
                return  # closed
            name = f"c{next(self._numbers)}."
            with self._lock:
                self._clients[name] = wire
            self._send(name, {"id": "hello"})
            threading.Thread(target=self._client, args=(name, wire), daemon=True).start()

    def _client(self, name: str, wire: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError, LostGuest), wire.makefile("rb") as lines:
            for line in lines:
                request = json.loads(line)
                self._upstream.forward({**request, "id": name + request["id"]})
        with self._lock:
            self._clients.pop(name, None)
        wire.close()
        with contextlib.suppress(LostGuest):
            self._upstream.call("release", prefix=name)

    def _downstream(self, reply: Message | None) -> None:
        if reply is None:
            self.ended.set()
            return
        name, dot, own_id = reply["id"].partition(".")
        self._send(name + dot, {**reply, "id": own_id})

    def _send(self, name: str, reply: Message) -> None:
        # One lock for all: replies are small, and a client that does not read hurts no product.
        with self._lock, contextlib.suppress(OSError):
            if wire := self._clients.get(name):
                wire.sendall(json.dumps(reply).encode() + b"\n")


def main(name: str, scheduler: str, cache_mode: str, with_stack: str) -> None:
    """The background process: boot, relay, clean up."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with Guest() as guest:
        if int(with_stack):
            # Never left: it ends with the guest, and a test on the same devices replaces it.
            BcacheStack(guest, scheduler=scheduler, cache_mode=cache_mode).__enter__()
        keeper = GuestRelay(guest)
        link = link_of(name)
        link.unlink(missing_ok=True)
        link.symlink_to(guest.folder)
        keeper.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
