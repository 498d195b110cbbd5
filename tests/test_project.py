"""The project as a whole: style, types, imports, the README's commands, caches, extras."""

import json
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
from typing import NamedTuple

import pytest

import continuarm as ca
from tests.worlds import ROOT

BIN = Path(sys.executable).parent
SIMULATION = """
import continuarm as ca
print(ca.simulate("static-kwsa", "two-communities", horizon=1000, rng=0, checkpoints=1).mean[-1])
"""
KEYS = """
import json
worlds = ["two-communities", "communities-loud", "hard", "quadratic", "kink"]
experiment = ca.Experiment(
    policies=["static-kwsa", "recommended", "fixed"],
    problems=worlds,
    horizons=[100, 200],
    replications=2,
)
tasks = experiment.tasks()
print(json.dumps({world: sorted(t.key for t in tasks if t.problem == world) for world in worlds}))
"""
NEW_WORLD = """
from continuarm.problems.building import tracking, compiled_helper
from continuarm.problems.entry import Entry

@compiled_helper
def target(x, i):
    return 0.3 * x[0] + 0.1 * i

WORLDS = {"mine": Entry(lambda *, noise=0.1: tracking(1, 2, target, noise=noise), ("mine",))}
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


def test_no_module_hides_a_public_name() -> None:
    """Importing `continuarm.x` makes it an attribute of the package, whatever `x` was there."""
    code = """
import pkgutil
from importlib import import_module
import continuarm as ca
for module in pkgutil.walk_packages(ca.__path__, "continuarm."):
    if not module.name.endswith("__main__"):
        import_module(module.name)
for name, home in ca._HOME.items():
    module = import_module(f"continuarm.{home}")
    wanted = module if name in ca._MODULES else getattr(module, name)
    if getattr(ca, name) is not wanted:
        print(name, getattr(ca, name))
"""
    done = run(sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


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


def test_a_server_without_its_extra_says_what_to_install() -> None:
    """Whichever of its modules is missing."""
    code = """
import sys
from continuarm.cli import main
sys.argv = ["continuarm", "serve", "--store", ":memory:"]
for name in ("httptools", "msgspec", "starlette", "uvicorn"):
    for one in list(sys.modules):
        if one.partition(".")[0] == name or one.startswith("continuarm.service"):
            del sys.modules[one]
    sys.modules[name] = None
    try:
        main()
    except SystemExit as end:
        print(end.code, file=sys.stderr)
    del sys.modules[name]
"""
    said = run(sys.executable, "-c", code).stderr.splitlines()
    names = ("httptools", "msgspec", "starlette", "uvicorn")
    wanted = [f"a server needs {name}: pip install 'continuarm[service]'" for name in names]
    assert said == [line for text in wanted for line in (f"continuarm: {text}", "2")]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package without caches, to be made unwritable."""
    target = tmp_path / "lib" / "continuarm"
    source = ROOT / "src" / "continuarm"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target.parent


class Ran(NamedTuple):
    """What a new process printed, and what lies in the cache then."""

    regret: float
    keys: dict[str, list[str]]
    machine_code: set[str]


def ran(copied: Path, more: str = "") -> Ran:
    """Simulate with the copy of the package, in a new process with a cache of the copy's own."""
    cache = copied.parent / "cache"
    where = {"PYTHONPATH": str(copied), "NUMBA_CACHE_DIR": str(cache)}
    done = run(sys.executable, "-c", SIMULATION + KEYS + more, cwd=copied, **where)
    assert done.returncode == 0, done.stderr
    regret, keys = done.stdout.splitlines()[:2]
    return Ran(float(regret), json.loads(keys), {path.name for path in cache.rglob("*.nbc")})


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def changed(one: Ran, two: Ran) -> set[str]:
    """The worlds whose keys differ; those of a world do so together."""
    for world, keys in one.keys.items():
        assert len(set(keys)) == len(keys) == len(two.keys[world])
        assert not set(keys) & set(two.keys[world]) or keys == two.keys[world]
    return {world for world, keys in one.keys.items() if keys != two.keys[world]}


