"""The tests, a package so that they can share helpers and run as ``python -m tests.conformance``."""
