"""A host is told apart by its name, without the network."""

from __future__ import annotations

import pytest

from httpx_cassette.dialects._hosts import is_local


@pytest.mark.parametrize(
    "host",
    ["localhost", "host.docker.internal", "gpu.lan", "x.local", "10.0.0.1", "127.0.0.1", "::1", "[fd00::1]"],
)
def test_a_server_of_the_users_own_is_known(host: str) -> None:
    """By its name, or by an address that is not reached from elsewhere."""
    assert is_local(host)


@pytest.mark.parametrize("host", ["", "api.openai.com", "8.8.8.8", "999.1.1.1", "a:b", "1.2.3", "local"])
def test_any_other_host_is_not(host: str) -> None:
    """What is no address is not taken for one."""
    assert not is_local(host)
