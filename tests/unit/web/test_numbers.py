# SPDX-License-Identifier: GPL-2.0-only
"""Paths and numbers that cannot be meant are the client's error, never the server's."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.unit.web.web_fixture import JSON, WebHarness, add_page


@pytest.fixture(scope="module")
def paged(tmp_path_factory: pytest.TempPathFactory) -> WebHarness:
    """With pages: then every path is first looked for among the files."""
    folder = tmp_path_factory.mktemp("paged")
    (folder / "ui/assets").mkdir(parents=True)
    add_page(folder)
    return WebHarness(folder)


@pytest.mark.parametrize(
    "path",
    [
        *("/\0", "/a\0b", "/\x01", "/\x7f", "/\n", "/assets/\0", "/api/v1/volumes/\0"),
        *("/api/v1/policies/\0", "/api/v1/decisions/\0", "/" + "a" * 300, "/" + "a/" * 3000),
        *("/index.html/x", "/../../etc/passwd", "/..\\x", "/\ufffd", "/%00"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_invalid_path_is_a_client_error(paged: WebHarness, method: str, path: str) -> None:
    assert 400 <= paged.ask(method, path).status < 500


NUMBERS = ("9" * 5000, "-" + "9" * 5000, "9" * 30, "1e999", "-1e999", "nan", "inf", "²", "")
TIMES = ("since_unix_s", "until_unix_s")


@pytest.mark.parametrize("number", NUMBERS, ids=lambda text: text[:8])
@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/decisions", (*TIMES, "before_id", "limit")),
        ("/volumes/bcache0/samples", (*TIMES, "points")),
        ("/volumes/bcache0/latency", (*TIMES, "points")),
        ("/volumes/bcache0/actions", (*TIMES, "limit")),
        ("/intents", ("limit",)),
    ],
)
def test_invalid_number_in_the_query_is_a_client_error(
    still: WebHarness, path: str, names: tuple[str, ...], number: str
) -> None:
    for name in names:
        assert still.get(f"{path}?{name}={quote(number)}").status == 422, name
    for rest in ("decisions", "intents"):
        assert still.get(f"/{rest}/{number or 'x'}").status == 422


@pytest.mark.parametrize("number", NUMBERS[:-1], ids=lambda text: text[:8])
@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("host", "localhost:{}"),
        ("range", "bytes={}-{}"),
        ("range", "bytes=-{}"),
        ("if-modified-since", "Thu, {} Jan {} 00:00:{} GMT"),
        ("last-event-id", "{}.0.0.0.0.0.0"),
        ("x-forwarded-for", "{}"),
    ],
)
def test_invalid_number_in_a_header_is_harmless(
    paged: WebHarness, name: str, form: str, number: str
) -> None:
    value = form.replace("{}", number)
    assert paged.ask("GET", "/index.html", {name: value}).status < 500


@pytest.mark.parametrize("number", ["9" * 4000, "-" + "9" * 400, "1e999", "9" * 5000])
def test_too_large_number_in_a_body_is_a_client_error(still: WebHarness, number: str) -> None:
    body = f'{{"volume": "bcache0", "text": "", "hours": {number}}}'
    assert still.post("/policies/dry-run", body.encode()).status in (400, 422)


@pytest.mark.parametrize("length", ["9" * 5000, "-1", "²", "1e3", "", " 1", "0x10"])
def test_invalid_content_length_is_a_client_error(still: WebHarness, length: str) -> None:
    headers = {**JSON, "content-length": length}
    assert still.ask("POST", "/api/v1/policies/check", headers, [b"{}"]).status in (400, 413)
