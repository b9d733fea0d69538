"""The command that runs a module of this package in another Python process."""

import sys

_CODE = (
    "import runpy, sys; sys.path[:] = {path!r}; "
    "runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
)


def module_command(module: str) -> list[str]:
    """Return a command that runs `module`, as `python -m` does, with the search path that this
    process has now.

    The module then belongs to the copy of the package that runs here. `python -m` would prefer one
    in the current folder, and would not know folders that a program has put on `sys.path`.
    Arguments of the module may be added.
    """
    path = [folder for folder in sys.path if isinstance(folder, str)]
    return [sys.executable, "-c", _CODE.format(path=path, module=module)]
