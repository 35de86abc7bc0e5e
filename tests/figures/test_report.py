"""The page as text: its content, that it is self-contained, and that damaged runs do not break it."""

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from support.synthetic import synthetic_run

from higl.figures.report import build_report, write_report
from higl.run.reading import find_runs, read_run
from higl.settings.layers import apply, to_toml
from higl.settings.presets import preset

VOID = {"meta", "link", "input", "br"}


class Checker(HTMLParser):
    """Collects tags, ids and addresses, and checks that elements nest."""

    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.addresses, self._open = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        given = dict(attrs)
        if "id" in given:
            self.ids.append(given["id"])
        self.addresses += [given[name] for name in ("src", "href") if name in given]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def close(self):
        super().close()
        assert self._open == []


def checked(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert len(checker.ids) == len(set(checker.ids))
    return checker


def test_another_test_environment_is_named(tmp_path):
    runs = [synthetic_run(tmp_path / "a", snapshots=0, facts={"test_env": "mine:Far-v0"})]
    assert "<h1>Point Maze (sparse), tested in mine:Far-v0: HIGL, seed 0</h1>" in build_report(find_runs(runs))
    runs.append(synthetic_run(tmp_path / "b", snapshots=0))
    page = build_report(find_runs(runs))
    assert "<td>Point Maze (sparse), tested in mine:Far-v0</td>" in page
    assert "<h1>Point Maze (sparse), tested in mine:Far-v0; Point Maze (sparse): 2 runs</h1>" in page
    assert page.count("<figcaption>Point Maze (sparse)") == 2, "a chart for each"


def test_a_page_of_one_run(runs_folder, video_bytes, tmp_path):
    folder = shutil.copytree(runs_folder / "higl-0", tmp_path / "higl-0")
    (folder / "video.mp4").write_bytes(video_bytes)
    page = build_report([read_run(folder)], now=0)
    found = checked(page)
    assert found.tags.count("video") == 1
    assert page.count('class="moment') == 2 * 4
    assert 'class="moment on"' in page
    assert "as of 1970-01-01" in page
    parts = ("Exploration of the goal space", "Configuration", "landmarks.coverage", "Versions", "mujoco", "synthetic")
    for words in (*parts, "Point Maze (sparse): HIGL, seed 0", "Time per stage", "smoothed over the last 25k steps"):
        assert words in page
    assert "/somewhere" not in page
    assert "a-host" not in page


def test_the_page_loads_nothing_from_elsewhere(runs_folder):
    page = build_report(find_runs([runs_folder]))
    assert all(address.startswith(("#", "data:")) for address in checked(page).addresses)
    assert not re.search(r"""(?:src|href)=["']?(?:https?:|//)|@import|url\(""", page)
    assert "default-src 'none'" in page
    assert "connect-src" not in page
    assert "connect-src 'self'" in build_report(find_runs([runs_folder / "higl-0"]), watch_seconds=1, version="x")


def test_a_page_of_many_runs(runs_folder):
    page = build_report(find_runs([runs_folder]))
    checked(page)
    assert page.count('<details class="run"') == 7
    assert "HRAC (2 seeds)" in page
    assert "tip, x and y" in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))
    assert next(series["label"] for series in data["charts"]["success-1"]) == "HIGL (3 seeds)"
    assert len(data["maps"]["run-1-maps"]) == 4


def test_texts_of_a_run_are_escaped(tmp_path):
    folder = synthetic_run(tmp_path / "run", snapshots=1)
    evil = "</script><script>alert(1)</script>"
    text = (folder / "config.toml").read_text().replace('"point-maze"', json.dumps(evil))
    (folder / "config.toml").write_text(text)
    facts = json.loads((folder / "run.json").read_text()) | {"message": evil, "status": evil}
    (folder / "run.json").write_text(json.dumps(facts))
    page = build_report([read_run(folder)])
    checked(page)
    assert "<script>alert" not in page


def test_only_settings_that_differ_from_the_preset_are_marked(run_folder):
    config = apply(preset("point-maze"), {"seed": 7, "landmarks.coverage": 11})
    (run_folder / "config.toml").write_text(to_toml(config))
    page = build_report([read_run(run_folder)])
    changed = re.findall(r'<tr class="changed">(.*?)</tr>', page)
    assert [re.sub("<[^>]+>", " ", row).split() for row in changed] == [
        ["landmarks.coverage", "11", str(preset("point-maze").landmarks.coverage)]
    ]


def test_derived_settings_are_not_marked_but_those_of_the_paper_are(run_folder):
    derived = {"goal_unit": (1.2,), "low.angles": (2,), "evaluation.every": 500}
    for family, marked in (("best", []), ("paper", ["goal_unit", "evaluation.every", "low.angles"])):
        (run_folder / "config.toml").write_text(to_toml(apply(preset("point-maze", family=family), derived)))
        page = build_report([read_run(run_folder)])
        assert re.findall(r'<tr class="changed"><td class="setting">(.*?)</td>', page) == marked


def remove_files(folder):
    for path in folder.iterdir():
        if path.is_file() and path.name != "run.json":
            path.unlink()


