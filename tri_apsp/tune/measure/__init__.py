"""Checking a configuration for correctness, and timing it."""
