"""What the SDKs themselves make of a replay: ``nox -s sdk`` and ``nox -s sdk_old``."""
