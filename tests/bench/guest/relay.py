# SPDX-License-Identifier: GPL-2.0-only
"""Leads each connection to one address on to another: `relay.py HOST:PORT HOST:PORT`.

I/O: TCP. ebbgate-web listens on the guest's loopback, as it should; the lab's network ends before
that.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

_PIECE_BYTES = 65536


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """All that comes, until either end hangs up."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_PIECE_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()


async def serve(listen: str, target: str) -> None:
    """Until it is killed."""
    (host, _, port), (to_host, _, to_port) = listen.partition(":"), target.partition(":")

    async def lead_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            onward = await asyncio.open_connection(to_host, int(to_port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, onward[1]), pump(onward[0], writer))

    server = await asyncio.start_server(lead_on, host, int(port))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
