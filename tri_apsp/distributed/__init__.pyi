from .processes import shortest_paths

__all__ = ["shortest_paths"]
