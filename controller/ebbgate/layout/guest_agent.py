# SPDX-License-Identifier: GPL-2.0-only
"""ebbgate-agent: tells where files of a guest lie on the guest's own disks.

It runs in the guest, with Python 3.7 or newer and nothing else: `ebbgate layout agent | ssh GUEST
python3 - PATTERN...`. It writes nothing but one JSON document on stdout. Root is needed for files
that only root may read, and for LVM's tables (dmsetup). I/O: FIEMAP, sysfs, /proc, dmsetup.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import fnmatch
import glob
import itertools
import json
import os
import stat
import struct
import subprocess
import sys
from collections import abc

VERSION = 1
PROC = "/proc/self"
MAPPED = ("ext2", "ext3", "ext4", "xfs")
FILES_MAX = 10000
ERRORS_MAX = FILES_MAX - 1  # One more says what was left out.
NAMES_MAX = 1000000  # That one pattern may look at.
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
EXTENTS_MAX = 100000
FIEMAP = 0xC020660B
FSGETXATTR = 0x801C581F
GETVERSION = 0x80087601
HEAD = struct.Struct("=QQIIII")
EXTENT = struct.Struct("=QQQ16xI12x")
BATCH = 512
LAST, MERGED, SHARED = 0x1, 0x1000, 0x2000
OBSTACLES = (
    (0x4, "not allocated yet"),
    (0x800, "allocated but never written"),
    (~(LAST | MERGED | SHARED), "of a kind that has no place of its own"),
)


class Refused(Exception):
    """A file that cannot be mapped, and why."""


class Agent:
    """Collects files, and the devices below them."""

    def __init__(self) -> None:
        self.files = {}  # type: dict[str, dict[str, object]]
        self.inodes = set()  # type: set[tuple[int, int]]
        self.devices = {}  # type: dict[str, dict[str, object]]
        self.errors = []  # type: list[dict[str, str]]
        self.left_out = 0
        self.left_out_first = ""

    def document(self) -> dict[str, object]:
        """Each layer names only layers behind it."""
        files = sorted(self.files)
        layers = [self.files[path] for path in files] + list(self.devices.values())[::-1]
        errors = list(self.errors)
        if self.left_out:
            why = f"one of {self.left_out} that are left out: at most {FILES_MAX} files are mapped"
            errors.append(failure(self.left_out_first, why))
        return {
            "ebbgate_agent": VERSION,
            "files": files,
            "layers": layers,
            "errors": errors,
        }

    def add_all(self, pattern: str) -> None:
        """Add what a pattern matches. Without wildcards it is a path, which has to be a file."""
        named, why = not glob.has_magic(pattern), "no such file"
        try:
            for path in matches(pattern):
                why = ""
                self.add(os.path.abspath(path), named)
        except Refused as error:
            why = str(error)
        if why:
            self._fail(pattern, why)

    def add(self, path: str, named: bool) -> None:
        """Add a file, or the reason why it cannot be mapped. `named`: its path is no pattern's.

        What is no file is not opened: that may start a watchdog, or let the writer of a FIFO go on.
        """
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError as error:
            if named or error.errno not in GONE:
                self._fail(path, error.strerror or "cannot be found")
            return
        try:
            status = os.fstat(handle)
            inode = (status.st_dev, status.st_ino)
            if stat.S_ISREG(status.st_mode):
                # A pattern may match several links to one file.
                if named or inode not in self.inodes:
                    self._map(path, handle, inode)
            elif named and not stat.S_ISDIR(status.st_mode):
                self._fail(path, "no regular file")
        finally:
            os.close(handle)

    def _map(self, path: str, found: int, inode: tuple[int, int]) -> None:
        """Open and add a regular file. `found`: its handle, which cannot read."""
        if path in self.files:
            return
        if len(self.files) >= FILES_MAX:
            self._leave_out(path)
            return
        if not path.isprintable():
            self._fail(path, "its name cannot be printed")
            return
        try:
            handle = os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            self._fail(path, error.strerror or "cannot be opened")
            return
        try:
            self.files[path] = self._file(path, handle)
            self.inodes.add(inode)
        except Refused as error:
            self._fail(path, str(error))
        except OSError as error:
            self._fail(path, error.strerror or "cannot be read")
        finally:
            os.close(handle)

    def _fail(self, path: str, why: str) -> None:
        if len(self.errors) < ERRORS_MAX:
            self.errors.append(failure(path, why))
        else:
            self._leave_out(path)

    def _leave_out(self, path: str) -> None:
        self.left_out_first = self.left_out_first or path
        self.left_out += 1

    def _file(self, path: str, handle: int) -> dict[str, object]:
        filesystem = filesystem_of(handle)
        if filesystem not in MAPPED:
            raise Refused(f"on {filesystem or '?'}: it has no places that can be used")
        if is_realtime(handle):
            raise Refused("in the realtime section of XFS")
        for _ in range(3):
            before, extents = stamp(handle), read_extents(handle)
            device = self._device(number(os.fstat(handle).st_dev))
            if extents == read_extents(handle) and before == stamp(handle):
                segments = [segment_of(extent, device) for extent in extents]
                return layer("file", path, before[0], segments, filesystem)
        raise Refused("its layout changes while it is read")

    def _device(self, device_number: str) -> str:
        """Add a device behind those below it; return its name."""
        real = os.path.realpath("/sys/dev/block/" + device_number)
        name = os.path.basename(real)
        if not os.path.isdir(real):
            raise Refused(f"on no block device ({device_number})")
        if name in self.devices:
            return name
        size = 512 * int(read(real + "/size"))
        if os.path.exists(real + "/partition"):
            below = self._device(read(os.path.dirname(real) + "/dev"))
            segments = [linear(0, size, below, 512 * int(read(real + "/start")))]
            self.devices[name] = layer("partition", name, size, segments)
        elif os.path.exists(real + "/dm"):
            title = read(real + "/dm/name")
            segments = [self._target(line) for line in dm_table(title)]
            self.devices[name] = layer("dm", name, size, segments, title)
        else:
            self.devices[name] = layer("disk", name, size, [])
        return name

    def _target(self, line: str) -> dict[str, object]:
        words = line.split()
        start, length, kind = 512 * int(words[0]), 512 * int(words[1]), words[2]
        if kind == "linear":
            return linear(start, length, self._device(words[3]), 512 * int(words[4]))
        if kind == "crypt":
            return linear(start, length, self._device(words[6]), 512 * int(words[7]))
        if kind == "striped":
            places = [words[at : at + 2] for at in range(5, 5 + 2 * int(words[3]), 2)]
            below = [place(self._device(each[0]), 512 * int(each[1])) for each in places]
            return segment(start, length, below, 512 * int(words[4]))
        return segment(start, length, [], why=f"below a device of type {kind}")


def matches(pattern: str) -> abc.Iterator[str]:
    """Yield each path that a pattern matches once, hidden ones, too.

    A part `**` stands for any number of folders, but for no link to one, which may lead back; as
    the last part it stands for all that is below. Raises Refused if there are too many names.
    """
    path = os.path.join(os.getcwd(), pattern)
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if parts[-1:] == ["**"]:
        parts.append("*")
    todo, looked_at = [("/", with_skipped({0}, parts))], itertools.count(1)
    while parts and todo:
        folder, numbers = todo.pop()
        for path, found in search(folder, numbers, parts, looked_at):
            numbers_below = with_skipped(found, parts)
            if len(parts) in numbers_below:
                yield path
            if numbers_below - {len(parts)}:
                todo.append((path, numbers_below - {len(parts)}))


def search(
    folder: str, numbers: set[int], parts: list[str], looked_at: abc.Iterator[int]
) -> abc.Iterator[tuple[str, set[int]]]:
    """Yield each path in a folder that one of these parts matches, and which may match below it."""
    names = {parts[number] for number in numbers if not glob.has_magic(parts[number])}
    listed = any(glob.has_magic(parts[number]) for number in numbers)
    for entry in entries_of(folder, looked_at) if listed else ():
        names.discard(entry.name)
        found = set().union(*(following(entry, number, parts) for number in numbers))
        if found:
            yield entry.path, found
    for name in sorted(names):
        # Also in a folder that may not be listed.
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            yield path, {number + 1 for number in numbers if parts[number] == name}


def following(entry: os.DirEntry[str], number: int, parts: list[str]) -> set[int]:
    """Return the part that may match below an entry, if this one matches it."""
    deep = parts[number] == "**"
    if deep or fnmatch.fnmatchcase(entry.name, parts[number]):
        with contextlib.suppress(OSError):  # Such as a link to itself.
            if number + 1 == len(parts) or entry.is_dir(follow_symlinks=not deep):
                return {number if deep else number + 1}
    return set()


def with_skipped(numbers: set[int], parts: list[str]) -> set[int]:
    """Add the parts behind each `**`, which may stand for no folder."""
    found = set(numbers)
    for number, part in enumerate(parts):
        if part == "**" and number in found:
            found.add(number + 1)
    return found


def entries_of(folder: str, looked_at: abc.Iterator[int]) -> abc.Iterator[os.DirEntry[str]]:
    """Yield what is in a folder; nothing of one that cannot be listed."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if next(looked_at) > NAMES_MAX:
                raise Refused(f"more than {NAMES_MAX} names to look at: some files are left out")
            yield entry


