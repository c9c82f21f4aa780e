"""The site builds without a warning, stands alone, and its blocks do what they say."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from stretto import catalog

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
#: Pages whose blocks are run by tests of their own, each block by itself.
ELSEWHERE = {"queue.md"}
#: Libraries beyond the usual ones that a page needs; where they are absent, its blocks are not run.
NEEDS = {
    "place-a-pytorch-model": ("torch",),
    "place-an-onnx-model": ("onnx", "onnxruntime"),
    "ml-engineers": ("jax",),
}


def _script(name: str) -> types.ModuleType:
    """Load a script of the documents as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


run_page = _script("run_page")


def _runnable(page: Path) -> bool:
    if page.name in ELSEWHERE:
        return False
    return any(block.language in ("python", "console") for block in run_page.blocks(page.read_text()))


@pytest.fixture
def same_catalog() -> Iterator[None]:
    """Pages may add to the catalog of the process; afterwards it is as before, and their modules are gone."""
    tables = {name: dict(table) for name, table in vars(catalog).items() if name.isupper() and isinstance(table, dict)}
    modules = set(sys.modules)
    yield
    for name, table in tables.items():
        getattr(catalog, name).clear()
        getattr(catalog, name).update(table)
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and not Path(file).exists():  # its folder is gone
            del sys.modules[name]


