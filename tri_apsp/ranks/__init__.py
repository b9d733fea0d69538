"""Ranks of a call: what they tell each other, and those that are threads of this process."""
