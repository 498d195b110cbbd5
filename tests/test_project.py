"""The project as a whole: style, types, imports, the README's commands, caches, extras."""

import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest

import continuarm as ca
from tests.worlds import ROOT

BIN = Path(sys.executable).parent
SIMULATION = """
import continuarm as ca
print(ca.simulate("static-kwsa", "two-communities", horizon=1000, rng=0, checkpoints=1).mean[-1])
"""


def run(*command: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env={**os.environ, **env}, timeout=600
    )


@pytest.mark.parametrize(
    "command",
    [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",), ("lint-imports",)],
    ids=["lint", "format", "types", "imports"],
)
def test_style(command: tuple[str, ...]) -> None:
    done = run(str(BIN / command[0]), *command[1:])
    assert done.returncode == 0, done.stdout + done.stderr


def test_ci_runs_the_test_command_of_the_readme() -> None:
    readme, ci = (ROOT / "README.md").read_text(), (ROOT / ".ci" / "run").read_text()
    commands = re.findall(r"^python3 -m venv .*$", readme, re.M)
    assert len(commands) == 2
    assert readme.index(commands[1]) < 1200
    for part in commands[1].split(" && "):
        assert part in ci
    assert (ROOT / ".ci" / "run").stat().st_mode & stat.S_IXUSR


def test_constraints_pin_versions_and_name_no_address() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.]*", line) for line in lines)
    pinned = {re.split("==", line)[0].lower().replace("_", "-") for line in lines}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[<>=\[]", name)[0].lower() for name in wanted}
    assert names - {"continuarm"} <= pinned


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert ca.__version__ == project["version"] == metadata.version("continuarm")
    assert f"## {ca.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_all_public_names_load() -> None:
    for name in ca.__all__:
        assert getattr(ca, name) is not None
    assert set(ca.__all__) <= set(dir(ca))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        ca.nothing  # noqa: B018


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, continuarm; print([m for m in ('numpy', 'numba') if m in sys.modules])"
    assert run(sys.executable, "-c", code).stdout == "[]\n"


def test_the_core_works_without_extras(tmp_path: Path) -> None:
    """Only what the core declares can be imported."""
    blocked = ("matplotlib", "pandas", "polars", "pytest", "hypothesis", "mkdocs")
    code = f"""
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Block())
{SIMULATION}
try:
    ca.simulate("fixed", "two-communities", horizon=10).plot()
except ca.errors.MissingExtraError as error:
    print(error)
"""
    done = run(sys.executable, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert 'pip install "continuarm[plot]"' in done.stdout


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package without caches, to be made unwritable."""
    target = tmp_path / "lib" / "continuarm"
    source = ROOT / "src" / "continuarm"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target.parent


def test_machine_code_is_cached_and_an_edit_anywhere_recompiles(copied: Path) -> None:
    where = {"PYTHONPATH": str(copied), "NUMBA_CACHE_DIR": str(copied.parent / "cache")}
    first = run(sys.executable, "-c", SIMULATION, cwd=copied, **where)
    files = sorted((copied.parent / "cache").rglob("*.nbc"))
    assert first.returncode == 0, first.stderr
    assert files
    again = run(sys.executable, "-c", SIMULATION, cwd=copied, **where)
    assert again.stdout == first.stdout
    assert sorted((copied.parent / "cache").rglob("*.nbc")) == files
    learner = copied / "continuarm" / "learners" / "kiefer_wolfowitz.py"
    step = "step = cfg.step / (row[COUNT] + STALE * age)"
    assert step in learner.read_text()
    learner.write_text(learner.read_text().replace(step, "step = 0.5 * cfg.step / row[COUNT]"))
    edited = run(sys.executable, "-c", SIMULATION, cwd=copied, **where)
    assert edited.returncode == 0, edited.stderr
    assert edited.stdout != first.stdout


def test_each_pair_of_classes_has_an_index_of_its_own(copied: Path) -> None:
    """Numba's index is not safe when two processes write different functions to one."""
    where = {"PYTHONPATH": str(copied), "NUMBA_CACHE_DIR": str(copied.parent / "cache")}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SIMULATION.replace("static-kwsa", name)],
            cwd=copied,
            env={**os.environ, **where},
        )
        for name in ("static-kwsa", "uniform-ucb")
    ]
    assert [process.wait() for process in processes] == [0, 0]
    names = [path.name for path in (copied.parent / "cache").rglob("*.nbi")]
    for pair in ("Grid_KieferWolfowitz", "Grid_GridUCB"):
        assert sum(pair in name and name.startswith("driver") for name in names) == 1


def test_it_works_where_no_cache_can_be_written(copied: Path) -> None:
    """Folders that are files: nobody, not even root, can write into them."""
    for folder in [copied / "continuarm", *(copied / "continuarm").glob("*/")]:
        (folder / "__pycache__").write_text("")
    nowhere = copied / "file"
    nowhere.write_text("")
    done = run(
        sys.executable,
        "-c",
        SIMULATION,
        cwd=copied,
        PYTHONPATH=str(copied),
        HOME=str(nowhere),
        XDG_CACHE_HOME=str(nowhere),
        NUMBA_CACHE_DIR=str(nowhere),
        PYTHONDONTWRITEBYTECODE="1",
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0


def test_nothing_speaks_of_the_machine_it_was_made_on() -> None:
    tracked = run("git", "ls-files", "-co", "--exclude-standard").stdout.split()
    for name in tracked:
        path = ROOT / name
        if path.suffix in (".py", ".md", ".toml", ".txt", ".yml", ".json", "") and path.is_file():
            text = path.read_text("utf-8")
            assert not re.search(r"/(root|home/\w+|work)/", text), name
            assert not re.search(r"https?://(?!example)[\w.]*(pypi|pythonhosted|mirror)", text), (
                name
            )
