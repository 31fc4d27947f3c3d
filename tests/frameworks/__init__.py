"""Frameworks that make clients of their own, or hand one on to an SDK: ``nox -s frameworks``."""
