"""Settings."""

from support import config


def test_the_address_ends_without_a_slash(monkeypatch) -> None:
    """One is added with each path."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:9/v1/")
    assert config.base_url() == "http://localhost:9/v1"
