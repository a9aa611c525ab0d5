# SPDX-License-Identifier: GPL-2.0-only
"""The whole API against its own OpenAPI document, on both sets of packages."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbgate.model.override import IntentKind
from tests.api.stack import BUILD, SCHEMATHESIS, SETS, WITH_TOKEN, history, served
from tests.lab import host
from tests.programs import REPO, get
from tests.unit.web.web_fixture import TOKEN, Served, complaint

HERE = Path(__file__).resolve().parent
# A day of history is made first, on whatever machine this is.
pytestmark = pytest.mark.timeout(300)
DOCUMENT = REPO / "webui" / "openapi.json"
CASES = 10
"""Of random data for each operation and phase; some 20 s of CPU for each set."""
CASES_FULL = 100
SEED = os.environ.get("EBBGATE_API_SEED", "1")
TOLD = {
    name.lower(): f"#/components/schemas/{name}"
    for name in ("Volumes", "Health", "Decision", "Action", "Intent")
}
each_set = pytest.mark.parametrize("name", SETS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("api")
    return made


@pytest.fixture(scope="module")
def state(folder: Path) -> Iterator[Path]:
    with history(folder) as found:
        yield found


@pytest.fixture(scope="module")
def urls(folder: Path, state: Path) -> Iterator[dict[str, str]]:
    """Both at once, over the same history."""
    with served(folder, state, "debian") as debian, served(folder, state, "current") as current:
        yield {"debian": debian.url, "current": current.url}


def try_out(url: str, name: str, cases: int, timeout_s: float) -> None:
    """All checks of schemathesis. Fails with its report."""
    argv: list[str | Path] = [SCHEMATHESIS, "--config-file", HERE / "schemathesis.toml", "run"]
    argv += [f"{url}/api/v1/openapi.json", "--url", url, "--no-color", "--seed", SEED]
    argv += ["-H", f"Authorization: Bearer {TOKEN}", "-H", "Connection: close"]
    argv += ["--mode", "all", "--checks", "all", "--max-examples", str(cases)]
    argv += ["--generation-database", "none", "--continue-on-failure", "--request-timeout", "20"]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPO)}
    env["SCHEMATHESIS_HOOKS"] = "tests.api.hooks"
    words = [str(word) for word in argv]
    done = subprocess.run(
        words, env=env, cwd=BUILD, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    if done.returncode:
        pytest.fail(f"{name}:\n{done.stdout}{done.stderr}", pytrace=False)


@each_set
@pytest.mark.timeout(400)
def test_every_answer_matches_the_description(urls: dict[str, str], name: str) -> None:
    try_out(urls[name], name, CASES, 300)
    requests = json.loads(get(f"{urls[name]}/api/v1/intents?limit=1000"))["intents"]
    assert {each["kind"] for each in requests} == set(IntentKind)


@each_set
@pytest.mark.full
@pytest.mark.timeout(2000)
def test_the_same_with_very_many_cases(urls: dict[str, str], name: str) -> None:
    try_out(urls[name], name, CASES_FULL, 1900)


# ---- what a tool that asks and goes cannot see ---------------------------------------------------
@each_set
def test_both_sets_serve_the_committed_document(urls: dict[str, str], name: str) -> None:
    assert get(f"{urls[name]}/api/v1/openapi.json") == DOCUMENT.read_text()


def test_the_sets_are_two_generations() -> None:
    code = "import pydantic; print(pydantic.VERSION.partition('.')[0])"
    majors = {name: host.run([python, "-c", code]).strip() for name, python in SETS.items()}
    assert majors == {"debian": "1", "current": "2"}


@each_set
def test_event_stream_matches_its_description(urls: dict[str, str], name: str) -> None:
    server = Served(None, int(urls[name].rpartition(":")[2]))  # type: ignore[arg-type]
    left = set(TOLD)
    with server.events() as events:
        # What comes before the first event is not missed, but what the stream begins with.
        kind, number, data = next(events)
        body = json.dumps({"kind": "hold", "args": {"on": False}}).encode()
        assert server.ask("POST", "/api/v1/intents", body, **WITH_TOKEN).status == 202
        # The history goes on, with decisions and writes of its own.
        while left:
            assert number
            assert complaint(data, {"$ref": TOLD[kind]}) == ""
            left.discard(kind)
            kind, number, data = next(events)
