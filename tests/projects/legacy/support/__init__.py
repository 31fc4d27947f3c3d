"""Support tickets, sorted, answered and summed up by a model."""
