"""What the site has beside docs/: the pages of reports/ as results/, pages about the project, the
help of each command, notebooks to download, the addresses of the project, and the words by which
the search finds a page.

mkdocs calls these functions by their names.
"""

import contextlib
import io
import json
import os
import posixpath
import re
from importlib.metadata import metadata
from pathlib import Path
from unittest import mock
from urllib.parse import urljoin

import ruff  # noqa: F401 # mkdocstrings breaks signatures with it, or leaves each in one line
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
HELP = re.compile(r"^<!-- help:(.*?)-->$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)")
PROJECT = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "LICENSE": "project/license.md",
    "SECURITY.md": "project/security.md",
    "tuning/CONTRIBUTING.md": "project/contributing-a-gpu.md",
}
GLOSSARY = "reference/glossary/"
ROW = re.compile(r'<tr>\s*<td>([^<]*)</td>\s*<td>.*?</td>\s*<td><a [^>]*?href="([^"]*)"', re.DOTALL)
COLUMNS = "80"  # which fit a window of 1220 px, the least that has both columns of navigation


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the addresses of the project from [project.urls] of pyproject.toml, once it has some."""
    urls = dict(url.split(", ", 1) for url in metadata("tri_apsp").get_all("Project-URL") or ())
    config.site_url, config.repo_url = urls.get("Documentation"), urls.get("Repository")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of reports/ to the site, below results/, and those of the project."""
    for path in sorted((ROOT / "reports").rglob("*")):
        if path.suffix in (".md", ".svg", ".csv", ".json", ".html"):
            name = "results" / path.relative_to(ROOT / "reports")
            files.append(File.generated(config, name.as_posix(), abs_src_path=str(path)))
    for source, page in PROJECT.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace `<!-- help: solve -->` by what `python -m tri_apsp solve --help` prints, and
    `<!-- help: -->` by the help of all commands. A link to a file on disk leads to its page.
    """
    pages = {file.abs_src_path: file.src_uri for file in files}
    pages[str(ROOT / "README.md")] = "index.md"
    disk, site = Path(str(page.file.abs_src_path)).parent, Path(page.file.src_uri).parent

    def to_page(link: re.Match[str]) -> str:
        target = pages.get(os.path.normpath(disk / link[1]))
        return f"]({posixpath.relpath(target, site.as_posix())}" if target else link[0]

    markdown = LINK.sub(to_page, markdown)
    return HELP.sub(lambda found: f"```text\n{help_of(found[1])}\n```", markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put a link to the notebook itself, which mkdocs-jupyter copies, in front of its page."""
    name = Path(page.file.src_uri).name
    link = f'<p><a class="md-button" href="{name}" download>Download this notebook</a></p>'
    return link + html if name.endswith(".ipynb") else html


def on_post_build(config: MkDocsConfig) -> None:
    """Improve the index of the search: a section is found by the words that the glossary has for
    it, as by its title; the code of notebooks is left out.

    Raises:
        ValueError: a link of the glossary leads to no section.
    """
    site = Path(config.site_dir)
    index_file = site / "search" / "search_index.json"
    index = json.loads(index_file.read_text(encoding="utf-8"))
    sections = {section["location"]: section for section in index["docs"]}
    for location, section in sections.items():
        if location.startswith("notebooks/"):
            section["title"] = section["title"].rstrip("¶")
            if "#" not in location:  # cells of code, beside the sections of text
                section["text"] = ""
    for words, link in ROW.findall((site / GLOSSARY / "index.html").read_text(encoding="utf-8")):
        location = urljoin(GLOSSARY, link).lstrip("/")
        if location not in sections:
            raise ValueError(f"the glossary leads to {location}, which is no page or heading")
        sections[location].setdefault("tags", []).extend(words.split(", "))
    index_file.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")


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
