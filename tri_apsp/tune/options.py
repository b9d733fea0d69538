"""The options of python -m tri_apsp.tune."""

import argparse
from pathlib import Path

from tri_apsp import tuned
from tri_apsp.console.exit_status import BAD_INPUT, FAILED, INTERRUPTED, Parser
from tri_apsp.console.options import DEVICES, ENGINE, add_options, json_of, option
from tri_apsp.semirings import DTYPES_BY_NAME, SIGNS
from tri_apsp.tune.tasks import BUDGETS, studies_directory
from tri_apsp.tuned.records import RECORDS

_DESCRIPTION = """\
Find the fastest configurations for this machine, and write them to tuned files,
which later solves use. Without options, all kernels of the GPU's best engine
are tuned, or those of the CPU if there is no GPU.
"""

_EPILOG = """\
The configuration in use stays unless another is faster by more than 2% and by
more than the noise. Ctrl-C or SIGTERM ends the search: finished tasks are
written, and --resume continues the others from their trials.

Tuned files are written to <directory>/<device>/<engine>-<kernel>-<dtype>.json;
the directory is now
    {directory}
To use a file on another machine with the same device, copy it there into the
folder of the same name; to stop using a file, delete it. `python -m tri_apsp
info` lists the files that are found, and why one is not used.

`{prog} --page DIR` draws the trials of the
last searches as a page; the trials are kept in
    {studies}
To go back to the configurations of before, delete the tuned files of the
device; to forget the trials too, delete its file in that folder.

Environment: TRI_APSP_CONFIG_DIR names the directory of tuned files that is
searched first and written to; TRI_APSP_TUNE sets what happens if nothing was
tuned for a solve: warn (default), off or require.

exit status:
    0  done
  {failed:3}  some task could not be tuned, --verify found an entry that is stale or
       failed, a size does not fit the memory, or the engine cannot run here
  {bad_input:3}  an argument breaks a rule, or a file cannot be used
  {interrupted:3}  interrupted (Ctrl-C, SIGTERM)
"""

_QUICK, _FULL = BUDGETS["quick"], BUDGETS["full"]

_WHAT = (
    option(
        "--n",
        type=int,
        nargs="+",
        default=[],
        help="sizes, which must fit the memory; a kernel that a solve runs at a smaller size is "
        "tuned at that size, and batches that do not fit are skipped; default: those of the effort",
    ),
    option(
        "--graph",
        metavar="FILE",
        help="tune what the distances of all pairs of this file run, and nothing else, and print "
        "their time before and after; of a sparse graph there is something to tune on a GPU only; "
        "not with --kernel, --n or --sign",
    ),
    DEVICES,
    ENGINE,
)
_HOW = (
    option(
        "--effort",
        choices=list(BUDGETS),
        default="quick",
        help=f"quick (default): up to {_QUICK.seconds:.0f} s per task; "
        f"full: up to {_FULL.seconds:.0f} s",
    ),
    option(
        "--trials",
        type=int,
        metavar="T",
        help=f"at most T configurations per task, or all if there are fewer; default: "
        f"{_QUICK.trials} quick, {_FULL.trials} full",
    ),
    option(
        "--time-budget",
        type=float,
        metavar="SECONDS",
        help="time for all tasks; default: the time of the effort for each task",
    ),
    option("--seed", type=int, default=0, help="seed of the sampler; default: 0"),
    option(
        "--save-dir",
        type=Path,
        metavar="DIR",
        help="directory of tuned files, which solves find with TRI_APSP_CONFIG_DIR=DIR; "
        "default: the one below",
    ),
    option(
        "--storage",
        metavar="URL",
        help="where trials are kept, which several hosts may share at once: a journal file in a "
        "shared folder, or a database of Optuna such as sqlite:///searches.db; unfinished searches "
        "are joined; default: the journal of this machine",
    ),
    option(
        "--resume",
        action="store_true",
        help="continue the newest searches, and leave out the "
        "tasks that were finished with the same --effort, --trials and --time-budget",
    ),
    option("--force", action="store_true", help="replace tuned files that cannot be used"),
)
_INSTEAD = (
    *(
        option(f"--{name}", dest="action", action="store_const", const=name, help=text)
        for name, text in (
            (
                "dry-run",
                "show the tasks, their files, and how many configurations they choose from",
            ),
            ("show", "show the configurations that are used here"),
            (
                "verify",
                "measure the saved configurations and the defaults again; each entry holds, is "
                "within noise, is stale (the default is better), or failed",
            ),
        )
    ),
    option(
        "--page",
        type=Path,
        metavar="DIR",
        help="write DIR/searches.html, the page of the searches; needs matplotlib",
    ),
)
_JSON = json_of(
    "device, seconds, interrupted, left_out, files, results; or the output of the option given "
    "instead of tuning"
)


def build_parser(prog: str) -> Parser:
    """Return the parser; `prog` is the command that was typed."""
    parser = Parser(
        prog=prog,
        description=_DESCRIPTION,
        epilog=_EPILOG.format(
            directory=tuned.save_directory(),
            prog=prog,
            studies=studies_directory(),
            failed=FAILED,
            bad_input=BAD_INPUT,
            interrupted=INTERRUPTED,
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(
        parser.add_argument_group("what to tune"),
        *(
            option(
                name,
                dest=dest,
                nargs="+",
                choices=list(choices),
                default=[],
                metavar=name[2:].upper(),
                help=f"{', '.join(choices)}; default: those of the {every}",
            )
            for name, dest, choices, every in (
                ("--kernel", "kernels", dict.fromkeys(kernel for _, kernel in RECORDS), "engine"),
                ("--dtype", "dtypes", DTYPES_BY_NAME, "effort"),
                ("--sign", "signs", SIGNS, "effort"),
            )
        ),
        *_WHAT,
    )
    add_options(parser.add_argument_group("how"), *_HOW)
    instead = parser.add_argument_group("instead of tuning")
    add_options(instead.add_mutually_exclusive_group(), *_INSTEAD)
    add_options(parser, _JSON)
    return parser
