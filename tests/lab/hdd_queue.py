# SPDX-License-Identifier: GPL-2.0-only
"""What a hard disk does with the requests that it holds: which is next, and when each is answered.

Pure: the time is an argument, chance is the model's. Without features the disk serves first come,
first served, exactly as `HddModel.finish_ns` has it. Each feature can be switched while it runs:

- reordering (NCQ): of up to 32 requests the one that ends first is served next, by seek and
  rotation from where the head is; a request that is older than 0.4 s is never passed over;
- write cache: a write is answered as soon as it is in the cache, and waits while the cache is
  full. What is cached is written out, next extent upward, while no request waits for the head.
  A flush, and a write with FUA, is answered once it is on the platter. A power cut loses the rest;
- track buffer: after a read the head reads on, until the buffer is full or the next request moves
  it. What has passed under it is answered at the speed of the interface.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from tests.lab.hdd_model import HddModel, transfer_ns
from tests.lab.hdd_write_cache import Extent, WriteCache

NCQ_DEPTH = 32
AGE_NS_MAX = 400_000_000
INTERFACE_BYTES_PER_S = 500_000_000
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HddFeatures:
    """What the disk does beyond first come, first served."""

    ncq: bool = False
    write_cache_bytes: int = 0
    track_buffer_bytes: int = 0


PLAIN = HddFeatures()
AS_SOLD = HddFeatures(ncq=True, write_cache_bytes=32 * MIB, track_buffer_bytes=MIB // 2)


class Kind(Enum):
    """What a request asks for."""

    READ = auto()
    WRITE = auto()
    FLUSH = auto()


class WaitsFor(Enum):
    """What must happen before a request is answered."""

    HEAD = auto()
    """The head serves it."""
    EXTENT = auto()
    """The head writes out the extent that it was cached in."""
    ROOM = auto()
    """The write cache has room for it."""
    PLATTER = auto()
    """All that was cached before it is on the platter."""


_SERVED_BY_HEAD = (WaitsFor.HEAD, WaitsFor.EXTENT)


@dataclass(slots=True, eq=False)
class Request:
    """One command to the disk."""

    kind: Kind
    arrival_ns: int
    offset_bytes: int = 0
    length_bytes: int = 0
    fua: bool = False
    before: bytes = b""
    """Of a write: what is in its place. Needed only to undo a power cut."""
    number: int = field(default=0, init=False)
    waits_for: WaitsFor = field(default=WaitsFor.HEAD, init=False)

    @property
    def end_bytes(self) -> int:
        """First byte behind it."""
        return self.offset_bytes + self.length_bytes


@dataclass(frozen=True, slots=True)
class Operation:
    """One movement of the head: for a request, or extents that are written out."""

    request: Request | None
    extents: tuple[Extent, ...]
    end_ns: int


@dataclass(frozen=True, slots=True)
class PowerCut:
    """What a power cut loses: extents, and requests that get no answer."""

    extents: list[Extent]
    requests: list[Request]


@dataclass(slots=True)
class TrackBuffer:
    """What has passed under the head since a read began at `start_bytes`.

    At `since_ns` the head was at `from_bytes`; it reads on up to `limit_bytes`.
    """

    start_bytes: int
    from_bytes: int
    since_ns: int
    limit_bytes: int
    reading: bool = True

    def stop(self, reached_bytes: int) -> None:
        """Keep what has passed; the head goes elsewhere."""
        self.limit_bytes = self.from_bytes = reached_bytes
        self.reading = False

    def reached_bytes(self, now_ns: int, scale: float) -> int:
        """First byte that has not passed yet."""
        full_ns = transfer_ns(self.limit_bytes - self.from_bytes) * scale
        # Another thread's request may have moved the head since this one arrived.
        passed_ns = max(0, now_ns - self.since_ns)
        if passed_ns >= full_ns:
            return self.limit_bytes
        share = passed_ns / full_ns
        return self.from_bytes + int((self.limit_bytes - self.from_bytes) * share)


def interface_ns(length_bytes: int) -> int:
    """Time to bring data over the cable."""
    return length_bytes * 1_000_000_000 // INTERFACE_BYTES_PER_S


class HddQueue:
    """The requests, the write cache and the track buffer of one disk."""

    def __init__(self, model: HddModel, features: HddFeatures = PLAIN) -> None:
        self.model = model
        self.features = features
        self.cache = WriteCache()
        self.current: Operation | None = None
        """What the head does now."""
        self._buffer: TrackBuffer | None = None
        self._waiting: list[Request] = []
        self._number = 0

    @property
    def caches_writes(self) -> bool:
        """Whether the next write goes through the cache: also while it still holds something."""
        return self.features.write_cache_bytes > 0 or len(self.cache) > 0

    def depth(self, now_ns: int) -> int:
        """Requests that wait for their answer."""
        current = self.current
        served = current is not None and current.request is not None and current.end_ns <= now_ns
        return len(self._waiting) - served

    def submit(self, request: Request) -> int | None:
        """Take a request; return when it is answered if that does not depend on the head."""
        self._number += 1
        request.number = self._number
        if self._answered_at_once(request):
            return request.arrival_ns + interface_ns(request.length_bytes)
        self._waiting.append(request)
        return None

    def start(self, now_ns: int) -> Operation | None:
        """Begin the next movement of the head; None if it is busy or there is nothing to do."""
        if self.current is not None:
            return None
        request = self._next_request(now_ns)
        if request is not None and request.waits_for is WaitsFor.HEAD:
            self.current = self._serve(request)
        elif run := self._next_extents(request):
            self.current = self._write_out(run)
        return self.current

    def finish(self) -> list[Request]:
        """End the movement of the head; return the requests that are answered now."""
        operation = self.current
        assert operation is not None
        self.current = None
        for extent in operation.extents:
            self.cache.written(extent)
        if operation.request is not None:
            self._waiting.remove(operation.request)
            self._read_on(operation.request, operation.end_ns)
            return [operation.request]
        answered = [request for request in self._waiting if self._is_over(request)]
        for request in answered:
            self._waiting.remove(request)
        return answered

    def cut_power(self) -> PowerCut:
        """Lose what is cached and every request; the disk goes on as if the power was back."""
        requests, self._waiting = self._waiting, []
        self.current = self._buffer = None
        return PowerCut(self.cache.clear(), requests)

    def _answered_at_once(self, request: Request) -> bool:
        if request.kind is Kind.FLUSH:
            request.waits_for = WaitsFor.PLATTER
            return not self.cache
        if request.kind is Kind.READ:
            return self._holds(request)
        self._invalidate(request)
        if not self.caches_writes:
            return False
        request.waits_for = WaitsFor.ROOM
        return self._absorb(request)

    def _absorb(self, request: Request) -> bool:
        """Take a write into the cache; return whether that answers it."""
        capacity_bytes = self.features.write_cache_bytes
        durable = request.fua or capacity_bytes == 0
        fits = self.cache.used_bytes + request.length_bytes <= capacity_bytes
        # One that must be on the platter is written next, and one larger than the cache by itself.
        if not (fits or durable or not self.cache):
            return False
        before = request.before or bytes(request.length_bytes)
        self.cache.add(Extent(request.offset_bytes, before, request.number, request.arrival_ns))
        if durable:
            request.waits_for = WaitsFor.EXTENT
        return not durable

    def _is_over(self, request: Request) -> bool:
        """Whether extents that were written out now answer a request."""
        match request.waits_for:
            case WaitsFor.HEAD:
                return False
            case WaitsFor.EXTENT:
                return not self._extents_of(request)
            case WaitsFor.ROOM:
                return self._absorb(request)
            case WaitsFor.PLATTER:
                oldest = self.cache.oldest_number()
                return oldest is None or oldest > request.number

    def _extents_of(self, request: Request) -> list[Extent]:
        return self.cache.overlapping(request.offset_bytes, request.length_bytes)

    def _next_request(self, now_ns: int) -> Request | None:
        """The request to serve; None if none waits."""
        if not self._waiting:
            return None
        oldest = self._waiting[0]
        if now_ns - oldest.arrival_ns > AGE_NS_MAX:
            return oldest
        for_head = [r for r in self._waiting[:NCQ_DEPTH] if r.waits_for in _SERVED_BY_HEAD]
        if self.features.ncq and len(for_head) > 1:
            return min(for_head, key=self._end_ns)
        return for_head[0] if for_head else oldest

    def _next_extents(self, request: Request | None) -> tuple[Extent, ...]:
        if request is not None and request.waits_for is WaitsFor.EXTENT:
            return self.cache.run_upward(self._extents_of(request)[0].offset_bytes)
        return self.cache.run_upward(self.model.head_bytes)

    def _serve(self, request: Request) -> Operation:
        return Operation(request, (), self._occupy(request))

    def _write_out(self, run: tuple[Extent, ...]) -> Operation:
        offset_bytes, length_bytes = run[0].offset_bytes, run[-1].end_bytes - run[0].offset_bytes
        whole = Request(Kind.WRITE, run[0].arrival_ns, offset_bytes, length_bytes)
        return Operation(None, run, self._occupy(whole))

    def _occupy(self, request: Request) -> int:
        start_ns = max(request.arrival_ns, self.model.free_at_ns)
        service_ns = self._service_ns(start_ns, request)
        if self._buffer is not None and self._buffer.reading:
            self._buffer.stop(self._buffer.reached_bytes(start_ns, self.model.scale))
        return self.model.occupy(start_ns, service_ns, request.end_bytes)

    def _end_ns(self, request: Request) -> int:
        start_ns = max(request.arrival_ns, self.model.free_at_ns)
        return start_ns + self._service_ns(start_ns, request)

    def _service_ns(self, start_ns: int, request: Request) -> int:
        model, buffer = self.model, self._buffer
        offset_bytes, length_bytes = request.offset_bytes, request.length_bytes
        if buffer is not None and buffer.reading:
            model.head_bytes = buffer.reached_bytes(start_ns, model.scale)
            is_read = request.kind is Kind.READ
            if is_read and buffer.start_bytes <= offset_bytes <= model.head_bytes:
                left_bytes = max(0, request.end_bytes - model.head_bytes)
                return round(transfer_ns(left_bytes) * model.scale)
        if self.features.ncq:
            service_ns = model.placed_service_ns(start_ns, offset_bytes, length_bytes)
        else:
            service_ns = model.service_ns(offset_bytes, length_bytes)
        return round(service_ns * model.scale)

    def _holds(self, request: Request) -> bool:
        """Whether all that a read wants is in the write cache or in the track buffer."""
        if self.cache.covers(request.offset_bytes, request.length_bytes):
            return True
        buffer = self._buffer
        if buffer is None or request.offset_bytes < buffer.start_bytes:
            return False
        return request.end_bytes <= buffer.reached_bytes(request.arrival_ns, self.model.scale)

    def _read_on(self, request: Request, now_ns: int) -> None:
        """Have the head read on after a read."""
        ahead_bytes = self.features.track_buffer_bytes
        if request.kind is not Kind.READ or not ahead_bytes:
            return
        end_bytes = request.end_bytes
        limit_bytes = min(end_bytes + ahead_bytes, self.model.size_bytes)
        self._buffer = TrackBuffer(request.offset_bytes, end_bytes, now_ns, limit_bytes)

    def _invalidate(self, request: Request) -> None:
        buffer = self._buffer
        if buffer is None or request.end_bytes <= buffer.start_bytes:
            return
        if request.offset_bytes < buffer.limit_bytes:
            self._buffer = None
