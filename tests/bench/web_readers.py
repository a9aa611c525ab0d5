# SPDX-License-Identifier: GPL-2.0-only
"""Readers of the dashboard:
python -m tests.bench.web_readers PORT SECONDS READERS STREAMS SLOW SEED

I/O: HTTP on the loopback. Each reader keeps its connection and asks what the pages ask, one route
every five seconds; of the event streams so many slow ones stop reading. Prints one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from statistics import median

from tests.bench.report import percentile

PAUSE_S = 5.0
"""Two hundred people do not ask more: what changes comes by their streams."""
_DAY_S = 24 * 3600
_PATIENCE_S = 30.0


@dataclass(slots=True)
class Load:
    """What came of it."""

    port: int
    until_s: float
    random: Random
    answers_s: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    events: int = 0
    dropped: int = 0
    received_bytes: int = 0

    @property
    def left_s(self) -> float:
        return self.until_s - time.monotonic()


def routes(random: Random, volumes: list[str], now_s: float) -> list[str]:
    """What the pages of one reader ask, in their order: overview, a volume, decisions, the rest."""
    volume = f"/volumes/{random.choice(volumes)}"
    since = f"since_unix_s={now_s - random.choice((3600, 6 * 3600, _DAY_S)):.0f}"
    return [
        "/health",
        "/volumes",
        volume,
        f"{volume}/samples?{since}&points=600",
        f"{volume}/actions?{since}&limit=500",
        f"/decisions?{since}&volume={volume[9:]}&limit=200",
        f"{volume}/latency?{since}&op=read&points=300",
        "/decisions?limit=50",
        "/policies",
        "/intents?limit=50",
    ]


async def ask(load: Load, reader: asyncio.StreamReader, path: str) -> bytes:
    """The answer to what was sent already; anything but 200 is an error."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = head.decode("latin-1").lower().split("\r\n")
    length = next(int(each[15:]) for each in fields if each.startswith("content-length:"))
    body = await reader.readexactly(length)
    load.received_bytes += len(head) + length
    if not fields[0].startswith("http/1.1 200 "):
        load.errors[f"{fields[0][9:12]} {path.partition('?')[0]}"] += 1
    return body


def request(path: str) -> bytes:
    """On a connection that is kept."""
    return f"GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


@asynccontextmanager
async def connection(
    load: Load, who: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection whose failure is counted."""
    reader, writer = await asyncio.open_connection("127.0.0.1", load.port, limit=1 << 24)
    try:
        yield reader, writer
    except (OSError, EOFError, TimeoutError) as error:
        load.errors[f"{who}: {type(error).__name__}"] += 1
    finally:
        writer.close()


async def read_pages(load: Load, volumes: list[str]) -> None:
    """One reader."""
    async with connection(load, "reader") as (reader, writer):
        await asyncio.sleep(load.random.random() * PAUSE_S)
        while True:
            for path in routes(load.random, volumes, time.time()):
                if load.left_s <= 0:
                    return
                began_s = time.monotonic()
                writer.write(request(path))
                async with asyncio.timeout(_PATIENCE_S):
                    await ask(load, reader, path)
                load.answers_s.append(time.monotonic() - began_s)
                pause_s = min(PAUSE_S + began_s - time.monotonic(), load.left_s)
                await asyncio.sleep(max(0.0, pause_s))


async def follow(load: Load) -> None:
    """One stream; it must tell something at least every 15 s, and not end."""
    async with connection(load, "stream") as (reader, writer):
        writer.write(request("/events"))
        while load.left_s > 0:
            async with asyncio.timeout(_PATIENCE_S):
                part = await reader.read(1 << 20)
            if not part:
                load.errors["stream: ended"] += 1
                return
            load.received_bytes += len(part)
            load.events += part.count(b"\nevent: ")


async def stop_reading(load: Load) -> None:
    """A stream whose browser sleeps: after the end it looks whether it was cut off."""
    reader, writer = await asyncio.open_connection("127.0.0.1", load.port)
    try:
        writer.write(request("/events"))
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(load.left_s)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(2.0):
            while await reader.read(1 << 20):
                pass
        load.dropped += 1
    except OSError:
        load.dropped += 1
    except TimeoutError:
        pass
    finally:
        writer.close()


async def run(load: Load, readers: int, streams: int, slow: int) -> None:
    """All of them at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", load.port, limit=1 << 24)
    writer.write(request("/volumes"))
    volumes = [
        each["volume"] for each in json.loads(await ask(load, reader, "/volumes"))["volumes"]
    ]
    writer.close()
    await asyncio.gather(
        *(read_pages(load, volumes) for _ in range(readers)),
        *(follow(load) for _ in range(streams - slow)),
        *(stop_reading(load) for _ in range(slow)),
    )


def main() -> None:
    port, seconds, readers, streams, slow, seed = map(int, sys.argv[1:7])
    began_s = time.monotonic()
    load = Load(port, began_s + seconds, Random(seed))
    asyncio.run(run(load, readers, streams, slow))
    found = {
        "requests_per_s": len(load.answers_s) / seconds,
        "answer_ms_p50": median(load.answers_s) * 1e3,
        "answer_ms_p99": percentile(load.answers_s, 0.99) * 1e3,
        "events_per_s": load.events / seconds,
        "received_mib_per_s": load.received_bytes / seconds / (1 << 20),
        "errors": sum(load.errors.values()),
        "slow_dropped": load.dropped,
    }
    print(json.dumps({"metrics": found, "errors": load.errors}))


if __name__ == "__main__":
    main()
