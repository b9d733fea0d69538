"""tri_apsp inside other libraries; NetworkX finds its part by entry points in pyproject.toml."""
