"""A talk for each framework: a streamed conversation in which the framework itself runs a tool.

Each is what a user writes, with the retries and fallbacks that the framework offers, and is called with a
system prompt and with the path of a cassette, or with ``None`` where one is open around it.
It returns what the user gets to see: tool calls, text and usage.
"""
