"""The key document of a recording: what its key is computed of, and what it is compared by.

Of the request as it is stored, and of what the line keeps beside it. Which policy and which wire format count
is for the caller to say: those of the line, or those in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._call import Json
from ._fingerprint import Draft, key_document
from ._policy import KeyPolicy
from ._recording import Recording
from ._url import host_of

if TYPE_CHECKING:
    from .dialects import Dialect

__all__ = ["document_of"]


def document_of(
    recording: Recording, policy: KeyPolicy, dialect: Dialect, *, request: dict[str, Json] | None = None
) -> dict[str, Json]:
    """Return the key document of a recording; long strings in it are no digests yet.

    Args:
        recording: The recording.
        policy: What enters the key and what does not.
        dialect: The wire format that the request is taken for.
        request: Its request, where it has been read and may be used up; reading it is half of the work.

    Raises:
        Exception: One of ``INCOMPARABLE``: there is no request that a key can be computed of.
    """
    request = recording.request if request is None else request
    prompt_files = recording.policy.get("prompt_files")
    # What is stored was redacted before, so that its host is the one that entered the key.
    host = host_of(str(request["url"]))
    draft = Draft(request, dialect, policy, host, may_have_dollar=b'"$' in recording.line)
    return key_document(draft, prompt_files if isinstance(prompt_files, dict) else None)
