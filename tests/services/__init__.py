"""A service that asks a model: recorded, replayed, under load, and how its process ends."""
