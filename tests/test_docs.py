"""The documentation builds without a warning, tells of every task, and loads nothing from another host."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from higl.envs.tasks import TASKS

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
