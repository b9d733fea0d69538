"""Every study within one budget, the shortest first."""

from __future__ import annotations

import argparse
import sys
import time

from tri_apsp.console.exit_status import FAILED
from tri_apsp.device import resolve
from tri_apsp.errors import ApspError, EngineError
from tri_apsp.report.run import default_budget, run_study
from tri_apsp.report.studies import STUDIES, study_of

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Run the studies one after another, and return the exit status: that of a failure if one
    failed.

    A study gets an equal share of the time that is left, so that the later, longer ones get what
    the first ones leave. A study that the device cannot run is named and passed over.

    Raises:
        InputError: the device does not exist.
    """
    resolve(args.device)  # raises if it does not exist: once, not for each study
    begin, status = time.monotonic(), 0
    seconds = args.budget if args.budget is not None else len(STUDIES) * default_budget(args.device)
    for index, name in enumerate(STUDIES):
        left = seconds - (time.monotonic() - begin)
        share = None if args.render_only else max(1, int(left / (len(STUDIES) - index)))
        own = argparse.Namespace(**vars(args) | {"budget": share})
        print(name if share is None else f"{name}: {share} s", file=sys.stderr)
        try:
            run_study(study_of(name), own)
        except KeyboardInterrupt:
            print("to continue with all studies, repeat the command.", file=sys.stderr)
            raise
        except EngineError as error:
            print(f"{name}: not on this device: {error}", file=sys.stderr)
        except ApspError as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = FAILED
    return status
