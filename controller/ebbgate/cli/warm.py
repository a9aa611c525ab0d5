# SPDX-License-Identifier: GPL-2.0-only
"""`warm`, `jobs`: reads files and ranges into the cache; saves what is hot.

I/O: the control socket; the history; files of hot sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ebbgate.cli import format
from ebbgate.cli.context import (
    Context,
    Document,
    absolute_path,
    emit,
    print_error,
    with_context,
)
from ebbgate.cli.daemon_status import look
from ebbgate.cli.hot_set import HotSetFiles, hot_set_options, restore_request, save_hot_set
from ebbgate.cli.intents import Late, ask, draw_outcome, named
from ebbgate.cli.job_watch import FoundJob, JobWatch, jobs_of
from ebbgate.cli.relations import Tables, table_options
from ebbgate.cli.snapshot import daemon_document
from ebbgate.cli.status import draw_unknown
from ebbgate.errors import EbbgateError, NotFound, PermissionDenied, Unavailable, UsageError
from ebbgate.model.override import IntentKind
from ebbgate.model.status_json import status_to_json
from ebbgate.model.volume import Volume
from ebbgate.model.warm import JOBS_MAX, JobAction
from ebbgate.units import parse_size_bytes

if TYPE_CHECKING:
    from ebbgate.cli.page import Page

_INDEX: Final = "index"
_HINT: Final = "for example --range bcache0:0-10GiB"

WarmRequest = tuple[Volume | str | None, dict[str, Any]]
"""The volume of a range, and the arguments of a request."""


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(readable=False), metavar="[PATH]...")
@click.option("--range", "part", metavar="VOLUME:FROM-TO", help="Warm a part of a volume.")
@table_options
@click.option("--indexes", is_flag=True, help="Warm the indexes of each --relation, too.")
@hot_set_options
@click.option("--bandwidth", metavar="RATE", help="Read at this rate at most, such as 20MiB/s.")
@click.option("--wait", is_flag=True, help="Wait until the jobs are over.")
@with_context
def warm(
    context: Context,
    paths: Sequence[str],
    part: str | None,
    indexes: bool,
    bandwidth: str | None,
    wait: bool,
    **words: Any,
) -> int:
    """Read files and tables into the cache, as jobs of the daemon; without them list the jobs.

    The kernel caches what is read in a way that it does not take for a stream; no file is changed.
    In mode `enforce`, on bcache, a sequential cutoff that a rule or strategy has set below 4 MiB is
    raised until the last job of the volume ends, the bypass of a slow cache device is switched off
    until the original values are restored, and `trigger_gc` is written at the start and after each
    18th of the cache; no other knob is written for it.

    A job reads while users do not need the slow disk, else one short read for each 400 of their
    requests that need it, or every 10 s. On dm-cache it waits for 10 s to 10 min where the kernel
    promotes more of what users miss beside its reads than without them; `ebbgate jobs` shows how
    many blocks those were. It goes on after this command has ended, but ends with the daemon.

    At the end a sample is read again, and the share of it that was in the cache is shown. What is
    missing was not taken by the kernel (the cache was full, slow or collected garbage) or was
    pushed out again: run it once more, with less at a time. The exit code is that of the first file
    that is refused or, with `--wait`, not warmed.

    `--save FILE VOLUME` writes which parts of VOLUME were used last, as far as a sample of one
    block per MiB tells since the daemon was started; `--restore FILE` warms them again, after the
    cache device was replaced or the volume was attached anew.
    """
    hot = HotSetFiles(*(words.pop(name) for name in ("save", "force", "restore", "volume")))
    hot.check()
    named_tables = Tables(**words)
    if hot.save:
        if part or named_tables:
            raise UsageError("--save takes one volume and nothing else", "see ebbgate warm --help")
        emit(context, save_hot_set(context, hot, paths), draw_outcome)
        return 0
    files = _files(named_tables, indexes) if named_tables else ()
    requests = list(_requests(context, [*paths, *files], part))
    if hot.restore:
        requests.append(restore_request(context, hot))
    for _, args in requests:
        if bandwidth is not None:
            args["bandwidth_bytes_per_s"] = _rate(bandwidth)
    if not requests:
        _list_known(context)
        return 0
    return _carry_out(context, requests, JobWatch(context) if wait else None)


@click.command()
@click.option("--pause", type=int, metavar="JOB", help="Pause this job.")
@click.option("--resume", type=int, metavar="JOB", help="Let this job go on.")
@click.option("--cancel", type=int, metavar="JOB", help="End this job; its data stays cached.")
@with_context
def jobs(context: Context, pause: int | None, resume: int | None, cancel: int | None) -> None:
    """List the jobs of `ebbgate warm` that are under way or have ended of late."""
    actions = {JobAction.PAUSE: pause, JobAction.RESUME: resume, JobAction.CANCEL: cancel}
    chosen = [(action, number) for action, number in actions.items() if number is not None]
    if len(chosen) > 1:
        raise UsageError("only one job at a time", "see ebbgate jobs --help")
    for action, number in chosen:
        answer = ask(context, IntentKind.JOB, None, {"job": number, "action": str(action)})
        emit(context, answer, draw_outcome)
    if not chosen:
        _list_known(context)


def _carry_out(context: Context, requests: Sequence[WarmRequest], watch: JobWatch | None) -> int:
    """Begin the jobs; with `watch` wait for their end. Return the exit code of the first error."""
    answers, errors = _begin(context, requests, watch)
    if watch is not None:
        errors += watch.wait()
        errors = [each for each in errors if not _is_warmed(watch, each)]
    wrong = {"errors": [{"message": each.message, "hint": each.hint} for each in errors]}
    if watch is not None:
        found = watch.jobs()
        if found or context.json:
            _list(context, found, wrong)
    elif answers or context.json:
        emit(context, {"requests": answers, **wrong}, _draw_answers)
    for error in errors:
        print_error(error, context.json)
    return errors[0].exit_code if errors else 0


def _is_warmed(watch: JobWatch, error: EbbgateError) -> bool:
    """Return whether the error is of a request that was late and has been carried out since."""
    return isinstance(error, Late) and watch.done(error.number)


def _begin(
    context: Context, requests: Sequence[WarmRequest], watch: JobWatch | None
) -> tuple[list[Document], list[EbbgateError]]:
    """Begin the jobs; one that is refused, or slow to open, does not hide the others."""
    answers: list[Document] = []
    errors: list[EbbgateError] = []
    for count, (volume, args) in enumerate(requests, 1):
        try:
            answers.append(ask(context, IntentKind.WARM, volume, args))
            if watch is not None:
                watch.add(int(answers[-1]["request"]))
        except Late as error:
            errors.append(error)
            if watch is not None:
                watch.add(error.number, late=True)
        except (Unavailable, PermissionDenied) as error:
            # The daemon or its status is out of reach, for the other requests as well.
            errors.append(error)
            if left := len(requests) - count:
                text = f"not requested: {left} of {len(requests)} warm-ups"
                errors.append(Unavailable(text, "once ebbgated answers, request them again"))
            break
        except EbbgateError as error:
            errors.append(error)
    return answers, errors


def _list(context: Context, found: Sequence[FoundJob], more: Document | None = None) -> None:
    """Print jobs. `more`: further keys of the JSON document."""
    document = {"jobs": _rows(found), **(more or {})}
    emit(context, document, lambda page, _: _draw_jobs(page, found))


def _list_known(context: Context) -> None:
    """Print the jobs that ebbgated knows, or why none is known."""
    link, now_ns = look(context), context.wall_ns()
    found = jobs_of(link, now_ns)

    def draw(page: Page, _drawn: Document) -> None:
        if not draw_unknown(page, link, now_ns) or found:
            _draw_jobs(page, found)

    emit(context, {"jobs": _rows(found), "daemon": daemon_document(link)}, draw)


def _rows(found: Sequence[FoundJob]) -> list[Document]:
    return [{"volume": volume, **status_to_json(job)} for volume, job in found]


def _requests(context: Context, paths: Sequence[str], part: str | None) -> Iterator[WarmRequest]:
    for path in paths:
        yield None, {"path": absolute_path(path)}
    if part is not None:
        name, _, span = part.rpartition(":")
        start, dash, end = span.partition("-")
        if not name or not dash:
            raise UsageError(f"--range: not a part of a volume: {part}", _HINT)
        args = {"from_bytes": _size(start), "to_bytes": _size(end)}
        yield named(context, name), args


def _files(tables: Tables, indexes: bool) -> list[str]:
    """Return the files of these tables that have data. Raises EbbgateError."""
    found = []
    for name, ask_database in tables.each():
        every = ask_database()
        # One that is named is warmed, whatever it is.
        chosen = [each for each in every if indexes or each.kind != _INDEX] or every
        files = [str(file) for each in chosen for file in each.files if _has_data(file)]
        if not files:
            raise NotFound(f"{name} is empty: there is nothing to warm")
        found += files
    if len(found) > JOBS_MAX:
        raise UsageError(
            f"these tables have {len(found)} files, and {JOBS_MAX} jobs may wait",
            "warm one partition at a time, or name files: see ebbgate layout show --relation",
        )
    return found


def _has_data(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:
        return False
    except PermissionError as error:
        raise PermissionDenied(f"{file} cannot be read", "run this as root") from error


def _size(text: str) -> int:
    try:
        return int(text) if text.isdigit() else parse_size_bytes(text)
    except ValueError as error:
        raise UsageError(f"--range: {error}", _HINT) from error


def _rate(text: str) -> int:
    try:
        return parse_size_bytes(text.removesuffix("/s"))
    except ValueError as error:
        raise UsageError(f"--bandwidth: {error}", "for example --bandwidth 20MiB/s") from error


def _draw_answers(page: Page, document: Document) -> None:
    for answer in document["requests"]:
        draw_outcome(page, answer)


def _draw_jobs(page: Page, jobs: Sequence[FoundJob]) -> None:
    if not jobs:
        page.line("no warm-up is under way, and none has ended of late; jobs end with ebbgated")
    for volume, job in jobs:
        page.line(f"{volume}: {format.job(job)}")
        for reason, count in job.left_out.items():
            page.line(f"without {format.size(count)} {reason}", indent=2)
