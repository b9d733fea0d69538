"""README and the site: short, complete, and without a link that leads nowhere.

`mkdocs build --strict`, which .ci/run runs, checks the links within the site.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tri_apsp
from tri_apsp import errors
from tri_apsp.cli.main import COMMANDS, OTHERS
from tri_apsp.engines import ENGINES
from tri_apsp.graphs import FORMATS
from tri_apsp.interop.networkx_info import FUNCTIONS
from tri_apsp.papers import SYSTEMS
from tri_apsp.request import METHOD_CHOICES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
OUTSIDE = [*ROOT.glob("*.md"), *(ROOT / "tuning").glob("*.md")]
LISTED = {
    "explanation/methods.md": METHOD_CHOICES[1:],
    "reference/configuration.md": [*ENGINES],
    "reference/errors.md": errors.__all__,
    "reference/file-formats.md": [f".{name}" for name in FORMATS],
    "reference/command-line.md": [*COMMANDS, *OTHERS],
    "reference/networkx.md": sorted(FUNCTIONS),
    "explanation/papers.md": [*SYSTEMS],
}

# What readers type into the search; docs/hooks.py gives it the words of the glossary.
SEARCHED = """
all-pairs, APSP, distance matrix, shortest path matrix, next hop, k shortest, negative cycle, BFS
isochrone, OD matrix, travel time matrix, skim, catchment, service area, k nearest
betweenness, closeness, diameter, Wiener index
Floyd, Dijkstra, Johnson, Bellman-Ford, tropical, semiring, bottleneck, longest path
autograd, gradient, Isomap, geodesic, Graphormer
float16, int16, complex, deterministic, reproducible, overflow
install, conda, uninstall, Windows, Mac, MPS, ROCm, AMD GPU, docker, container, thread safety
multi-GPU, out of core, out of memory, benchmark, offline, exit status
cite, bibtex, licence, license, changelog, version
"""


def test_readme_is_one_page():
    assert len(README.split()) <= 900


@pytest.mark.parametrize("page", sorted((DOCS / "how-to").glob("*.md")), ids=lambda page: page.stem)
def test_a_how_to_page_has_at_most_1000_words_beside_its_code(page):
    prose = re.sub(r"(?ms)^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"))
    assert len(re.findall(r"\S*\w\S*", prose)) <= 1000


@pytest.mark.parametrize("page", LISTED)
def test_a_page_names_all_that_a_user_may_choose(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert not [name for name in LISTED[page] if not re.search(rf"[`[]{re.escape(name)}\b", text)]


def test_the_glossary_has_the_words_of_readers():
    """A query finds the sections for which each of its words begins one."""
    text = (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8")
    rows = [row.strip("| ").split(" | ") for row in re.findall(r"^\| (?!words ).*$", text, re.M)]
    split = [re.split(r"[\s,-]+", words.lower()) for words, _, _ in rows]

    def is_found(query: str) -> bool:
        asked = re.split(r"[\s-]", query.lower())
        return any(all(any(w.startswith(a) for w in words) for a in asked) for words in split)

    assert not [query for query in re.split(", |\n", SEARCHED.strip()) if not is_found(query)]
    links = re.findall(r"\]\(([^)#]+)", text)
    assert not [link for link in links if not (DOCS / "reference" / link).is_file()]
    listed = [word for words, _, _ in rows for word in words.split(", ")]
    assert len(listed) == len({*listed})


@pytest.mark.parametrize("page", OUTSIDE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_outside_the_site_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        if name.startswith("http"):
            continue
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        headings = (
            re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.M) if anchor else []
        )
        slugs = {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}
        assert not anchor or anchor in slugs, target


def test_messages_and_docstrings_name_pages_that_exist():
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tri_apsp").rglob("*.py")]
    named = {*re.findall(r"\b((?:docs|reports|tuning)/[\w/-]+\.md)\b", "\n".join(sources))}
    assert named
    assert not [name for name in named if not (ROOT / name).is_file()]


def test_every_function_of_readme_exists():
    rows = README.partition("## Functions")[2].partition("## ")[0]
    first_cells = re.findall(r"^\| (`.*?) \|", rows, re.M)
    names = {name for cell in first_cells for name in re.findall(r"`([\w.]+)", cell)}
    assert {"shortest_paths", "hops", "tri_apsp.csgraph"} <= names
    code = ["import tri_apsp, tri_apsp.interop.pyg"]
    code += [name if name.startswith("tri_apsp") else f"tri_apsp.{name}" for name in names]
    subprocess.run([sys.executable, "-c", "\n".join(code)], timeout=120, check=True)


def test_the_version_is_the_same_everywhere():
    """A checkout is that of the next release, and the one to cite is the last."""
    version, _, development = tri_apsp.__version__.partition(".dev")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (newest, date), *older = re.findall(r"^## \[([\d.]+)\] - (\S+)", changes, re.M)
    assert (version, date == "unreleased") == (newest, development == "0")
    released = older[0][0] if development else version
    assert f"\nversion: {released}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_page_of_citations_agrees_with_the_file():
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    title, author, version, date = (
        re.search(rf'^ *(?:- )?{key}: "?(.*?)"?$', cited, re.M)[1]
        for key in ("title", "name", "version", "date-released")
    )
    page = (DOCS / "project" / "citing.md").read_text(encoding="utf-8")
    short = title.partition(":")[0]
    escaped = title.replace(short, f"{{{short}}}").replace("_", r"\_")
    assert f"title   = {{{escaped}}}" in page
    assert f"version = {{{version}}}" in page
    assert f"date    = {{{date}}}" in page
    assert f"{author}. ({date[:4]}). *{title}* (Version {version}) " in page
