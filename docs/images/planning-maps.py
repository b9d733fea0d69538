"""Draws planning-maps.svg: loads of roads, and travel times from a zone, by the code of the how-to
page "A planner's week".
"""

import os
import re
import tempfile
from pathlib import Path
from textwrap import dedent

from style import save

PAGE = Path(__file__).resolve().parents[1] / "how-to" / "planning.md"

script = Path(__file__).resolve()
blocks = re.findall(r"(?ms)^ *```python\n(.*?)^ *```$", PAGE.read_text(encoding="utf-8"))
page: dict[str, object] = {}
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)  # where the page writes its files
    exec("\n".join(map(dedent, blocks)), page)
save(page["figure"], script)
