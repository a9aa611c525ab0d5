# SPDX-License-Identifier: GPL-2.0-only
"""The examples for policies of many machines do what they say, on this machine."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from tests.house_rules import REPO
from tests.policy_texts import EXAMPLE, SHIPPED
from tests.programs import environment
from tests.prometheus import program

pytestmark = pytest.mark.timeout(300)
"""The first test of the playbook may have to fetch Ansible."""

EXAMPLES = REPO / "packaging" / "examples"
BAD = "version: 1\nname: bad\nobjectives: {read_latncy_p99: 30ms}\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one policy, and programs as a machine has them in its PATH."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/nas.yaml").write_text(EXAMPLE)
    (tmp_path / "bin").mkdir()
    commands = {
        "ebbgate": f'exec {sys.executable} -m ebbgate "$@"',
        "systemctl": f'echo "$@" >> {tmp_path}/systemctl.log',
    }
    for name, line in commands.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def path_of(repository: Path) -> str:
    return f"{repository / 'bin'}:{os.environ['PATH']}"


# ---- CI -----------------------------------------------------------------------------------------
def run_job(repository: Path) -> int:
    """Run the lines of the job as GitLab's shell does; return the exit code."""
    job = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text())["check-policies"]
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join(job["script"])],
        cwd=repository,
        env={**environment(), "PATH": path_of(repository)},
        check=False,
    ).returncode


def test_the_job_passes_where_all_policies_are_right(repository: Path) -> None:
    for policy in SHIPPED:
        shutil.copy(policy, repository / "policies")
    assert run_job(repository) == 0
    assert json.loads((repository / "code-quality.json").read_text()) == []


def test_the_job_fails_and_reports_each_error_at_its_line(repository: Path) -> None:
    (repository / "policies/bad.yaml").write_text(BAD)
    assert run_job(repository) == 78
    (found,) = json.loads((repository / "code-quality.json").read_text())
    assert found["location"] == {"path": "policies/bad.yaml", "lines": {"begin": 3}}
    assert found["description"].endswith("did you mean read_latency_p99?")
    assert found["fingerprint"]


# ---- configuration management -------------------------------------------------------------------
def run_playbook(repository: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the playbook on this machine, with a folder of the test for /etc/ebbgate/policies.d."""
    playbook = Path(program.find("ansible-playbook"))
    modules = playbook.parents[1] / "lib/python3/dist-packages"
    words = ["-i", "localhost,", "-c", "local", str(EXAMPLES / "ansible-policies.yml")]
    words += ["-e", f"policies={repository / 'policies'}", "-e", "ansible_become=false"]
    words += ["-e", f"policy_dir={repository / 'policies.d'}"]
    words += ["-e", "ansible_python_interpreter=/usr/bin/python3"]
    return subprocess.run(
        ["/usr/bin/python3", str(playbook), *words, *more],
        cwd=repository,
        env={
            "PATH": path_of(repository),
            "HOME": str(repository),
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": f"{modules}:{REPO / 'controller'}",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def modes(repository: Path) -> tuple[int, int]:
    """Return those of the folder of policies and of the policy in it."""
    folder = repository / "policies.d"
    return stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE((folder / "nas.yaml").stat().st_mode)


@pytest.mark.full
def test_the_playbook_installs_right_policies_and_reloads_once(repository: Path) -> None:
    (repository / "policies.d").mkdir()
    for changed in ("changed=2", "changed=0"):
        found = run_playbook(repository)
        assert found.returncode == 0, found.stdout + found.stderr
        assert changed in found.stdout
    assert (repository / "policies.d/nas.yaml").read_text() == EXAMPLE
    assert modes(repository) == (0o755, 0o644)
    assert (repository / "systemctl.log").read_text() == "try-reload-or-restart ebbgated\n"


@pytest.mark.full
def test_a_dry_run_of_the_playbook_checks_and_installs_nothing(repository: Path) -> None:
    found = run_playbook(repository, "--check")
    assert found.returncode == 0, found.stdout + found.stderr
    assert not (repository / "policies.d").exists()
    (repository / "policies/bad.yaml").write_text(EXAMPLE.replace("version: 1", "version: x"))
    found = run_playbook(repository, "--check")
    assert found.returncode != 0
    assert "bad.yaml" in found.stdout


@pytest.mark.full
@pytest.mark.parametrize("before", [None, 0o644])
def test_the_playbook_makes_a_folder_that_the_daemon_can_enter(
    repository: Path, before: int | None
) -> None:
    """An earlier playbook gave it the mode of the files."""
    if before is not None:
        (repository / "policies.d").mkdir()
        (repository / "policies.d").chmod(before)
    found = run_playbook(repository)
    assert found.returncode == 0, found.stdout + found.stderr
    assert modes(repository) == (0o755, 0o644)


def test_the_playbook_gives_no_mode_of_files_to_the_folder() -> None:
    (play,) = yaml.safe_load((EXAMPLES / "ansible-policies.yml").read_text())
    tasks = {each["name"]: each for block in play["tasks"] for each in block.get("block", ())}
    assert "mode" not in tasks["Install them"]["ansible.builtin.copy"]
    assert tasks["Make their folder"]["ansible.builtin.file"]["mode"] == "0755"


@pytest.mark.parametrize(
    ("names", "is_right"),
    [([], True), (["nas evening.yaml"], True), (["nas.yml"], True), (["bad one.yml"], False)],
)
def test_the_playbook_checks_files_of_any_name(
    names: list[str], is_right: bool, repository: Path
) -> None:
    """As its shell does, which `find` hands names with spaces, or none at all."""
    (play,) = yaml.safe_load((EXAMPLES / "ansible-policies.yml").read_text())
    tasks = {each["name"]: each for block in play["tasks"] for each in block.get("block", ())}
    line = tasks["Check them"]["ansible.builtin.shell"]
    staged = repository / "staged"
    staged.mkdir()
    for name in names:
        (staged / name).write_text(BAD if "bad" in name else EXAMPLE)
    done = subprocess.run(
        ["/bin/sh", "-c", line.replace("{{ staged.path }}", str(staged))],
        env={**environment(), "PATH": path_of(repository)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == is_right, done.stdout + done.stderr
    if not is_right:
        assert "did you mean read_latency_p99?" in json.loads(done.stdout)["problems"][0]["text"]


@pytest.mark.full
def test_the_playbook_leaves_a_machine_alone_where_a_policy_is_wrong(repository: Path) -> None:
    (repository / "policies.d").mkdir()
    (repository / "policies.d/nas.yaml").write_text("version: 1\nname: old\n")
    (repository / "policies/bad.yaml").write_text(BAD)
    found = run_playbook(repository)
    assert found.returncode == 2
    assert "did you mean read_latency_p99?" in found.stdout
    assert [each.name for each in (repository / "policies.d").iterdir()] == ["nas.yaml"]
    assert (repository / "policies.d/nas.yaml").read_text() == "version: 1\nname: old\n"
    assert not (repository / "systemctl.log").exists()
