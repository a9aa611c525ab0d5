# SPDX-License-Identifier: GPL-2.0-only
"""Debian 13 builds the packages, and they run there with its own Python and FastAPI.

I/O: two bare systems: one has what builds packages, the other what they depend on.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ebbgate import __version__
from ebbgate.errors import PermissionDenied
from tests.house_rules import REPO
from tests.lab import host
from tests.lab.conftest import without_lab
from tests.lab.errors import NoLab
from tests.package.chroot import Chroot, base
from tests.package.debian_build import BUILT, build_in
from tests.package.test_contents import names_of

AS_USER = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
NETWORK = "ip link set lo up; chmod 1777 $root/tmp"
ANSWER = r"""
/usr/sbin/ebbgate-web > /tmp/web.log 2>&1 &
for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    sleep 1
    /usr/bin/python3 -c 'import json, urllib.request as http
def get(path):
    with http.urlopen("http://127.0.0.1:8380" + path, timeout=5) as answer:
        return answer.read().decode()
print(json.dumps([get("/api/v1/health"), get("/"), get("/app.js"), get("/app.css")]))' \
        2>> /tmp/web.log && exit 0
done
cat /tmp/web.log >&2
exit 1
"""
"""Serves with the real server, and asks it once it listens: the API, and the dashboard."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The packages that Debian 13 builds without a network."""
    try:
        return build_in("trixie", tmp_path_factory.mktemp("build") / "system")
    except NoLab as reason:
        without_lab(reason)


@pytest.fixture(scope="module")
def trixie(built: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Chroot:
    """A Debian 13 with the packages that it has built."""
    try:
        system = Chroot(base("trixie"), tmp_path_factory.mktemp("trixie") / "system")
    except NoLab as reason:
        without_lab(reason)
    names = ("ebbgate_", "ebbgate-web_")
    done = system.install(*(path for path in built if path.name.startswith(names)))
    assert done.rc == 0, done.text
    return system


def test_it_builds_the_same_packages_without_network(built: list[Path]) -> None:
    assert {path.name for path in built} == {path.name for path in BUILT.glob("ebbgate*_*.deb")}
    for theirs in built:
        listed = host.run(["dpkg", "-c", theirs]).replace("./usr/lib/systemd", "./lib/systemd")
        ours = host.run(["dpkg", "-c", BUILT / theirs.name])
        assert names_of(listed) == names_of(ours.replace("./usr/lib/systemd", "./lib/systemd"))


@pytest.mark.parametrize("program", ["ebbgate", "ebbgated", "ebbgate-web", "ebbgate-probe"])
def test_every_program_starts(program: str, trixie: Chroot) -> None:
    assert trixie.check(*AS_USER, program, "--version").strip().endswith(__version__)


def test_doctor_runs_without_privilege(trixie: Chroot) -> None:
    # What is below /sys is only this file.
    trixie.sysfs.write("/sys/devices/system/cpu/possible", "0")
    document = json.loads(trixie.check(*AS_USER, "ebbgate", "doctor", "--json"))
    assert document["root"] is False
    assert document["probe"]["exit_code"] == PermissionDenied.exit_code


def test_every_shipped_policy_is_valid(trixie: Chroot) -> None:
    names = [path.name for path in (REPO / "policies").glob("*.yaml")]
    paths = [f"/usr/lib/ebbgate/policies/{name}" for name in names]
    trixie.check(*AS_USER, "ebbgate", "check-policy", *paths)


def test_the_api_of_its_fastapi_has_every_route(trixie: Chroot) -> None:
    document = json.loads(trixie.check(*AS_USER, "ebbgate-web", "--openapi"))
    ours = json.loads((REPO / "webui" / "openapi.json").read_text())
    assert document["paths"].keys() == ours["paths"].keys()
    assert document["components"]["schemas"].keys() == ours["components"]["schemas"].keys()


def test_its_uvicorn_serves_the_api_and_the_dashboard(trixie: Chroot) -> None:
    user = ("setpriv", "--reuid=ebbgate", "--regid=ebbgate", "--clear-groups")
    done = trixie.run(*user, "sh", "-c", ANSWER, first=NETWORK)
    assert done.rc == 0, done.text
    health, page, *assets = json.loads(done.text)
    assert json.loads(health)["daemon"]["alive"] is False
    assert "app.js" in page and "app.css" in page
    assert assets == [(REPO / "build/webui" / name).read_text() for name in ("app.js", "app.css")]


def test_the_manual_pages_and_the_catalogue_of_the_log_are_read(trixie: Chroot) -> None:
    assert "ebbgate: " in trixie.check("journalctl", "--list-catalog")
