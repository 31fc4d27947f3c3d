"""Who runs a server, as far as its name tells.

Formats are spoken by servers of all kinds, and the defaults that a provider documents hold for its own.
Nothing here knows a format, and nothing asks the network.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

__all__ = ["decides_sampling", "is_local", "is_mistral", "is_openai"]

_NAMES = frozenset({"localhost", "host.docker.internal"})
_ENDINGS = (".local", ".internal", ".lan")


def is_local(host: str) -> bool:
    """Tell whether a host is one of the user's own: what it serves, and how, is set there."""
    return host in _NAMES or host.endswith(_ENDINGS) or _is_private(host)


#: The networks of RFC 1918, RFC 4193, and of one machine or one cable. Not ``ip_address.is_private``, which
#: says another thing from one release of Python to the next.
_NETWORKS = (
    "10.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
)


@lru_cache(maxsize=512)
def _is_private(host: str) -> bool:
    if not host[-1:].isdigit() and ":" not in host:
        return False  # Not an address: settled without parsing one.
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return any(address in ipaddress.ip_network(network) for network in _NETWORKS)


# -- servers of OpenAI's formats -----------------------------------------------------------------------

# Servers that are documented to take sampling defaults from the model that they serve:
# - vLLM reads them from the model repository's generation_config.json (vllm-project/vllm#11164), Ollama from
#   the Modelfile (ollama.readthedocs.io/en/modelfile), llama.cpp and LM Studio from their own settings; these
#   run on the user's own hosts;
# - OpenRouter publishes default_parameters per model (openrouter.ai/docs, Models);
# - Perplexity's defaults are 0.2 and 0.9 (docs.perplexity.ai, chat completions);
# - Mistral's temperature depends on the model (docs.mistral.ai, chat completion);
# - Hugging Face's router hands the call to a provider that decides.
_DECIDE_SAMPLING = frozenset(
    {"openrouter.ai", "api.perplexity.ai", "api.mistral.ai", "router.huggingface.co"}
)


def decides_sampling(host: str) -> bool:
    """Tell whether the server at a host is documented to take sampling defaults from the model."""
    return host in _DECIDE_SAMPLING or is_local(host)


def is_openai(host: str) -> bool:
    """Tell whether a host is OpenAI's, or Azure's with OpenAI's models."""
    return host.endswith((".openai.com", ".openai.azure.com", ".cognitiveservices.azure.com"))


# -- servers of Mistral's formats ----------------------------------------------------------------------


def is_mistral(host: str) -> bool:
    """Tell whether a host is Mistral's (``api``, ``codestral``), or Google's or Azure's with its models."""
    return host.endswith((".mistral.ai", ".googleapis.com", ".services.ai.azure.com", ".models.ai.azure.com"))
