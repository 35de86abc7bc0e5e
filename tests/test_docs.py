"""The documentation builds without warnings, lists every task and setting, and loads nothing from other hosts."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from mkdocs.exceptions import PluginError

from higl.envs.tasks import TASKS
from higl.settings.config import Config
from higl.settings.layers import setting_types

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    build = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert build.returncode == 0, build.stdout + build.stderr
    return folder


def test_pages_load_nothing_from_another_host(site):
    loads = re.compile(
        r"""<(?:script|img|iframe|source|link(?=[^>]*rel="?(?:stylesheet|icon|preconnect|preload)))"""
        r"""[^>]*?(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)"""
    )
    pages = list(site.rglob("*.html"))
    assert pages
    for page in pages:
        assert not loads.findall(page.read_text()), page.name


@pytest.mark.parametrize("path", ["README.md", "docs/tasks.md"])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_task_tables(path, task):
    rows = [line for line in (ROOT / path).read_text().splitlines() if line.startswith(f"| `{task.name}` |")]
    assert len(rows) == 1
    cells = [cell.strip() for cell in rows[0].strip("|").split("|")]
    assert cells[1] == f"`{task.id}`"
    assert float(cells[-2]) == task.radius
    assert cells[-1] == ("success or " if task.ends_on_success else "") + f"{task.max_steps} steps"


def test_links_to_lines_lead_to_the_definitions(site):
    """The text of a link is `module.name`, and its line defines that name."""
    links = re.findall(
        r'href="(source/[\w/]+\.html)#__codelineno-0-(\d+)"><code>([\w/.]+)</code>',
        (site / "algorithm.html").read_text(),
    )
    assert len(links) > 30
    for page, line, name in links:
        module, _, defined = name.partition(".")
        assert f'id="__codelineno-0-{line}"' in (site / page).read_text()
        text = (ROOT / "src" / "higl" / f"{module}.py").read_text().splitlines()[int(line) - 1]
        assert re.match(rf"\s*(def|class) {defined.rpartition('.')[2]}\b", text), name


def test_every_setting_is_listed(site):
    page = (site / "settings.html").read_text()
    for name in setting_types(Config):
        assert f"<code>{name}</code>" in page, name


def test_architecture_page_must_list_every_module():
    link_modules = runpy.run_path(str(ROOT / "docs" / "_hooks.py"))["link_modules"]
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert '<a href="source/algo/td3.html">' in link_modules(page)
    with pytest.raises(PluginError, match=r"not listed: \['algo/td3'\]"):
        link_modules(page.replace("| `td3.py` |", "| TD3 |"))
    with pytest.raises(PluginError, match=r"not there: \['algo/td4'\]"):
        link_modules(page.replace("| `td3.py` |", "| `td4.py` | |\n| `td3.py` |"))


def test_python_of_the_pages_compiles():
    pages = set()
    for page in (ROOT / "docs").glob("*.md"):
        for text in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
            compile(text, page.name, "exec")
            pages.add(page.name)
    assert {"api.md", "own-environment.md"} <= pages
