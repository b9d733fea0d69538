"""What several command lines show: results on stdout, as a JSON object or a few aligned lines;
formats of amounts, times and commands.
"""

import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from typing import Any


def print_json(data: Mapping[str, object]) -> None:
    """Print one strict JSON object on one line; an infinity or NaN in it is a bug and raises
    ValueError.
    """
    print(json.dumps(data, allow_nan=False))


def print_result(
    as_json: bool, facts: Mapping[str, object], fields: Iterable[tuple[str, str]]
) -> None:
    """Print facts as JSON, or fields (label, value) as text."""
    if as_json:
        print_json(facts)
    else:
        print_fields(fields)


def print_fields(fields: Iterable[tuple[str, str]]) -> None:
    """Print one line per field (label, value) that has a value, with the values aligned."""
    rows = [(label, value) for label, value in fields if value]
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        print(f"{label:{width}}  {value}")


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, such as those of a .csv file."""
    sys.stdout.writelines(f"{line}\n" for line in lines)


def amount(rate: float) -> str:
    """Format a rate with its SI prefix: "31.4 G"."""
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= factor:
            return f"{rate / factor:.3g} {prefix}"
    return f"{rate:.3g}"


def number(value: float) -> str:
    """Format a number to three digits, or to the next integer."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """Format a time with its unit, to three digits: "31.4 ms"."""
    return f"{number(seconds)} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def flat_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a configuration, those of tiles after the name of the tiles:
    "product.block_m".
    """
    flat: dict[str, Any] = {}
    for name, value in config.items():
        flat |= (
            {f"{name}.{inner}": field for inner, field in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
    return flat


def command_line(module: str, *words: object, **options: object) -> str:
    """Return the command that runs `module` with these arguments, quoted for a shell.

    Args:
        module: after python -m.
        words: the first arguments.
        options: the others by their names, with one value or several in a list or tuple; None and
            an empty list are left out.
    """
    every = ["python", "-m", module, *words]
    for name, value in options.items():
        values = (
            list(value) if isinstance(value, list | tuple) else [] if value is None else [value]
        )
        every += [f"--{name.replace('_', '-')}", *values] if values else []
    return shlex.join(f"{word:g}" if isinstance(word, float) else str(word) for word in every)