def failure(path: str, why: str) -> dict[str, str]:
    """A path that is not mapped, and why."""
    return {"path": path if path.isprintable() else ascii(path), "why": why}


def layer(
    kind: str, name: str, size: int, segments: list[dict[str, object]], about: str = ""
) -> dict[str, object]:
    """As `ebbgate layout show --json` prints it."""
    return {"kind": kind, "name": name, "size_bytes": size, "segments": segments, "about": about}


def segment(
    start: int, length: int, below: list[dict[str, object]], chunk: int = 0, why: str = ""
) -> dict[str, object]:
    """A stretch of a layer, and where it lies below."""
    return {
        "start_bytes": start,
        "length_bytes": length,
        "below": below,
        "chunk_bytes": chunk,
        "why": why,
    }


def place(name: str, start: int) -> dict[str, object]:
    """A place in a layer."""
    return {"layer": name, "start_bytes": start}


def linear(start: int, length: int, below: str, below_start: int) -> dict[str, object]:
    """A stretch that lies below in one piece."""
    return segment(start, length, [place(below, below_start)])


def segment_of(extent: tuple[int, ...], device: str) -> dict[str, object]:
    """An extent of a file: offset, place, length, flags."""
    offset, physical, length, flags = extent
    why = next((text for flag, text in OBSTACLES if flags & flag), "")
    if not why and (offset | physical) % 512:
        why = "not aligned to blocks"
    return segment(offset, length, [], why=why) if why else linear(offset, length, device, physical)


