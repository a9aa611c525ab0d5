# SPDX-License-Identifier: GPL-2.0-only
"""ebbgate-web over a real history: asked in this process, or as a process of its own.

I/O: databases and sockets of the test. Neither needs a client that only one set of packages has.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

import fastjsonschema  # type: ignore[import-untyped]
import uvicorn
from starlette.types import Message

from ebbgate.config.settings import Config
from ebbgate.config.web_settings import WebSettings
from ebbgate.store.db import Store
from ebbgate.web import server
from ebbgate.web.app import Api
from tests.control_harness import AcceptedRequests, Decide, answering
from tests.fake_sysfs import fake_bcache
from tests.house_rules import REPO
from tests.programs import ENDS_WITH_STARTER

TOKEN = "a-token-that-nobody-would-ever-guess"
DEADLINE_S = 20.0
NOW_S = 1_800_003_600
DOCUMENT = json.loads((REPO / "webui/openapi.json").read_text())
HOST = {"host": "localhost:8380"}
JSON = {"content-type": "application/json"}
_PASSED_ON = ("PATH", "PYTHONPYCACHEPREFIX")
RIGHT = {"authorization": f"Bearer {TOKEN}"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; names of headers in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        """Of an error: its one shape, whole."""
        document = self.json
        assert set(document) == {"error"}, document
        assert set(document["error"]) == {"code", "message", "hint", "place"}
        return document["error"]


def add_page(folder: Path, name: str = "index.html", content: bytes = b"the page") -> None:
    """Put a built page where a harness of this folder looks for pages when it is made."""
    (folder / "ui").mkdir(exist_ok=True)
    (folder / "ui" / name).write_bytes(content)


class WebHarness:
    """The application in this process, with a clock at the end of the history."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.policies = folder / "policies.d"
        token_file = folder / "web-token"
        token_file.write_text(f"{TOKEN}\n")
        web = replace(WebSettings(token_file=token_file, ui_dir=folder / "ui"), **settings)
        self.config = Config(
            folder, folder / "probe", policy_dir=self.policies, web=web, runtime_dir=folder
        )
        self.now_ns = NOW_S * 1_000_000_000
        self.fake = fake_bcache(Path(tempfile.mkdtemp(dir=folder)))
        self.told = Answer(0, {}, b"")
        self.api = Api(self.config, lambda: self.now_ns, self.fake.sysfs, folder / "proc")

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", f"/api/v1{path}", headers)

    def post(self, path: str, document: Any, **headers: str) -> Answer:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self.ask("POST", f"/api/v1{path}", {**JSON, **headers}, [body])

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        body: Sequence[bytes] = (b"",),
        client: str = "127.0.0.1",
    ) -> Answer:
        """One request, with these headers beside a right Host; the body in parts."""
        pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
        if not any(name == "host" for name, _ in pairs):
            pairs += HOST.items()
        route, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": route,
            "raw_path": route.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in pairs],
            "client": (client, 40000),
            "server": ("127.0.0.1", 8380),
        }
        told: list[Message] = []
        try:
            asyncio.run(_asked(self.api, scope, list(body), told))
        finally:
            self.told = _answer(told)
        return self.told

    def told_by(self, scope: MutableMapping[str, Any]) -> list[Message]:
        """What the application says to any other kind of scope."""
        told: list[Message] = []
        asyncio.run(_asked(self.api, scope, [], told))
        return told

    @contextmanager
    def daemon(
        self, decide: Decide = lambda _: None, store: Store | None = None
    ) -> Iterator[AcceptedRequests]:
        """A daemon that accepts every request. `decide`: the outcome; without it there is none."""
        with answering(self.config.socket_path, decide, store) as asked:
            yield asked


async def _asked(
    api: Api, scope: MutableMapping[str, Any], parts: list[bytes], told: list[Message]
) -> None:
    async def receive() -> Message:
        if not parts:
            await asyncio.Event().wait()
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: Message) -> None:
        told.append(message)

    await api(scope, receive, send)


def _answer(told: Sequence[Message]) -> Answer:
    headers = {name.decode(): value.decode() for name, value in told[0]["headers"]}
    body = b"".join(each.get("body", b"") for each in told[1:])
    return Answer(told[0]["status"], headers, body)


