# SPDX-License-Identifier: GPL-2.0-only
"""`ebbgate warm --relation` warms a table of a real PostgreSQL. I/O: the guest."""

from __future__ import annotations

import json

import pytest

from tests.bench.postgres_volume import past_cache
from tests.bench.product import Product
from tests.bench.warm_file import job_ended, missed, wear_in
from tests.lab import host
from tests.lab.bcache_stack import BcacheStack
from tests.lab.conftest import without_lab
from tests.lab.errors import CommandFailed, NoLab
from tests.lab.layout_stacks import MOUNT, mounted
from tests.lab.postgres import DATABASE, PostgresServer, Tables, cluster
from tests.lab.session import Session

TABLES = Tables(2, 8)
DATA = f"{MOUNT}/data"
CONNECTION = ("--postgres", "host=/run/postgres user=bench")


def put_cluster(guest: Session) -> None:
    try:
        found = cluster(TABLES)
    except NoLab as reason:
        without_lab(reason)
    source = guest.share / "small-cluster"
    if not source.exists():
        host.run(["cp", "-a", found, source])
    guest.check(f"cp -a {source} {DATA} && chown -R postgres: {DATA} && sync", timeout_s=300)


@pytest.mark.full
def test_a_table_is_warmed_and_another_is_not(guest: Session) -> None:
    with BcacheStack(guest) as stack:
        stack.expect_changed("writeback_rate")
        wear_in(guest, stack)
        with mounted(guest, "ext4", stack.device):
            with past_cache(stack):
                put_cluster(guest)
            with PostgresServer(guest, DATA, memory_mib=64) as server, Product(guest) as product:
                warmed, other = server.files(TABLES.names)
                asked = ("--relation", f"{DATABASE}.t00", *CONNECTION)
                answer = json.loads(product.cli("warm", *asked, "--json"))
                job = job_ended(product, 240)
                assert (job["state"], job["left_out"]) == ("done", {}), job["why"]
                assert warmed in json.dumps(answer)
                assert missed(guest, stack, 4096, warmed) <= 0.01
                assert missed(guest, stack, 4096, other) > 0.9
                with pytest.raises(CommandFailed, match=f"no such relation: {DATABASE}.none"):
                    product.cli("warm", "--relation", f"{DATABASE}.none", *CONNECTION)
