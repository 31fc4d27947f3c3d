"""Any call that no other dialect knows: JSON, text, binary, forms, multipart, embeddings, files.

Nothing is folded and nothing renamed, because no documentation says what means the same.
Streams are stored event by event as they came.
"""

from __future__ import annotations

from .._paths import Paths
from ._dialect import Dialect, Endpoint

__all__ = ["GENERIC"]

GENERIC = Dialect(
    name="generic",
    # Whatever the model speaks, a stream of Bedrock's comes in messages (botocore's service model of
    # bedrock-runtime: InvokeModelWithResponseStream, ConverseStream).
    endpoints=(
        Endpoint(
            "/model/[^/]+/(?:invoke-with-response-stream|converse-stream)",
            wants_stream=True,
            has_binary_streams=True,
        ),
    ),
    # The names under which conversational text stands in every format seen so far. The arguments of a tool
    # call and schemas are none, even where one of their members is named ``content``.
    text=Paths(
        ["**.content", "**.text", "**.system", "**.instructions"],
        closed=("args", "arguments", "default", "input", "input_schema", "parameters", "schema"),
    ),
    # The tokens for servers of tools, where a known format is counted, batched or compacted.
    credentials=Paths(
        [
            f"{body}{path}"
            for body in ("", "requests[*].params.")
            for path in (
                "mcp_servers[*].authorization_token",
                "tools[?@.type=='mcp'].authorization",
                "tools[?@.type=='mcp'].headers",
            )
        ],
        late=True,
    ),
    turns=("messages", "contents"),
    prefill_roles=frozenset({"assistant", "model"}),
)
