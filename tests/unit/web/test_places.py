# SPDX-License-Identifier: GPL-2.0-only
"""A client cannot keep others from a place."""

from __future__ import annotations

import pytest

from ebbgate.web.errors import ApiError
from ebbgate.web.places import Places


def refused(places: Places, client: str) -> bool:
    try:
        with places.hold(client):
            return False
    except ApiError as error:
        assert (error.status, str(error)) == (503, "busy")
        return True


def test_a_client_has_half_of_the_places_and_leaves_the_others() -> None:
    places = Places(4, "busy")
    with places.hold("uid 1"), places.hold("uid 1"):
        assert refused(places, "uid 1")
        with places.hold("uid 2"):
            assert not refused(places, "uid 3")
            with places.hold("uid 3"):
                assert refused(places, "uid 2")
                assert refused(places, "uid 4")
            assert not refused(places, "uid 4")
    assert not refused(places, "uid 1")


def test_a_place_is_given_back_after_an_error() -> None:
    places = Places(2, "busy")
    with pytest.raises(OSError, match="gone"), places.hold("uid 1"):
        raise OSError("gone")
    assert not refused(places, "uid 2")
