# SPDX-License-Identifier: GPL-2.0-only
"""`ebbgate-web`: its command line. I/O: terminal; starts the server."""

from __future__ import annotations

import argparse
import copy
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ebbgate import __version__
from ebbgate.config import web_settings
from ebbgate.config.settings import Config, load_config
from ebbgate.config.web_settings import WebSettingsError
from ebbgate.errors import EbbgateError, Unavailable, UsageError
from ebbgate.log_messages.service import WEB_FAILED
from ebbgate.systemd_log import report_failure, set_up_log
from ebbgate.text import clean_lines


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; errors.py lists the exit codes."""
    options = option_parser().parse_args(argv)
    level = logging.DEBUG if options.verbose else logging.INFO
    set_up_log("ebbgate-web", level, CleanFormatter)
    try:
        return _run(options)
    except EbbgateError as error:
        report_failure("ebbgate-web", WEB_FAILED, error)
        return error.exit_code


def option_parser() -> argparse.ArgumentParser:
    """Return the options; the manual page is made from them."""
    parser = argparse.ArgumentParser(
        prog="ebbgate-web",
        description="ebbgate in a browser: reads the history, passes requests on to ebbgated.",
    )
    parser.add_argument("--config", type=Path, help="default: /etc/ebbgate/ebbgate.toml")
    parser.add_argument("--state-dir", type=Path, help="default: /var/lib/ebbgate")
    parser.add_argument("--runtime-dir", type=Path, help="default: /run/ebbgate")
    parser.add_argument("--policy-dir", type=Path, help="default: /etc/ebbgate/policies.d")
    parser.add_argument("--ui", type=Path, help="folder of the built pages")
    parser.add_argument("--listen", help=f"default: {web_settings.LISTEN}; port 0: any")
    parser.add_argument("--token-file", type=Path, help=f"default: {web_settings.TOKEN_FILE}")
    parser.add_argument("--as-root", action="store_true", help="run as root")
    parser.add_argument("--openapi", action="store_true", help="print the OpenAPI document")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--version", action="version", version=f"ebbgate-web {__version__}")
    return parser


def _run(options: argparse.Namespace) -> int:
    config = _configured(options)
    try:
        # Imported late, so that a missing FastAPI gives an error with the packages to install.
        from ebbgate.web import app, openapi, server  # noqa: PLC0415
    except ModuleNotFoundError as error:
        hint = "install python3-fastapi, python3-uvicorn and python3-prometheus-client"
        raise Unavailable(f"ebbgate-web needs {error.name}", hint) from error
    api = app.Api(config)
    if options.openapi:
        sys.stdout.write(openapi.text(api.app))
        return 0
    if os.geteuid() == 0 and not options.as_root:
        hint = "start it with systemd, or: sudo -u ebbgate ebbgate-web (or give --as-root)"
        raise UsageError("ebbgate-web does not run as root", hint)
    return server.serve(api)


def _configured(options: argparse.Namespace) -> Config:
    config = load_config(
        options.config, state_dir=options.state_dir, runtime_dir=options.runtime_dir
    )
    if options.policy_dir:
        config = replace(config, policy_dir=options.policy_dir)
    web = config.web
    try:
        if options.listen:
            host, port = web_settings.parse_listen(options.listen, port_min=0)
            web = replace(web, host=host, port=port)
        if options.ui:
            web = replace(web, ui_dir=options.ui)
        if options.token_file:
            web = replace(web, token_file=options.token_file)
        web_settings.check_open(web)
    except WebSettingsError as error:
        raise UsageError(f"--{error.key}: {error.what}", error.hint) from error
    return replace(config, web=web)


class CleanFormatter(logging.Formatter):
    """Replaces unsafe characters of the whole record; the lines of a stack trace stay lines."""

    def format(self, record: logging.LogRecord) -> str:
        shown = copy.copy(record)
        shown.msg, shown.args = record.getMessage().replace("\n", " "), None
        return clean_lines(super().format(shown))
