"""The folder of machine code that TRI_APSP_CACHE_DIR names, such as one in a container image, and
its manifest, which says for which devices and versions the code was made.

The caches of Numba and Triton themselves decide which entries fit; the manifest says why none does.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tri_apsp.errors import ApspWarning
from tri_apsp.messages import warn_caller

VARIABLE = "TRI_APSP_CACHE_DIR"

_KERNELS = Path(__file__).parent / "kernels"
_MANIFEST = "manifest.json"
_WARNED: set[Path] = set()

Entry = dict[str, str]
"""What machine code was made for: "device", which is "cpu" or such as "sm_90", and versions."""


def cache_folder() -> Path | None:
    """Return the folder that the variable names, or None."""
    named = os.environ.get(VARIABLE)
    return Path(named).absolute() if named else None


@cache
def contents(*folders: str) -> str:
    """Return a hash of the device code in `folders` of tri_apsp/kernels, which depends neither on
    the path of the package nor on the times of files.
    """
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders for path in (_KERNELS / folder).glob("*.py")):
        code = path.read_bytes()
        digest.update(b"%s %d %s" % (path.name.encode(), len(code), code))
    return digest.hexdigest()[:16]


def begin_to_fill(folder: Path) -> None:
    """Make a folder, and give no warning of what it holds now.

    Raises:
        OSError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        _WARNED.add(folder)


def record(folder: Path, entries: Iterable[Entry]) -> None:
    """Add entries to the manifest of a folder, once it is filled for them; a damaged one is
    replaced.

    Raises:
        OSError: the folder cannot be written, and lacks one.
    """
    found = _read(folder)
    known = found or []
    new = [entry for entry in entries if entry not in known]
    if found is not None and not new:
        return
    # Of no other process, also where several containers share the folder.
    place, name = tempfile.mkstemp(dir=folder, prefix=_MANIFEST)
    part = Path(name)
    try:
        os.close(place)
        part.write_text(json.dumps(known + new, indent=2) + "\n", encoding="utf-8")
        part.chmod(0o644)
        part.replace(folder / _MANIFEST)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def warn_unless_made_for(here: Entry) -> None:
    """Warn, once per process, if the folder of the variable was filled, but only for other machines
    of this kind, a CPU or a GPU, or by other versions.
    """
    folder = cache_folder()
    known = [] if folder is None else _read(folder)
    if folder is None or folder in _WARNED or (known is not None and here in known):
        return
    found = "has a manifest that cannot be read"
    if known is not None:
        others = [each for each in known if (each["device"] == "cpu") == (here["device"] == "cpu")]
        if not others:
            return
        differs = min(([k for k in here if each.get(k) != here[k]] for each in others), key=len)
        made_for = {", ".join(f"{k} {each.get(k)}" for k in differs) for each in others}
        here_is = ", ".join(f"{k} {here[k]}" for k in differs)
        found = f"belongs to {' and '.join(sorted(made_for))}, while here is {here_is}"
    _WARNED.add(folder)
    warn_caller(
        f"{VARIABLE} must name a folder that was filled for this machine, but {folder} {found}; "
        "kernels are compiled here, until `python -m tri_apsp warmup` has filled it.",
        ApspWarning,
    )


def _read(folder: Path) -> list[Entry] | None:
    """Return the entries of the manifest: [] without one, None if it is damaged."""
    try:
        entries = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        return [{**entry, "device": str(entry["device"])} for entry in entries]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError):
        return None
