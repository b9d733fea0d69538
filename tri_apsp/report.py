"""Says where the studies are, which were `tri_apsp.report` in 0.2 and are no longer installed."""

import sys

_MOVED = (
    "`tri_apsp.report` is now `python -m reports`, from the root of a clone; the page of a tuning "
    "run is `python -m tri_apsp.tune --page DIR`."
)

if __name__ == "__main__":
    sys.exit(f"error: {_MOVED}")
raise ModuleNotFoundError(_MOVED, name=__name__)
