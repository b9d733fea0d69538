"""python -m tri_apsp solve | path | sssp | table | nearest | hops | generate | bench | tune"""

import sys

from tri_apsp.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
