# SPDX-License-Identifier: GPL-2.0-only
"""Who may ask, by which name and how much; and the headers on every answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.types import Scope

from ebbgate.web import security
from ebbgate.web.security import BODY_BYTES_MAX, CSP, host_allowed, host_name, same_origin
from tests.unit.web.web_fixture import JSON, RIGHT, TOKEN, WebHarness, add_page

REQUEST = b'{"kind": "restore"}'
OURS = "http://localhost:8380"


def send_request(harness: WebHarness, *headers: tuple[str, str], client: str = "127.0.0.1") -> int:
    """Send a request with these headers and those that it needs; return the status."""
    given = {name for name, _ in headers}
    rest = [each for each in {**JSON, **RIGHT}.items() if each[0] not in given]
    pairs = [*headers, *rest]
    return harness.ask("POST", "/api/v1/intents", pairs, [REQUEST], client).status


# ---- headers -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/api/v1/health", {}),
        ("GET", "/metrics", {}),
        ("GET", "/", {}),
        ("GET", "/nothing", {}),
        ("GET", "/api/v1/health", {"host": "evil.example"}),
        ("GET", "/api/v1/token", {}),
        ("GET", "/api/v1/decisions/x", {}),
        ("DELETE", "/api/v1/health", {**RIGHT, **JSON}),
        ("POST", "/api/v1/intents", {}),
        ("POST", "/api/v1/intents", {**RIGHT, **JSON}),
        ("POST", "/api/v1/policies/check", {}),
    ],
)
def test_every_answer_has_the_strict_headers(
    still: WebHarness, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = still.ask(method, path, headers)
    assert answer.headers["content-security-policy"] == CSP
    assert "unsafe" not in CSP
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert "set-cookie" not in answer.headers
    assert answer.headers["cache-control"] == "no-store"
    if answer.status >= 400:
        assert answer.error["code"]


def test_only_page_files_may_be_cached(tmp_path: Path) -> None:
    add_page(tmp_path)
    harness = WebHarness(tmp_path)
    page = harness.ask("GET", "/")
    assert (page.status, page.headers["cache-control"]) == (200, "no-cache")
    same = harness.ask("GET", "/", {"if-none-match": page.headers["etag"]})
    assert (same.status, same.headers["cache-control"]) == (304, "no-cache")
    for path in ("/nothing.js", "/api/v1/openapi.json", "/metrics", "/api/v1/health"):
        assert harness.ask("GET", path).headers["cache-control"] == "no-store", path


def test_a_page_file_is_sent_whole_whatever_ranges_are_asked_for(tmp_path: Path) -> None:
    add_page(tmp_path)
    part = WebHarness(tmp_path).ask("GET", "/index.html", {"range": "bytes=0-0,2-2"})
    assert (part.status, part.body, part.headers["accept-ranges"]) == (200, b"the page", "none")


def test_internal_error_has_the_shape_and_headers(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: float = 0.0) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(web.api.databases, "snapshot", broken)
    with pytest.raises(RuntimeError):
        # The server logs it: starlette hands it on once it has answered.
        web.get("/health")
    answer = web.told
    assert answer.status == 500
    assert answer.error["code"] == "internal_error"
    assert answer.error["message"] != "a bug"
    assert answer.headers["content-security-policy"] == CSP


# ---- names -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST.:80", "localhost"),
        ("[::1]:8380", "::1"),
        ("127.0.0.1:8380", "127.0.0.1"),
        ("", None),
        ("a b", None),
        ("localhost@evil.example", None),
        ("evil.example/localhost", None),
        ("localhost,evil.example", None),
        ("localhost:port", None),
        ("localhost:99999", None),
        ("[::1", None),
        (":80", None),
    ],
)
def test_host_name(header: str, name: str | None) -> None:
    assert host_name(header) == name


@pytest.mark.parametrize(
    ("header", "listen", "allowed"),
    [
        ("localhost:8380", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("127.8.9.1", "127.0.0.1", True),
        ("[::1]:8380", "127.0.0.1", True),
        ("nas.example.org", "127.0.0.1", True),
        ("NAS.example.org:443", "127.0.0.1", True),
        ("evil.example", "127.0.0.1", False),
        ("localhost.evil.example", "127.0.0.1", False),
        ("nas.example.org.evil.example", "127.0.0.1", False),
        ("192.0.2.7", "192.0.2.7", True),
        ("192.0.2.8", "192.0.2.7", False),
        ("192.0.2.7", "127.0.0.1", False),
        ("0.0.0.0", "0.0.0.0", False),
        ("192.0.2.7", "0.0.0.0", False),
        ("[2001:db8::7]:8380", "::", True),
        ("[2001:db8:0::7]", "127.0.0.1", True),
        ("[2001:db8::8]:8380", "::", False),
        ("2130706433", "127.0.0.1", False),
        ("0x7f.1", "127.0.0.1", False),
    ],
)
def test_host_allowed(header: str, listen: str, allowed: bool) -> None:
    assert host_allowed(header, listen, ("nas.example.org", "2001:db8::7")) is allowed


def test_a_foreign_name_gets_421(still: WebHarness) -> None:
    answer = still.get("/volumes", host="evil.example:8380")
    assert answer.status == 421
    assert answer.error["code"] == "misdirected_request"


@pytest.mark.parametrize("hosts", [["localhost", "evil.example"], ["localhost", "localhost"]])
def test_two_host_headers_are_refused(still: WebHarness, hosts: list[str]) -> None:
    pairs = [("host", each) for each in hosts]
    assert still.ask("GET", "/api/v1/health", pairs).status == 421


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        (OURS, "localhost:8380", True),
        ("https://localhost:8380", "localhost:8380", True),
        ("http://localhost", "localhost:8380", False),
        ("http://localhost:3000", "localhost:8380", False),
        ("http://evil.example", "localhost:8380", False),
        ("null", "localhost:8380", False),
        ("", "localhost:8380", False),
        ("file://localhost:8380", "localhost:8380", False),
        ("http://user@localhost:8380", "localhost:8380", False),
        ("http://[", "localhost:8380", False),
    ],
)
def test_same_origin(origin: str, host: str, same: bool) -> None:
    assert same_origin(origin, host) is same


@pytest.mark.parametrize(
    "headers",
    [
        [("origin", "http://evil.example")],
        [("origin", "null")],
        [("origin", OURS), ("origin", "http://evil.example")],
        [("sec-fetch-site", "cross-site")],
        [("sec-fetch-site", "same-site")],
    ],
)
def test_a_page_of_another_site_changes_nothing(
    web: WebHarness, headers: list[tuple[str, str]]
) -> None:
    with web.daemon():
        assert send_request(web, *headers) == 403
    assert len(web.get("/intents").json["intents"]) == 4


@pytest.mark.parametrize(
    "headers",
    [[], [("origin", OURS), ("sec-fetch-site", "same-origin")], [("sec-fetch-site", "none")]],
)
def test_own_page_and_programs_may_change(web: WebHarness, headers: list[tuple[str, str]]) -> None:
    with web.daemon():
        assert send_request(web, *headers) == 202


def test_page_of_another_site_cannot_check_a_policy(still: WebHarness) -> None:
    answer = still.post("/policies/check", {"name": "a", "text": ""}, origin="http://evil.example")
    assert answer.status == 403


# ---- the token ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN.upper()}",
        "Bearer \xe4\xf6\xfc",
    ],
)
def test_wrong_token_changes_nothing(web: WebHarness, value: str) -> None:
    with web.daemon():
        assert send_request(web, ("authorization", value)) == 401
    assert len(web.get("/intents").json["intents"]) == 4


@pytest.mark.parametrize(("pause_s", "counts"), [(3600.0, [1]), (0.0, [1, 1, 1])])
def test_wrong_tokens_are_logged_at_a_bounded_rate(
    web: WebHarness,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    pause_s: float,
    counts: list[int],
) -> None:
    monkeypatch.setattr(security, "WRONG_TOKENS_LOG_S", pause_s)
    for _ in range(3):
        assert web.get("/token", authorization="Bearer a-wrong-token-of-some-length").status == 401
    found = [each.getMessage() for each in caplog.records if "wrong token" in each.getMessage()]
    assert found == [
        f"wrong token from 127.0.0.1 ({count} wrong ones since this was last logged)"
        for count in counts
    ]
    assert "a-wrong-token" not in caplog.text


def test_wrong_tokens_that_were_not_logged_are_counted(
    web: WebHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        web.get("/token", authorization="Bearer wrong")
    monkeypatch.setattr(security, "WRONG_TOKENS_LOG_S", 0.0)
    web.get("/token", authorization="Bearer wrong")
    assert "(3 wrong ones since" in caplog.messages[-1]


def test_token_in_cookie_or_url_is_ignored(still: WebHarness) -> None:
    headers = {**JSON, "cookie": f"token={TOKEN}; authorization=Bearer {TOKEN}"}
    assert still.ask("POST", f"/api/v1/intents?token={TOKEN}", headers, [REQUEST]).status == 401


def test_401_names_the_scheme(still: WebHarness) -> None:
    answer = still.get("/token")
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "web-token" in answer.error["hint"]


@pytest.mark.parametrize("text", [None, "", "short", "a token with spaces in it, too long"])
def test_invalid_token_file_accepts_no_token(web: WebHarness, text: str | None) -> None:
    path = web.config.web.token_file
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    answer = web.get("/token", authorization=f"Bearer {text}")
    assert answer.status in (401, 422, 503)
    assert answer.status != 200


def test_new_token_is_valid_at_once(web: WebHarness) -> None:
    other = "another-token-that-is-long-enough"
    web.config.web.token_file.write_text(other)
    assert web.get("/token", **RIGHT).status == 401
    assert web.get("/token", authorization=f"Bearer {other}").status == 200


def test_closed_reading_needs_the_token_except_for_pages(tmp_path: Path) -> None:
    add_page(tmp_path)
    closed = WebHarness(tmp_path, reading="token")
    for path in ("/api/v1/health", "/api/v1/events", "/api/v1/openapi.json", "/metrics"):
        assert closed.ask("GET", path).status == 401
    assert closed.ask("GET", "/api/v1/health", RIGHT).status == 200
    assert closed.ask("GET", "/").status == 200
    check = closed.post("/policies/check", {"name": "a", "text": "version: 1\nname: a\n"})
    assert check.status == 401


# ---- how much ----------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_only_json_bodies_are_accepted(still: WebHarness, kind: str) -> None:
    headers = {"content-type": kind}
    answer = still.ask("POST", "/api/v1/policies/check", headers, [b"{}"])
    assert answer.status == 415
    assert answer.error["code"] == "unsupported_media_type"


def test_too_large_content_length_is_refused_at_once(still: WebHarness) -> None:
    headers = {**JSON, "content-length": str(BODY_BYTES_MAX + 1)}
    assert still.ask("POST", "/api/v1/policies/check", headers, [b"{}"]).status == 413


def test_too_large_body_without_length_is_refused(still: WebHarness) -> None:
    part = b" " * 4096
    parts = [part] * (BODY_BYTES_MAX // len(part) + 1)
    assert still.ask("POST", "/api/v1/policies/check", JSON, parts).status == 413


def test_a_body_that_does_not_end_in_time_is_refused(
    still: WebHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "BODY_TIMEOUT_S", 0.05)
    answer = still.ask("POST", "/api/v1/policies/check", JSON, body=())
    assert (answer.status, answer.error["message"]) == (400, "the body did not come within 0.05 s")


def test_a_body_in_parts_is_one_body(still: WebHarness) -> None:
    parts = [b'{"name": "a", "te', b"", b'xt": "version: 1\\nname: a\\n"}']
    answer = still.ask("POST", "/api/v1/policies/check", JSON, parts)
    assert answer.json == {"ok": True, "errors": [], "notes": []}


def test_largest_body_is_accepted(still: WebHarness) -> None:
    text = b'{"name": "a", "text": ""}'
    answer = still.ask("POST", "/api/v1/policies/check", JSON, [text.ljust(BODY_BYTES_MAX)])
    assert answer.status == 200


def test_web_sockets_are_refused(still: WebHarness) -> None:
    scope: Scope = {"type": "websocket", "path": "/api/v1/events", "headers": []}
    assert still.told_by(scope) == []