def write_strange_arrays(folder):
    for path in (folder / "snapshots").iterdir():
        np.savez(path, visited=np.zeros((4, 2)), eval_paths=np.full((1, 3, 2), np.nan), eval_success=[True])


# How a run is damaged, a text that the page then has, and one that it does not have.
DAMAGES = {
    "empty": (remove_files, "Unknown task", "Configuration"),
    "no evaluations": (lambda folder: (folder / "eval.csv").unlink(), "no data yet", "smoothed over the last"),
    "no snapshots": (lambda folder: shutil.rmtree(folder / "snapshots"), "No snapshots yet", 'class="map"'),
    "no settings": (lambda folder: (folder / "config.toml").write_text("= ="), "Unknown task", "Configuration"),
    "odd facts": (
        lambda folder: (folder / "run.json").write_text('{"starts": [3], "status": null}'),
        "Configuration",
        "Versions",
    ),
    "damaged snapshots": (
        lambda folder: [path.write_bytes(b"PK") for path in (folder / "snapshots").iterdir()],
        "No snapshots yet",
        'class="map"',
    ),
    "half a video": (lambda folder: (folder / "video.mp4").write_bytes(b"\x00" * 10), "<video", "No video yet"),
    "no metrics": (lambda folder: (folder / "metrics.jsonl").write_text('{"step": 500}\n'), "Video", "Time per stage"),
    "not finite": (
        lambda folder: (folder / "metrics.jsonl").write_text('{"step": 500, "low/progress": NaN}\n'),
        "Video",
        "progress per segment",
    ),
    "strange arrays": (write_strange_arrays, 'class="map"', "selected landmark"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_shown_with_what_is_left(run_folder, damage):
    apply_damage, shown, missing = DAMAGES[damage]
    apply_damage(run_folder)
    page = build_report([read_run(run_folder)])
    checked(page)
    assert shown in page
    assert missing not in page


def test_writing_a_page_leaves_no_other_file(runs_folder, tmp_path):
    write_report(find_runs([runs_folder / "higl-0"]), tmp_path / "new" / "report.html")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]


def test_figures_do_not_import_jax(runs_folder, tmp_path):
    script = f"""
import sys
from higl.cli import main
assert main(["plot", {str(runs_folder)!r}, "-o", {str(tmp_path / "a.png")!r}, "--iqm"]) == 0
assert main(["landmarks", {str(runs_folder / "higl-0")!r}, "-o", {str(tmp_path / "b.png")!r}, "--graph"]) == 0
assert main(["report", {str(runs_folder / "higl-0")!r}, "-o", {str(tmp_path / "c.html")!r}]) == 0
import higl.figures.watch, higl.figures.video
assert not [name for name in sys.modules if name.partition(".")[0] in ("jax", "jaxlib", "mujoco", "gymnasium")]
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=250)


def test_success_at_the_last_step(tmp_path):
    folder = synthetic_run(tmp_path / "run", snapshots=0)
    page = build_report([read_run(folder)])
    rates = [float(line.split(",")[4]) for line in (folder / "eval.csv").read_text().splitlines()[1:]]
    assert f"<dt>at the last step (last 5)</dt><dd>{np.mean(rates[-5:]):.0%}</dd>" in page
    lines = (line.split(",") for line in (folder / "eval.csv").read_text().splitlines())
    (folder / "eval.csv").write_text("".join(",".join(line[:4] + line[5:]) + "\n" for line in lines))
    assert "<dt>at the last step (last 5)</dt><dd>-</dd>" in build_report([read_run(folder)])


def test_a_run_that_ended_with_its_last_episode_has_done_its_steps(tmp_path):
    """It was asked for 99,800 steps and did 100,000."""
    folder = synthetic_run(tmp_path / "run", snapshots=0)
    text = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(text.replace("steps = 100000", "steps = 99800"))
    assert "<dt>steps</dt><dd>100k</dd>" in build_report([read_run(folder)])
    (folder / "config.toml").write_text(text.replace("steps = 100000", "steps = 300000"))
    assert "<dt>steps</dt><dd>100k of 300k</dd>" in build_report([read_run(folder)])


def test_the_legend_explains_what_the_maps_show(tmp_path):
    """A walked map has no novelty landmarks and no pseudo-landmark."""
    folder = synthetic_run(tmp_path / "run", snapshots=2)
    paper = build_report([read_run(folder)])
    drawn = ("coverage landmark", "novelty landmark", "selected landmark", "pseudo-landmark", "shortest path")
    assert [f"</svg>{words}</li>" in paper for words in drawn] == [True] * 5
    for path in (folder / "snapshots").iterdir():
        snapshot = dict(np.load(path))
        empty = {"novelty": np.zeros((0, 2)), "pseudo_landmark": np.full(2, np.nan)}
        np.savez(path, allow_pickle=False, **(snapshot | empty))
    walked = build_report([read_run(folder)])
    assert [f"</svg>{words}</li>" in walked for words in drawn] == [True, False, True, False, True]
    assert 'data-layer="landmarks"' in walked
