"""Packaging is consistent: lock file, metadata, wheel, Makefile, README, citation; an installed wheel works."""

import importlib.metadata
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import higl

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "requirements.lock").read_text()

PIN = re.compile(r"([a-z0-9][a-z0-9.-]*)==(\S+)(?: ; [^:]+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")
COMMENT = re.compile(r" *#[^/]*")  # no slash, so neither a URL nor a path


RELEASE = runpy.run_path(str(ROOT / "tools" / "release.py"))


def locked() -> dict[str, list[Version]]:
    pins: dict[str, list[Version]] = {}
    for name, version in re.findall(r"^([^\s#=]+)==(\S+)", LOCK, re.MULTILINE):
        pins.setdefault(canonicalize_name(name), []).append(Version(version))
    return pins


def locked_extras() -> list[str]:
    return re.search(r"^EXTRAS := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()


def required() -> list[Requirement]:
    project = PYPROJECT["project"]
    groups = [project["dependencies"], PYPROJECT["build-system"]["requires"]]
    groups += [project["optional-dependencies"][name] for name in locked_extras()]
    return [Requirement(text) for group in groups for text in group]


def tracked() -> list[Path]:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_lock_holds_only_pins_hashes_and_comments():
    for number, line in enumerate(LOCK.splitlines(), 1):
        assert any(form.fullmatch(line) for form in (PIN, HASH, COMMENT)), f"line {number}: {line}"


def test_every_pin_has_a_hash():
    blocks = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert len(blocks) > 50
    for block in blocks:
        assert "--hash=sha256:" in block, block.splitlines()[0]


def test_lock_names_no_host():
    for word in ("://", "index-url", "find-links", "trusted-host", "@ "):
        assert word not in LOCK


def test_lock_has_no_accelerator_packages():
    assert not [name for name in locked() if re.search("nvidia|cuda|rocm|triton|^torch$", name)]


@pytest.mark.parametrize("requirement", required(), ids=str)
def test_dependency_is_locked(requirement):
    versions = locked().get(canonicalize_name(requirement.name), [])
    assert versions, f"{requirement.name} is not in requirements.lock: run `make lock`"
    for version in versions:
        assert version in requirement.specifier, f"{requirement} but the lock has {version}: run `make lock`"


def test_only_extras_that_tests_can_do_without_are_not_locked():
    assert set(PYPROJECT["project"]["optional-dependencies"]) - set(locked_extras()) == {"ogbench", "trackio", "wandb"}


def test_one_version():
    assert importlib.metadata.version("higl") == higl.__version__


def test_python_versions():
    assert PYPROJECT["project"]["requires-python"] == ">=3.11"
    named = [text.rpartition(" ")[2] for text in PYPROJECT["project"]["classifiers"] if ":: Python :: 3." in text]
    assert named == ["3.11", "3.12", "3.13"]
    assert PYPROJECT["tool"]["ruff"]["target-version"] == "py311"  # ruff then rejects the syntax of later versions


def test_entry_points():
    (environments,) = importlib.metadata.entry_points(group="gymnasium.envs", name="higl")
    assert environments.value == "higl.envs:register_envs"
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="higl")
    assert command.value == "higl.cli:main"


def test_makefile_has_every_documented_target():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text()
        documented = re.findall(r"(?:^|`|&& )make ([a-z]+)", text, re.MULTILINE)
        assert set(documented) <= targets, path.name
    assert {"demo", "test"} <= set(re.findall(r"make ([a-z]+)", (ROOT / "README.md").read_text()))


