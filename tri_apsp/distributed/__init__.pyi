from .communicator import RankError
from .processes import shortest_paths

__all__ = ["RankError", "shortest_paths"]
