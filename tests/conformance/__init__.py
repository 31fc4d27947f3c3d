"""Hold the stream invariants against recorded exchanges, with the real SDKs as judges.

``python -m tests.conformance FOLDER`` plays each recorded exchange once through a transport that records,
then through transports that replay, cut in eight ways, and lets the SDK of the wire format compare:

1. the SDK's own final object from the replayed stream equals the one from the stream as received;
2. the joined text of each slot is equal to the character, and everything else was said in the same order;
3. a conversation closes: the next request, built by the SDK from a replayed answer, has the fingerprint that
   it has when it is built from the live one.

A folder holds JSONL files, named for the wire format, one exchange a line::

    {"id": ..., "request": {"method", "url", "headers", "body" or "body_b64"},
     "response": {"status", "headers", "body_text" or "body_b64"}, "tags": [...]}

``cases/`` has such a file of exchanges made up here, one for each trap.
"""