@pytest.mark.usefixtures("same_catalog")
@pytest.mark.parametrize("page", [page for page in PAGES if _runnable(page)], ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for library in NEEDS.get(page.stem, ()):
        pytest.importorskip(library, reason=f"{library} is not installed (extra {library!r})")
    with run_page.empty_folder():
        said = run_page.Page(page.read_text()).run()
    capsys.readouterr()
    for one in said:
        printed = run_page.gist(one.printed)  # as one line: where a sentence is broken depends on the length of numbers
        for line in one.shown.splitlines():
            assert run_page.gist(line) in printed, f"{page.name}: {one.command!r} no longer prints {line!r}"


def test_most_pages_are_run() -> None:
    assert sum(map(_runnable, PAGES)) >= 14


def test_a_page_that_is_wrong_is_found_out() -> None:
    page = "```console\n$ stretto version --output quiet\n9.9\nsomething else\n```\n"
    with run_page.empty_folder():
        (said,) = run_page.Page(page).run()
    printed = {run_page.gist(line) for line in said.printed.splitlines()}
    assert [run_page.gist(line) in printed for line in said.shown.splitlines()] == [True, False]
    with pytest.raises(RuntimeError, match="code 2"), run_page.empty_folder():
        run_page.Page("```console\n$ stretto plan none.json -c cpu:1\n```\n").run()
    with pytest.raises(ValueError, match="not 'rm'"), run_page.empty_folder():
        run_page.Page("```console\n$ rm -rf x\n```\n").run()


class _Sources(HTMLParser):
    """Collects what a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "img", "iframe", "source"):
            self.loaded.append(values.get("src") or "")
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.loaded.append(values.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as mkdocs builds it; a warning is an error."""
    target = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(target)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return target


def test_every_page_is_on_the_site(site: Path) -> None:
    built = {str(path.relative_to(site)) for path in site.rglob("*.html")}
    for page in PAGES:
        assert str(page.relative_to(DOCS).with_suffix(".html")) in built
    cards = {f"learned/{card.parent.name}.html" for card in ROOT.glob("src/stretto/*/*/README.md")}
    assert cards <= built
    assert {"reference/commands.html", "reference/catalog.html", "security.html", "architecture.html"} <= built


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        found = _Sources()
        found.feed(path.read_text())
        for source in found.loaded:
            assert "//" not in source, f"{path.name} loads {source}"
            if source and path.name != "404.html":
                assert (path.parent / re.split("[?#]", source)[0]).exists(), f"{path.name} lacks {source}"


def test_links_lead_to_pages_and_places_that_exist(site: Path) -> None:
    pages = {path.resolve(): path.read_text() for path in site.rglob("*.html") if path.name != "404.html"}
    for path, text in pages.items():
        for target in re.findall(r'<a [^>]*href="([^"]+)"', text):
            file, _, anchor = target.partition("#")
            if "://" in target or target.startswith("mailto:") or not file:
                continue
            other = (path.parent / file).resolve()
            assert other.exists(), f"{path.name} links to {target}"
            if anchor and other in pages:
                assert f'id="{anchor}"' in pages[other], f"{path.name} links to {target}"


def test_the_reference_names_every_component_and_command(site: Path) -> None:
    import typer

    from stretto.cli.app import app

    text = (site / "reference" / "catalog.html").read_text()
    for table in (catalog.PLANNERS, catalog.FORMATS, catalog.WORKLOADS, catalog.STRATEGIES, catalog.TRAINERS):
        for name in table:
            assert f"<code>{name}</code>" in text
    text = (site / "reference" / "commands.html").read_text()
    for name in typer.main.get_command(app).commands:  # type: ignore[attr-defined]
        assert f'id="stretto-{name}"' in text


def test_pictures_are_drawn_and_used(tmp_path: Path) -> None:
    words = [sys.executable, str(DOCS / "make_pictures.py"), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    endings = (".svg", ".png") if shutil.which("chromium") else (".svg",)
    drawn = {path.name for path in tmp_path.iterdir()}
    kept = {path.name for path in (DOCS / "pictures").iterdir() if path.suffix in endings}
    assert drawn == kept - {"logo.svg"}
    text = "".join(page.read_text() for page in PAGES)
    assert all(f"pictures/{name}" in text for name in drawn)
    assert all(name.replace("-light.", "-dark.") in drawn for name in drawn)


def test_pictures_are_small_and_as_wide_as_they_are_shown() -> None:
    from PIL import Image

    for path in (DOCS / "pictures").glob("*-*.*"):
        assert path.stat().st_size < 200_000, path.name
        if path.suffix == ".png":
            assert Image.open(path).width >= 1.5 * 830, path.name
        else:
            found = re.search(r'<svg [^>]*width="([\d.]+)pt"', path.read_text())
            assert found is not None
            assert 800 <= float(found.group(1)) * 96 / 72 <= 860, path.name


def test_the_site_has_its_sections_in_order(site: Path) -> None:
    text = (site / "index.html").read_text()
    tabs = [
        re.sub(r"<[^>]+>|\s+", " ", tab).strip() for tab in re.findall(r'md-tabs__link">(.*?)</a>', text, re.DOTALL)
    ]
    people = ["For operators", "For workflow owners", "For ML engineers", "For researchers"]
    assert tabs == ["Start", *people, "Concepts", "Reference", "Extend"]


def test_limits_in_the_security_page_are_those_of_the_code() -> None:
    from stretto.config import _MAX_BYTES
    from stretto.files import archive, document, load
    from stretto.files.graphs import dot_parser
    from stretto.files.traces import load as traces
    from stretto.web import guard, login_code, quiet_log
    from stretto.web.settings import ServeSettings

    serve = ServeSettings()
    text = (ROOT / "SECURITY.md").read_text()
    for words in (
        f"{document.MAX_BYTES // 2**30} GiB; graphs {load.MAX_GRAPH_BYTES // 2**20} MiB",
        f"traces {traces.MAX_TRACE_BYTES // 2**30} GiB",
        f"a factor of {document.MAX_RATIO} beyond the first {document.FREE_BYTES // 2**20} MiB",
        f"{archive.MAX_MEMBERS:,} members, {archive.MAX_TOTAL_BYTES // 2**30} GiB in all",
        f"{dot_parser._MAX_DEPTH}, and {dot_parser.MAX_EDGES:,} edges",
        f"a file of settings | {_MAX_BYTES // 2**20} MiB",
        f"{serve.max_body_bytes // 2**20} MiB; {guard._MAX_OPEN_BODY_BYTES // 2**10} KiB where no token is needed",
        f"{serve.max_header_s:g} s, {serve.max_body_s:g} s, {serve.max_write_s:g} s",
        f"{serve.max_connections}, and {serve.max_connections_per_client} of one address",
        f"{serve.burst} at once, {serve.rate_per_s:g} a second",
        f"{serve.max_job_s:g} s each; {serve.max_waiting} may wait",
        f"{quiet_log._NUM_PER_MINUTE} a minute",
        f"works once, within {login_code.VALID_S / 60:g} minutes",
    ):
        assert words in text
