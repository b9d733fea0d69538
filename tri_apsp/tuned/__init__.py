"""Tuned configurations: the fastest found on a device, kept in files for later solves of similar
size.

`find` is the lookup; a solve makes a `LookupCall` and asks for its `config_for_call`. For users:

    with tuned.using(config):   force a configuration on all solves inside
    tuned.directories()         the directories that are searched; a file copied into the folder
                                of its GPU in one of them is found
    tuned.save_directory()      the one that the tuner writes to
    tuned.files()               the paths of all files, of any GPU
    tuned.load(path)            read a file
    tuned.save(file)            write one, merged with what is there
    tuned.reload()              read all files again

`python -m tri_apsp.tune` writes the files; the reference has their schema.
"""

from tri_apsp.tuned.hashes import kernel_hash
from tri_apsp.tuned.lookup import (
    LookupCall,
    call_of,
    config_for_call,
    environment,
    find,
    lookups,
    using,
    with_forced,
)
from tri_apsp.tuned.records import KERNELS, allowed_fields
from tri_apsp.tuned.store import (
    directories,
    existing,
    files,
    load,
    new_file,
    path_of,
    reload,
    require_writable,
    save,
    save_directory,
    searching,
    unused_because,
    usable,
)

__all__ = [
    "KERNELS",
    "LookupCall",
    "allowed_fields",
    "call_of",
    "config_for_call",
    "directories",
    "environment",
    "existing",
    "files",
    "find",
    "kernel_hash",
    "load",
    "lookups",
    "new_file",
    "path_of",
    "reload",
    "require_writable",
    "save",
    "save_directory",
    "searching",
    "unused_because",
    "usable",
    "using",
    "with_forced",
]