@dataclass(slots=True)
class Served:
    """ebbgate-web as a process, on a free port of loopback."""

    process: subprocess.Popen[str]
    port: int
    log: list[str] = field(default_factory=list)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """One request on a connection of its own."""
        with self._connected() as connection:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, answer.read())

    @contextmanager
    def events(self, last_id: str | None = None) -> Iterator[Iterator[tuple[str, str, Any]]]:
        """An open stream: name, id and data of each event."""
        headers = {} if last_id is None else {"Last-Event-ID": last_id}
        with self._connected() as connection:
            connection.request("GET", "/api/v1/events", headers=headers)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield _events(answer)

    def _connected(self) -> closing[http.client.HTTPConnection]:
        return closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S))


@contextmanager
def running(api: Api) -> Iterator[tuple[tuple[str, int], uvicorn.Server]]:
    """The server as a thread of this process, so that a test can make its limits small."""
    listening = server.listen("127.0.0.1", 0)
    made = server.server_of(api)
    thread = Thread(target=made.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname(), made
    finally:
        made.should_exit = True
        thread.join(DEADLINE_S)
    assert not thread.is_alive()


@contextmanager
def connected(address: tuple[str, int], sent: bytes = b"") -> Iterator[socket.socket]:
    """A connection on which these bytes were sent."""
    with closing(socket.create_connection(address, DEADLINE_S)) as line:
        line.sendall(sent)
        yield line


@contextmanager
def streaming(address: tuple[str, int], **headers: str) -> Iterator[socket.socket]:
    """A connection with an open event stream."""
    lines = [f"{name}: {value}\r\n" for name, value in {**HOST, **headers}.items()]
    asked = f"GET /api/v1/events HTTP/1.1\r\n{''.join(lines)}\r\n"
    with connected(address, asked.encode()) as line:
        assert line.recv(15) == b"HTTP/1.1 200 OK"
        yield line


def taken(line: socket.socket) -> int:
    """How many bytes still come before the server closes."""
    count = 0
    try:
        while part := line.recv(1 << 20):
            count += len(part)
    except ConnectionResetError:
        pass
    return count


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    found: dict[str, str] = {}
    for line in answer:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            found[name] = value
        elif "event" in found:
            yield found["event"], found["id"], json.loads(found["data"])
            found = {}


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Served]:
    """The program itself, asked to end at the end; it must do so in an orderly way."""
    argv = [*ENDS_WITH_STARTER, sys.executable, "-m", "ebbgate.web", "--as-root"]
    argv += ["--listen", "127.0.0.1:0"]
    argv += ["--state-dir", str(folder), "--runtime-dir", str(folder)]
    argv += ["--token-file", str(folder / "web-token"), *options]
    (folder / "web-token").write_text(f"{TOKEN}\n")
    env = {"PYTHONPATH": f"{REPO / 'controller'}:{REPO}"}
    env |= {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=env)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        port = re.search(r"http://127\.0\.0\.1:(\d+)/", said)
        assert port is not None, said + process.stderr.read()
        yield Served(process, int(port[1]))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            rest = process.communicate(timeout=DEADLINE_S)[1]
        finally:
            process.kill()
            process.communicate()
    # Current versions of uvicorn end by the signal itself.
    assert process.returncode in (0, -signal.SIGTERM), rest
    assert "Traceback" not in rest, rest


def complaint(value: Any, schema: Mapping[str, Any]) -> str:
    """Return why a value does not fit a schema of the OpenAPI document; empty if it does."""
    try:
        _validator(json.dumps(schema))(value)
    except fastjsonschema.JsonSchemaValueException as error:
        return str(error)
    return ""


@cache
def _validator(schema: str) -> Callable[[Any], Any]:
    # A field that is not described is an error of an answer, too.
    components = {
        name: {"additionalProperties": False, **each}
        for name, each in DOCUMENT["components"]["schemas"].items()
    }
    made: Callable[[Any], Any] = fastjsonschema.compile(
        {"components": {"schemas": components}, "allOf": [json.loads(schema)]}
    )
    return made
