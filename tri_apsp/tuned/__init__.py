"""Tuned configurations: the fastest, or most efficient, found on a device, kept in files for later
solves of similar size.

`find` is the lookup; a solve makes a `Call` and asks for its `config_for_call`. For users:

    tuned.load(path)            read a file
    tuned.save(file)            write one, merged with what is there
    tuned.remember(file)        use one in this process only
    tuned.reset()               remove this machine's files from the user's directory
    with tuned.using(config):   force a configuration on all solves inside
    tuned.files()               the paths of all files, of any GPU
    tuned.freeze(path)          one directory for every rank and run
    tuned.export_file(path)     one file with what was tuned here, to send in
    tuned.import_file(path)     save the files of an export

`python -m tri_apsp.tune` writes the files; their schema is in tuning/README.md.
"""

from tri_apsp.semirings import SIGNS
from tri_apsp.tuned.call import Call, call_of
from tri_apsp.tuned.compatibility import refusal
from tri_apsp.tuned.export import export_file, import_file
from tri_apsp.tuned.forced import using, with_forced
from tri_apsp.tuned.freezing import freeze
from tri_apsp.tuned.hashes import kernel_hash
from tri_apsp.tuned.lookup import environment, find
from tri_apsp.tuned.misses import config_for_call, issue_warnings
from tri_apsp.tuned.objective import DEFAULT_OBJECTIVE, OBJECTIVES, Objective, wanted_objective
from tri_apsp.tuned.other_gpus import Use, use_of
from tri_apsp.tuned.paths import (
    checkout_directory,
    directories,
    file_name,
    files,
    is_frozen,
    save_directory,
)
from tri_apsp.tuned.reading import load, reload, remember, remembering
from tri_apsp.tuned.records import KERNELS, allowed_fields
from tri_apsp.tuned.removal import reset
from tri_apsp.tuned.store import existing, new_file, path_of, save

__all__ = [
    "DEFAULT_OBJECTIVE",
    "KERNELS",
    "OBJECTIVES",
    "SIGNS",
    "Call",
    "Objective",
    "Use",
    "allowed_fields",
    "call_of",
    "checkout_directory",
    "config_for_call",
    "directories",
    "environment",
    "existing",
    "export_file",
    "file_name",
    "files",
    "find",
    "freeze",
    "import_file",
    "is_frozen",
    "issue_warnings",
    "kernel_hash",
    "load",
    "new_file",
    "path_of",
    "refusal",
    "reload",
    "remember",
    "remembering",
    "reset",
    "save",
    "save_directory",
    "use_of",
    "using",
    "wanted_objective",
    "with_forced",
]
