"""The steps of a solve, one module each; run.py puts them in their order."""
