"""Where the model is, and who we are there."""

import os


def base_url() -> str:
    """Give the address of the API, without a slash at its end."""
    return os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/")


def headers() -> dict[str, str]:
    """Give the headers of every call."""
    return {"authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'missing')}"}


MODEL = "gpt-4o-mini"
TIMEOUT = 10.0
