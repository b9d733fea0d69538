"""tri_apsp inside other libraries. NetworkX finds its part by the entry points in pyproject.toml."""
