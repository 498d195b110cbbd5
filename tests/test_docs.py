"""The docs: they build without a broken link, and what they show runs."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import continuarm as ca
from benchmarks import tutorial
from continuarm.cli import cli
from continuarm.live.named import names
from continuarm.live.named.by_name import maker_of
from continuarm.problems import problem_names
from tests.worlds import ROOT
from tools.docstrings import in_markdown

PAGES = sorted((ROOT / "docs").rglob("*.md"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S)


def built(project: Path) -> subprocess.CompletedProcess[str]:
    build = [sys.executable, "-m", "zensical", "build", "--strict"]
    return subprocess.run(build, capture_output=True, text=True, cwd=project)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the docs with their site."""
    project = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "mkdocs.yml", project)
    shutil.copytree(ROOT / "docs", project / "docs")
    for part in ("src", "tools"):
        (project / part).symlink_to(ROOT / part)
    done = built(project)
    assert done.returncode == 0, done.stdout + done.stderr
    return project


def test_the_site_has_every_page_and_fetches_nothing_from_elsewhere(project: Path) -> None:
    for page in PAGES:
        html = project / "site" / page.relative_to(ROOT / "docs").with_suffix(".html")
        fetched = re.findall(
            r'<(?:script|img|link)[^>]*(?:src|href)="?(https?:[^" >]*)', html.read_text()
        )
        assert fetched == []


def test_the_navigation_has_every_page_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    pages = [str(page.relative_to(ROOT / "docs")) for page in PAGES]
    assert sorted(re.findall(r"\S+\.md", nav)) == sorted(pages)


def test_every_public_name_is_in_the_reference_once(project: Path) -> None:
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    text = "".join(page.read_text() for page in pages)
    names = re.findall(r"^::: continuarm\.(\w+)$", text, re.M)
    assert sorted(names) == ca.__all__
    site = "".join(page.read_text() for page in (project / "site" / "reference").glob("*.html"))
    for name in names:
        assert f'id="continuarm.{name}"' in site
        assert f"`{name}`" in pages[0].with_name("index.md").read_text()


@pytest.mark.parametrize("link", ["nowhere.md", "theory.md#nothing"])
def test_a_broken_link_is_an_error(project: Path, link: str) -> None:
    page = project / "docs" / "theory.md"
    text = page.read_text()
    page.write_text(f"{text}\n[a link]({link})\n")
    done = built(project)
    page.write_text(text)
    assert done.returncode == 1
    assert "does not exist" in done.stdout + done.stderr


def test_a_docstring_becomes_markdown() -> None:
    found = in_markdown(
        "One rule.\n\nParameters\n----------\nlow, high : the edges,\n    of numbers.\n\n"
        ">>> 1 + 1\n2\n\nThe end : not an item."
    )
    assert found == (
        "One rule.\n\n**Parameters**\n\n- `low`, `high`: the edges,\n    of numbers.\n\n"
        "```pycon\n>>> 1 + 1\n2\n```\n\nThe end : not an item."
    )


@pytest.mark.parametrize("page", tutorial.PAGES, ids=lambda page: page.stem)
def test_a_step_of_the_tutorial_runs_and_prints_what_it_shows(page: Path) -> None:
    """First lines, but for numbers; `python -m benchmarks.tutorial` writes what is shown."""
    text = page.read_text()
    printed, shown = (
        [re.sub(r"[-+\d.,]+", "#", output.partition("\n")[0]) for output in outputs]
        for outputs in (tutorial.printed(text), tutorial.shown(text))
    )
    assert printed == shown


OTHERS = [page for page in PAGES if page not in tutorial.PAGES]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *OTHERS], ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    code = "\n".join(blocks(page, "python"))
    if code:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr


def test_every_command_option_policy_and_problem_is_documented() -> None:
    text = (ROOT / "docs" / "command-line.md").read_text()
    for name, command in cli.commands.items():
        assert f"continuarm {name}" in text
        for option in command.params:
            assert option.opts[0] in text
    for name in problem_names("named"):
        assert f"`{name}`" in text
    for name in names():
        assert f"`{name}`" in text or maker_of(name).make.__doc__, name


def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    customers = ca.Box([18, 0], [90, 2.5e5], names=["age", "income"])
    ca.SurfaceSampling(customers, ca.Box.unit(1)).save(tmp_path / "shop.continuarm")
    for block in blocks(ROOT / "docs" / "command-line.md", "sh"):
        for line in block.splitlines():
            arguments = [
                "1e3" if previous == "--horizon" else word
                for previous, word in zip(
                    ["", *shlex.split(line)], shlex.split(line), strict=False
                )
            ]
            done = subprocess.run(
                [sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=tmp_path
            )
            assert done.returncode == 0, done.stderr


def test_prose_is_wrapped_at_100_columns() -> None:
    """But for tables, code, and pages that a command writes."""
    others = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    for page in [*others, *PAGES]:
        text = page.read_text()
        if "This page is written by" in text:
            continue
        prose = "".join(text.split("```")[::2])
        long = [line for line in prose.splitlines() if len(line) > 100 and line[0] != "|"]
        assert not long, f"{page.name}: {long}"


def test_links_of_the_readme_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text()):
            assert (ROOT / target).exists(), target


def test_every_reading_that_the_code_cites_is_on_the_page() -> None:
    page = (ROOT / "docs" / "reading.md").read_text()
    headings = {int(n) for n in re.findall(r"^## (\d+)\. ", page, re.M)}
    assert headings == set(range(1, 15))
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    cited = {int(n) for n in re.findall(r"reading (\d+)", sources)}
    assert {1, 2, 3, 4, 5, 6, 10, 11, 12, 13} <= cited <= headings
