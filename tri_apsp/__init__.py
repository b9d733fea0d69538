"""All-pairs shortest paths on GPUs and CPUs: torch tensors in, every distance out.

A name of __init__.pyi is imported when it is first used, so that a command line handles Ctrl-C and
prints its help before torch is imported.
"""

from lazy_loader import attach_stub

__version__ = "0.3.0.dev0"

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
