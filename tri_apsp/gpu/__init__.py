"""Code for GPUs alone: launching kernels, pinned result buffers, the value range of a tensor,
padding.
"""
