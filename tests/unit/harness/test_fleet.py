# SPDX-License-Identifier: GPL-2.0-only
"""The targets of the scenario `fleet` are as many as it claims, its figures the stated ones."""

from __future__ import annotations

import json
from collections import Counter

from tests.bench.fleet import HOST_SERIES, RECORDED, TARGETS, VOLUME_SERIES, scrape_config
from tests.prometheus.stack import FLEET_RULES
from tests.unit.web import test_metrics


def test_each_process_is_as_many_targets_as_the_others() -> None:
    addresses = [f"127.0.0.1:{port}" for port in range(20)]
    (job,) = json.loads(scrape_config(addresses))["scrape_configs"]
    groups = job["static_configs"]
    assert len({each["labels"]["instance"] for each in groups}) == len(groups) == TARGETS
    assert set(Counter(each["targets"][0] for each in groups).values()) == {10}
    histories = {(each["targets"][0], each["labels"]["history"]) for each in groups}
    assert Counter(history for _, history in histories) == {"long": 10, "short": 10}


def test_the_stated_series_are_those_that_tests_count() -> None:
    assert (HOST_SERIES, VOLUME_SERIES) == (test_metrics.HOST_SERIES, test_metrics.VOLUME_SERIES)
    assert f"at most {RECORDED} series for each one" in FLEET_RULES.read_text()
