# SPDX-License-Identifier: GPL-2.0-only
"""The manual pages name every command, option, key and signal, and troff reads them."""

from __future__ import annotations

import re
import shutil
from argparse import ArgumentParser
from pathlib import Path

import click
import pytest

from ebbgate import __version__
from ebbgate.cli.app import COMMANDS, EPILOG, app
from ebbgate.daemon.main import option_parser as daemon_parser
from ebbgate.kernel.run import run
from ebbgate.model.decision import GateKind
from ebbgate.policy.language.reference import tables
from ebbgate.policy.rule_signals import SIGNALS, Signal
from ebbgate.web.command import option_parser as web_parser
from manual import markdown, pages
from manual.troff import Page, inline
from tests.house_rules import REPO

PAGES = {page.file: page.text().replace("\\-", "-") for page in pages.pages()}


def test_make_install_installs_every_page() -> None:
    named = re.findall(r"^(?:BCC_)?MAN_PAGES := (.*)$", (REPO / "Makefile").read_text(), re.M)
    assert set(" ".join(named).split()) == set(PAGES)


def test_the_latest_version_in_the_changelog_is_the_version() -> None:
    heads = re.findall(r"^## (\S+)", (REPO / "CHANGELOG.md").read_text(), re.M)
    assert next(head for head in heads if head != "Unreleased") == __version__


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_its_options_in_the_manual(name: str) -> None:
    context = click.Context(app)
    command = app.get_command(context, name)
    assert command is not None
    found = re.search(rf'^\.SS "{name}"\n(.*?)^\.S[SH]', PAGES["ebbgate.8"], re.M | re.S)
    assert found is not None
    for param in command.params:
        record = param.get_help_record(context)
        if record is not None and param.name != "json":
            assert f"\\fB{record[0]}\\fR" in found[1]


@pytest.mark.parametrize("parser", [daemon_parser(), web_parser()], ids=lambda each: each.prog)
def test_each_option_of_the_services_is_in_their_manual(parser: ArgumentParser) -> None:
    page = PAGES[f"{parser.prog}.8"]
    options = re.findall(r"--[a-z][a-z-]+", parser.format_usage())
    assert options
    assert [option for option in options if option not in page] == []


def test_the_help_explains_every_gate() -> None:
    found = re.search(r"^  gate  (.*?)^  \S", EPILOG, re.M | re.S)
    assert found is not None
    assert set(GateKind) <= set(re.findall(r"\w+", found[1]))


def test_the_manuals_name_what_packages_and_units_need() -> None:
    assert "/usr/share/doc/ebbgate-web/examples/prometheus" in PAGES["ebbgate-web.8"]
    assert "ReadWritePaths=FOLDER" in PAGES["ebbgated.8"]


def test_the_manual_of_the_probe_is_its_help() -> None:
    page = PAGES["ebbgate-probe.8"]
    for text in ("[--check] [--version] [--help]", "untrack NAME", "69 kernel without BTF"):
        assert text in page


@pytest.mark.parametrize("name", set(tables()) - {"signals", "units"})
def test_each_policy_key_is_in_the_manual(name: str) -> None:
    keys = re.findall(r"^\| `([^`]+)`", tables()[name], re.M)
    assert keys
    page = PAGES["ebbgate-policy.5"]
    assert [key for key in keys if f".TP\n\\fB{key}\\fR" not in page] == []


@pytest.mark.parametrize("signal", SIGNALS.values(), ids=lambda each: each.name)
def test_each_signal_is_in_the_manual_with_its_meaning(signal: Signal) -> None:
    page = PAGES["ebbgate-signals.7"]
    found = re.search(rf"^\\fB{signal.name}\\fR\n(.*)$", page, re.M)
    assert found is not None
    assert re.sub(r"\\f[BRI]", "", found[1]) == signal.about.replace("`", "")


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
@pytest.mark.parametrize("file", PAGES)
def test_troff_has_no_warning_about_a_page(file: str, tmp_path: Path) -> None:
    pages.main(tmp_path)
    argv = ["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-z", str(tmp_path / file)]
    assert run(argv).stderr == ""


def test_marks_of_markdown_become_fonts() -> None:
    text = inline("`--wait` of **idle_destage**, *then* [here](x.md): write-back - 1 * 2")
    assert text == (
        "\\fB\\-\\-wait\\fR of \\fBidle_destage\\fR, \\fIthen\\fR here: write-back \\- 1 * 2"
    )


@pytest.mark.parametrize("text", [".SH x", "'x"])
def test_text_that_looks_like_a_request_is_printed(text: str) -> None:
    assert inline(text) == f"\\&{text}"


def test_a_list_and_a_table_become_items() -> None:
    page = Page("name", 8, "about", "1")
    markdown.write(
        page, "- one\n  more\n- two\n\n| key | meaning | unit |\n|---|---|---|\n| a | b | c |"
    )
    assert page.text().split("name \\- about\n")[1] == (
        ".IP \\(bu 2\none more\n.IP \\(bu 2\ntwo\n.TP\n\\fBa\\fR\nb\n.br\nUnit: c\n"
    )
