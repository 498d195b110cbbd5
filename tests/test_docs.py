"""The docs: they build without a broken link, and what they show runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import continuarm as ca
from continuarm.cli import cli
from continuarm.live.named import names
from continuarm.live.named.by_name import maker_of
from continuarm.problems import problem_names
from tests.worlds import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S)


def test_the_site_builds_and_a_broken_link_is_an_error(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "-d", str(tmp_path / "site")]
    done = subprocess.run(build, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "reading" / "index.html").is_file()
    broken = tmp_path / "docs"
    broken.mkdir()
    (broken / "index.md").write_text("[a link](nowhere.md)")
    config = (ROOT / "mkdocs.yml").read_text().replace("docs_dir: docs", f"docs_dir: {broken}")
    (tmp_path / "mkdocs.yml").write_text(re.sub(r"\nnav:.*", "\n", config, flags=re.S))
    broken_build = [*build, "-f", str(tmp_path / "mkdocs.yml")]
    done = subprocess.run(broken_build, capture_output=True, text=True)
    assert done.returncode == 1
    assert "nowhere.md" in done.stderr


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
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