def test_links_of_the_readme_lead_to_files():
    text = re.sub(r"<!--.*?-->", "", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), target


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    """Return a folder with the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    RELEASE["build_archives"](ROOT, folder, "sdist", "wheel")
    return folder


def test_wheel_has_every_file_of_the_package(release):
    """Templates, presets, trained policies: files that are not Python are easily left out."""
    (wheel,) = release.glob("higl-*.whl")
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("higl/")}
    files = {path.relative_to(ROOT / "src").as_posix() for path in tracked() if (ROOT / "src") in path.parents}
    assert {"higl/py.typed", "higl/figures/page/report.html", "higl/settings/presets/best.toml"} <= files <= shipped


def test_release_passes_its_checks(release):
    assert RELEASE["check_release"](release) == []


def test_checks_of_a_release_find_what_is_missing(release, tmp_path):
    (wheel,), (source,) = release.glob("*.whl"), release.glob("*.tar.gz")
    assert RELEASE["check_release"](tmp_path)[0].endswith("0 wheels and 0 source archives: expected one of each")
    broken = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(broken, "w") as part:
        for name in whole.namelist():
            content = whole.read(name)
            if name.endswith("METADATA"):
                content = content.replace(b"Requires-Python: >=3.11", b"Requires-Python: three")
            if name != "higl/py.typed":
                part.writestr(name, content)
        part.writestr("higl/notes.txt", "not for everybody")
    assert RELEASE["check_content"](broken) == [
        f"{wheel.name} lacks higl/py.typed",
        f"{wheel.name} also has higl/notes.txt",
    ]
    wrong = RELEASE["check_metadata"](broken, source)
    assert any("'three' is invalid for 'requires-python'" in line for line in wrong)
    assert wrong[-1] == "the metadata of the wheel and of the source archive differ"
    assert "the source archive builds another higl/py.typed" in RELEASE["check_source"](broken, source)


@pytest.fixture(scope="module")
def installed(release, tmp_path_factory) -> Path:
    """Return an environment with the wheel; all other packages are those of this environment, the source is not."""
    environment = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    # pip installs only the wheel. The paths of a .pth file are searched last, and editable installs in them are not.
    (packages / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    (wheel,) = release.glob("*.whl")
    options = ["--python", str(environment / "bin" / "python"), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([sys.executable, "-m", "pip", *options, str(wheel)], check=True)
    return environment / "bin"


@pytest.mark.slow
def test_installed_wheel_lists_evaluates_trains_and_reports(installed, tmp_path):
    def run(*words: object) -> str:
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [str(installed / str(words[0])), *map(str, words[1:])]
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = run("python", "-c", "import higl; print(higl.__file__); print(higl.load_policy('pusher').config.task)")
    assert where.splitlines() == [str(next(installed.parent.glob("lib/*/site-packages/higl/__init__.py"))), "pusher"]
    assert "ant-maze-u-stochastic" in run("higl", "tasks")
    assert "success           100.0% of 1 episodes" in run(
        "higl", "eval", "point-maze", "--pretrained", "--episodes", 1
    )
    small = ["--hidden", 32, "--evaluation.every", 1000, "--evaluation.episodes", 1]
    trained = run("higl", "train", "point-maze", "--steps", 2000, "--out", "run", *small)
    assert "finished: 2,000 steps" in trained
    run("higl", "report", "run", "-o", "report.html")
    assert "Point Maze (sparse): HIGL, seed 0" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("text", re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL))
def test_python_of_the_readme_runs(text):
    program = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert program.returncode == 0, program.stderr


def test_ci_runs_the_tests():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert script.read_text().splitlines()[-1] == "make test"


def test_citation():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert {"title", "message", "authors"} <= citation.keys()
    assert citation["version"] == higl.__version__
    assert citation["license"] == PYPROJECT["project"]["license"]
    paper = citation["preferred-citation"]
    assert [author["family-names"] for author in paper["authors"]] == ["Kim", "Seo", "Shin"]
    assert paper["year"] == 2021


def test_no_machine_path_in_tracked_files():
    pattern = re.compile(rb"(?<![\w.])/(root|home/\w+|Users/\w+)/|" + re.escape(bytes(ROOT)) + rb"\b")
    for path in tracked():
        found = pattern.search(path.read_bytes())
        assert not found, f"{path.relative_to(ROOT)}: {found[0]}"