def read_extents(handle: int) -> list[tuple[int, ...]]:
    """All extents, as the kernel lists them."""
    found, start = [], 0  # type: list[tuple[int, ...]], int
    while True:
        buffer = array.array("B", bytes(HEAD.size + BATCH * EXTENT.size))
        HEAD.pack_into(buffer, 0, start, (1 << 64) - 1 - start, 0, 0, BATCH, 0)
        fcntl.ioctl(handle, FIEMAP, buffer)
        count = HEAD.unpack_from(buffer)[3]
        for row in range(count):
            extent = EXTENT.unpack_from(buffer, HEAD.size + row * EXTENT.size)
            if extent[0] < start:
                raise Refused("its layout changes while it is read")
            found.append(extent)
            start = extent[0] + extent[2]
            if extent[3] & LAST:
                return found
        if not count:
            return found
        if len(found) > EXTENTS_MAX:
            raise Refused(f"more than {EXTENTS_MAX} extents")


def is_realtime(handle: int) -> bool:
    """Whether the file is on XFS's other device."""
    buffer = array.array("B", bytes(28))
    try:
        fcntl.ioctl(handle, FSGETXATTR, buffer)
    except OSError:
        return False
    return bool(buffer[0] & 1)


def stamp(handle: int) -> tuple[int, int]:
    """What shows that a file is the same: size, and the generation of its inode."""
    buffer = array.array("l", [0])
    with contextlib.suppress(OSError):
        fcntl.ioctl(handle, GETVERSION, buffer)
    return os.fstat(handle).st_size, buffer[0]


def filesystem_of(handle: int) -> str:
    """The type of an open file's file system."""
    words = read(f"{PROC}/fdinfo/{handle}").split()
    wanted = words[words.index("mnt_id:") + 1]
    # A name may have any character but those that the kernel escapes.
    for line in read(f"{PROC}/mountinfo").split("\n"):
        if line.startswith(wanted + " "):
            return line.partition(" - ")[2].partition(" ")[0]
    return ""


def dm_table(title: str) -> list[str]:
    """The lines of a table of device-mapper."""
    command = ["dmsetup", "table", "--noflush", title]
    environment = {"PATH": "/usr/sbin:/sbin:/usr/bin:/bin", "LC_ALL": "C"}
    try:
        return (
            subprocess.check_output(command, env=environment, stderr=subprocess.DEVNULL, timeout=20)
            .decode()
            .splitlines()
        )
    except (OSError, subprocess.SubprocessError):
        raise Refused(f"the table of {title} cannot be read: run this as root") from None


def number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"


def read(path: str) -> str:
    with open(path, errors="replace", newline="\n") as file:
        return file.read().strip()


def main() -> int:
    if not sys.argv[1:]:
        print("usage: python3 - PATTERN...  (files, or patterns in quotes)", file=sys.stderr)
        return 64
    agent = Agent()
    for pattern in sys.argv[1:]:
        agent.add_all(pattern)
    json.dump(agent.document(), sys.stdout)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
