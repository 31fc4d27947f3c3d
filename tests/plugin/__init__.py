"""The plugin of pytest, on small projects that are run as a user runs them."""
