"""Inputs that are looked for by coverage: ``python -m tests.fuzz`` runs every target for a while."""