def test_machine_code_is_cached_and_an_edit_of_the_core_recompiles(copied: Path) -> None:
    first = ran(copied)
    assert first.machine_code
    assert ran(copied) == first
    learner = copied / "continuarm" / "core" / "learners" / "kiefer_wolfowitz.py"
    step = "step = cfg.step / (row[COUNT] + STALE * age)"
    edit(learner, step, "step = 0.5 * cfg.step / row[COUNT]")
    edited = ran(copied)
    assert edited.regret != first.regret
    assert changed(first, edited) == set(first.keys)
    assert edited.machine_code > first.machine_code
    assert ran(copied) == edited


def test_a_new_file_outside_the_core_recompiles_nothing_and_keeps_finished_runs(
    copied: Path,
) -> None:
    package = copied / "continuarm"
    first = ran(copied)
    (package / "another").mkdir()
    (package / "another" / "__init__.py").write_text("")
    (package / "another" / "http.py").write_text("import continuarm as ca\nPORT = 8000\n")
    worlds = package / "problems" / "worlds"
    (worlds / "mine.py").write_text(NEW_WORLD)
    edit(worlds / "__init__.py", "    paper.WORLDS,\n", "    paper.WORLDS,\n    mine.WORLDS,\n")
    edit(worlds / "__init__.py", "    logit,\n", "    logit,\n    mine,\n")
    assert ran(copied) == first
    more = """
import continuarm.another.http
print(ca.problem("mine"), ca.problem("mine", noise=0.3).noise)
"""
    assert ran(copied, more) == first
    for room in ("live", "live/named", "lab", "problems", "paper", "cli", "."):
        (package / room / "further.py").write_text("NUMBER = 1\n")
    assert ran(copied).machine_code == first.machine_code


def test_an_edit_of_a_world_is_seen_in_that_world_only(copied: Path) -> None:
    """In its numbers, in its machine code, and in what counts as a finished run of it."""
    first = ran(copied)
    paper = copied / "continuarm" / "problems" / "worlds" / "paper.py"
    edit(paper, "f1 = -((y[0] - y[1]) ** 2)", "f1 = -2.0 * ((y[0] - y[1]) ** 2)")
    edited = ran(copied)
    assert edited.regret != first.regret
    assert changed(first, edited) == {"two-communities", "communities-loud"}
    new = edited.machine_code - first.machine_code
    assert new
    assert all("two_communities" in name for name in new)
    edit(paper, "near, far = abs(x[0] - 0.1)", "near, far = abs(x[0] - 0.2)")  # a helper of it
    helped = ran(copied)
    assert helped.regret not in (first.regret, edited.regret)
    assert changed(edited, helped) == {"two-communities", "communities-loud"}
    edit(paper, "total += y[i] * (2.0", "total += y[i] * (3.0")
    assert changed(helped, ran(copied)) == {"hard"}


def test_what_is_loaded_before_does_not_matter_for_the_cache(copied: Path) -> None:
    """Many problems in one process need no machine code that each of them alone would not."""
    worlds = ["two-communities", "communities-loud", "hard", "plane", "kink"]
    cache = {k: copied.parent / f"cache-{k}" for k in ("alone", "together")}
    code = "import continuarm as ca\nfor name in {}: ca.problem(name).functions"
    for k, groups in {"alone": [[name] for name in worlds], "together": [worlds]}.items():
        for group in groups:
            where = {"PYTHONPATH": str(copied), "NUMBA_CACHE_DIR": str(cache[k])}
            done = run(sys.executable, "-c", code.format(group), cwd=copied, **where)
            assert done.returncode == 0, done.stderr
    names = {k: {path.name for path in cache[k].rglob("*.nbc")} for k in cache}
    assert names["together"] == names["alone"]


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
    loops = [name for name in names if name.startswith("loops.run_entry")]
    for pair in ("GridConfig_KieferWolfowitzConfig", "GridConfig_GridUCBConfig"):
        assert sum(f"_{pair}_" in name for name in loops) == 1


def test_it_works_where_no_cache_can_be_written(copied: Path) -> None:
    """Folders that are files: nobody, not even root, can write into them."""
    for folder in [copied / "continuarm", *(copied / "continuarm").rglob("*/")]:
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
