"""The names under which parameters of a query and fields of a form hold a credential, whatever it looks like.

Nothing here knows how a URL or a form is taken apart, or what a credential looks like.
"""

from __future__ import annotations

__all__ = ["is_secret_form_name", "is_secret_query"]

#: Parameters whose value is a credential, or is good for one upload only.
#: ``code`` is the key of an Azure function and the code of an OAuth redirect.
_SECRET_QUERY_NAMES = frozenset(
    {
        "access-key",
        "access-token",
        "access_key",
        "access_token",
        "accesskey",
        "accesstoken",
        "api-key",
        "api_key",
        "api_token",
        "apikey",
        "apitoken",
        "auth-token",
        "auth_key",
        "auth_token",
        "authkey",
        "authorization",
        "awsaccesskeyid",
        "bearer",
        "client_assertion",
        "client_secret",
        "code_verifier",
        "googleaccessid",
        "id_token",
        "jwt",
        "key",
        "ocp-apim-subscription-key",
        "passwd",
        "password",
        "private_key",
        "private_token",
        "pwd",
        "refresh_token",
        "secret",
        "secret_key",
        "session_token",
        "sig",
        "signature",
        "subscription-key",
        "subscription_key",
        "token",
        "upload_id",
        "x-api-key",
        "x-goog-api-key",
        "x-goog-credential",
        "x-goog-security-token",
        "x-goog-signature",
    }
)

#: Form fields that hold a credential whatever the API. The shorter names of a query (``code``, ``key``,
#: ``token``) are ordinary fields in a form: dropped, two different calls would share a key.
_SECRET_FORM_NAMES = frozenset(
    {
        "access_token",
        "api_key",
        "apikey",
        "client_assertion",
        "client_secret",
        "password",
        "private_key",
        "refresh_token",
        "secret_key",
    }
)


def is_secret_form_name(name: str) -> bool:
    """Tell whether a form field of this name holds a credential, and nothing that tells calls apart."""
    return name.lower() in _SECRET_FORM_NAMES


#: Names that are a credential in one API and a country or a page in the next: their value tells.
_AMBIGUOUS_QUERY_NAMES = frozenset({"auth", "code", "hmac"})
_SHORTEST_CREDENTIAL = 16


def is_secret_query(name: str, value: str) -> bool:
    """Say whether a query parameter holds a credential.

    Args:
        name: The decoded name.
        value: The decoded value, or the value as sent.
    """
    lower = name.lower()
    if lower in _AMBIGUOUS_QUERY_NAMES:
        return len(value) >= _SHORTEST_CREDENTIAL
    return lower in _SECRET_QUERY_NAMES or lower.startswith("x-amz-")
