"""Lists of edges in chunks of bounded length, so that a vertex of many edges occupies many
programs.
"""

import torch

from tri_apsp.graphs.sparse import EdgeLists


def chunks_of(lists: EdgeLists, most: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the vertex of each chunk, (chunks,) of int32, and its first edge and its end; at most
    `most` edges in each.
    """
    offsets = lists.offsets
    parts = offsets.diff().add(most - 1).div(most, rounding_mode="floor")
    vertices = torch.arange(len(parts), device=offsets.device).repeat_interleave(parts)
    place = torch.arange(len(vertices), device=offsets.device) - (parts.cumsum(0) - parts)[vertices]
    firsts = offsets[vertices] + most * place
    return vertices.to(torch.int32), firsts, torch.minimum(firsts + most, offsets[vertices + 1])
