"""What only a GPU needs: launching kernels, pinned result buffers, the value range of a tensor,
padding.
"""
