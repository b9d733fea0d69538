"""What the site has beside docs/: the pages of reports/ as results/, the help of each command, and
the addresses of the project.

mkdocs calls these functions by their names.
"""

import contextlib
import io
import os
import re
from importlib.metadata import metadata
from pathlib import Path
from unittest import mock

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
HELP = re.compile(r"^<!-- help:(.*?)-->$", re.MULTILINE)
REPORTS = re.compile(r"\]\(\.\./((?:\.\./)*)reports/")  # as they lead on disk
COLUMNS = "84"  # which fit the width of a page


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the addresses of the project from [project.urls] of pyproject.toml, once it has some."""
    urls = dict(url.split(", ", 1) for url in metadata("tri_apsp").get_all("Project-URL") or ())
    config.site_url, config.repo_url = urls.get("Documentation"), urls.get("Repository")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of reports/ to the site, below results/."""
    for path in sorted((ROOT / "reports").rglob("*")):
        if path.suffix in (".md", ".svg", ".csv", ".json", ".html"):
            name = "results" / path.relative_to(ROOT / "reports")
            files.append(File.generated(config, name.as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace `<!-- help: solve -->` by what `python -m tri_apsp solve --help` prints, and
    `<!-- help: -->` by the help of all commands. Links to reports/ lead to results/.
    """
    markdown = REPORTS.sub(r"](\1results/", markdown)
    return HELP.sub(lambda found: f"```text\n{help_of(found[1])}\n```", markdown)


def help_of(command: str) -> str:
    """Return the help of a subcommand, "" for that of all of them.

    Raises:
        ValueError: there is no such command.
    """
    from tri_apsp.cli.main import main

    printed = io.StringIO()
    with (
        mock.patch.dict(os.environ, COLUMNS=COLUMNS),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        main([*command.split(), "--help"])
    if not printed.getvalue():
        raise ValueError(f"`<!-- help:{command}-->` must name a command of python -m tri_apsp")
    return printed.getvalue().strip().replace(f"{Path.home()}/", "~/")
