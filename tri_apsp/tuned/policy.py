"""TRI_APSP_TUNE: what happens if nothing was tuned for a call."""

import os

from tri_apsp.errors import InputError

POLICIES = ("warn", "auto", "off", "require")
"""The values of TRI_APSP_TUNE; the first is the default."""


def policy() -> str:
    """Return one of POLICIES: what TRI_APSP_TUNE asks for, or "require" if only
    TRI_APSP_REQUIRE_TUNED is set, and not to 0.

    Raises:
        InputError: another value.
    """
    value = os.environ.get("TRI_APSP_TUNE", "")
    if not value:
        required = os.environ.get("TRI_APSP_REQUIRE_TUNED", "") not in ("", "0")
        return "require" if required else POLICIES[0]
    if value not in POLICIES:
        raise InputError(
            f"TRI_APSP_TUNE must be one of {', '.join(POLICIES)}, but is {value!r}; "
            "correct or unset it."
        )
    return value
