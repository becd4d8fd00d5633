"""Slow, obvious answers that the tests hold the package to. Nothing here imports it."""
