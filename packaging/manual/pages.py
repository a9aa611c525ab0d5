# SPDX-License-Identifier: GPL-2.0-only
"""The manual pages, from the programs' own options, the policy language and the READMEs.

`python -m manual.pages FOLDER` writes them. I/O: reads the READMEs.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

import click

from ebbgate import __version__
from ebbgate.cli.app import EPILOG, app
from ebbgate.daemon.main import option_parser as daemon_parser
from ebbgate.policy.quantity import EXAMPLES
from ebbgate.policy.rule_signals import SIGNALS
from ebbgate.web.command import option_parser as web_parser
from manual import log_catalog, markdown
from manual.troff import Page

REPO: Final = Path(__file__).resolve().parents[2]
_PAGES: Final = {
    "ebbgate": (8, "observe and tune the kernel's block caches"),
    "ebbgated": (8, "daemon that tunes bcache and dm-cache"),
    "ebbgate-probe": (8, "measures block devices with eBPF, for ebbgated"),
    "ebbgate-probe-bcc": (8, "the probe for kernels without BTF"),
    "ebbgate-web": (8, "dashboard of ebbgate in a browser"),
    "ebbgate-policy": (5, "policies of ebbgate"),
    "ebbgate-signals": (7, "signals of rules in ebbgate policies"),
    "ebbgate-messages": (7, "messages of ebbgate in the system's log"),
}
_FILES: Final = (
    ("/etc/ebbgate/ebbgate.toml", "Settings, optional: `ebbgated(8)`."),
    ("/etc/ebbgate/policies.d/", "Policies, optional: `ebbgate-policy(5)`."),
    ("/etc/ebbgate/web-token", "The token for changes in the browser."),
    ("/var/lib/ebbgate/", "History, originals of knobs, and what was set, held or drained."),
    ("/run/ebbgate/", "The control socket and the lock."),
)
_ENVIRONMENT: Final = (
    ("EBBGATE_STATE_DIR, EBBGATE_RUNTIME_DIR", "Folders, as `--state-dir` and `--runtime-dir`."),
    ("EBBGATE_PROBE", "The probe, as `--probe` of `ebbgated(8)`."),
)


def pages() -> Iterator[Page]:
    """Yield every page."""
    policies = (REPO / "policies" / "README.md").read_text()
    reference = (REPO / "packaging" / "README.md").read_text()
    yield _command_line()
    yield _daemon(reference)
    yield _probe((REPO / "bpf" / "options.c").read_text())
    yield _bcc_probe((REPO / "bpf" / "README.md").read_text())
    yield _web(reference)
    yield _policy(policies)
    yield _signals(policies)
    yield _messages(reference)


def _page(name: str) -> Page:
    number, about = _PAGES[name]
    return Page(name, number, about, __version__)


def _end(page: Page) -> Page:
    page.heading("See also")
    others = [f"{name}({number})" for name, (number, _) in _PAGES.items()]
    page.paragraph(", ".join(f"**{each}**" for each in others if each[:-3] != page.file[:-2]))
    return page


def _command_line() -> Page:
    page = _page("ebbgate")
    top = click.Context(app, info_name="ebbgate")
    page.heading("Synopsis")
    page.synopsis("ebbgate [OPTIONS] COMMAND [ARGUMENTS]")
    page.heading("Description")
    page.paragraph(app.help or "")
    page.heading("Options")
    _click_options(page, app, top)
    page.paragraph(
        "`--json` (but for `layout agent`) and `--help` also work after the name of each command."
    )
    page.heading("Commands")
    for name, command in _commands(app, top):
        context = click.Context(command, info_name=f"ebbgate {name}")
        page.subheading(name)
        page.synopsis(" ".join((f"ebbgate {name}", *command.collect_usage_pieces(context))))
        _click_text(page, command.help or "")
        _click_options(page, command, context, without=("json", "help"))
    _click_text(page, EPILOG)
    page.heading("Files")
    for path, about in _FILES:
        page.item(path, [about])
    page.heading("Environment")
    for variable, about in _ENVIRONMENT:
        page.item(variable, [about])
    return _end(page)


def _commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield each command, and each of a command's own commands behind it."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            inner = click.Context(command, info_name=f"ebbgate {name}")
            yield from ((f"{name} {word}", each) for word, each in _commands(command, inner))


def _click_options(
    page: Page, command: click.Command, context: click.Context, without: Collection[str] = ()
) -> None:
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None and param.name not in without:
            page.item(record[0], [record[1]])


def _click_text(page: Page, text: str) -> None:
    """Write a help text; a block after a line with \\b keeps its lines, its first being a title."""
    for block in text.strip().split("\n\n"):
        lines = [line.strip("\b") for line in block.splitlines() if line.strip("\b ")]
        if "\b" not in block:
            page.paragraph(" ".join(lines))
        elif lines[0].endswith(":") and not lines[0].startswith(" "):
            page.heading(lines[0].rstrip(":"))
            page.verbatim(line.removeprefix("  ") for line in lines[1:])
        else:
            page.verbatim(lines)


def _program(parser: argparse.ArgumentParser, about: str) -> Page:
    page = _page(parser.prog)
    page.heading("Synopsis")
    page.synopsis(f"{parser.prog} [OPTIONS]")
    page.heading("Description")
    page.paragraph(about)
    page.heading("Options")
    for action in parser._actions:
        shown = action.metavar or "|".join(action.choices or ()) or action.dest.upper()
        value = "" if action.nargs == 0 else f" {shown}"
        page.item(", ".join(action.option_strings) + value, [_sentence(action.help or "")])
    return page


def _sentence(text: str) -> str:
    text = text.removesuffix(".")
    return f"{text[:1].upper()}{text[1:]}." if text else "Write more to the log."


def _daemon(reference: str) -> Page:
    page = _program(daemon_parser(), markdown.section(reference, "The units"))
    for title in ("Settings", "Supported kernels", "Exit codes"):
        page.heading(title)
        markdown.write(page, markdown.section(reference, title))
    return _end(page)


def _probe(source: str) -> Page:
    """Write what `--help` prints, from the C string of it."""
    found = re.search(r"static const char usage\[\] =\n(.*?);\n", source, re.S)
    assert found is not None
    pieces = re.findall(r'"((?:[^"\\]|\\.)*)"', found[1])
    usage = "".join(pieces).replace("\\n", "\n").replace('\\"', '"')
    synopsis, _, rest = usage.removeprefix("usage: ").partition("\n\n")
    page = _page("ebbgate-probe")
    page.heading("Synopsis")
    page.verbatim(line.removeprefix("       ") for line in synopsis.splitlines())
    page.heading("Description")
    page.verbatim(rest.splitlines())
    return _end(page)


def _bcc_probe(probe: str) -> Page:
    page = _page("ebbgate-probe-bcc")
    page.heading("Synopsis")
    page.synopsis("ebbgate-probe-bcc [OPTIONS]")
    page.heading("Description")
    markdown.write(page, markdown.section(probe, "Kernels without BTF"))
    return _end(page)


def _web(reference: str) -> Page:
    parser = web_parser()
    page = _program(parser, parser.description or "")
    for title in ("Who can read the dashboard", "Prometheus"):
        page.heading(title)
        markdown.write(page, markdown.section(reference, title))
    return _end(page)


def _policy(policies: str) -> Page:
    page = _page("ebbgate-policy")
    signals = markdown.section(policies, "Signals of when and until")
    text = policies.partition("\n")[2].replace(signals, "See **ebbgate-signals(7)**.\n\n")
    text = re.sub(r" The tables on this\s+page are [^.]+\.", "", text)
    page.heading("Description")
    markdown.write(page, text.partition("## Editors")[0])
    return _end(page)


def _signals(policies: str) -> Page:
    page = _page("ebbgate-signals")
    page.heading("Description")
    intro = markdown.section(policies, "Signals of when and until").partition("<!--")[0]
    markdown.write(page, intro)
    page.heading("Signals")
    for signal in SIGNALS.values():
        if signal.unit is None:
            kind, example = " or ".join(f"`{word}`" for word in signal.words), signal.words[-1]
        else:
            kind, example = str(signal.unit), f'"> {EXAMPLES[signal.unit]}"'
        about = [signal.about, f"Unit: {kind}", f"Formula: {signal.formula}"]
        page.item(signal.name, [*about, f"Example: `{signal.name}: {example}`"])
    page.heading("Units")
    markdown.write(page, markdown.section(policies, "Units"))
    return _end(page)


def _messages(reference: str) -> Page:
    page = _page("ebbgate-messages")
    page.heading("Description")
    markdown.write(page, markdown.section(reference, "The log"))
    page.heading("Messages")
    for message in log_catalog.messages().values():
        page.item(
            message.title,
            [message.text, message.meaning, f"What to do: {message.action}", f"Id: `{message.id}`"],
        )
    return _end(page)


def main(folder: Path) -> None:
    """Write the pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages():
        (folder / page.file).write_text(page.text())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
