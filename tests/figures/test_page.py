"""The page in a real browser: curves, slider and video react; no errors, no requests; phone and dark mode."""

import shutil

import pytest
from support.browser import wait_for
from support.serving import serving
from support.synthetic import synthetic_run

from higl.figures.report import write_report
from higl.run.reading import find_runs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(runs_folder, video_bytes, tmp_path_factory):
    root = tmp_path_factory.mktemp("report")
    folder = shutil.copytree(runs_folder / "higl-0", root / "higl-0")
    (folder / "video.mp4").write_bytes(video_bytes)
    write_report(find_runs([folder, runs_folder / "hrac-0", runs_folder / "pusher-0"]), root / "report.html")
    return f"file://{root / 'report.html'}"


@pytest.fixture(scope="module")
def page(browser, report):
    opened = browser.open(report)
    yield opened
    assert opened.errors == []
    assert all(address.startswith(("file:", "data:")) for address in opened.requests)
    opened.close()


def test_curves_show_their_values_by_keyboard_and_pointer(page):
    assert page.run("document.querySelectorAll('#success-1 polyline.curve').length") == 2
    assert page.run("document.querySelector('#success-1 polyline.curve').getTotalLength() > 100")
    page.run("document.getElementById('success-1').focus()")
    page.press("End")
    readout = "document.querySelector('output[for=success-1]').textContent"
    assert page.run(readout).startswith("100k steps: HIGL (1 seed)")
    page.press("ArrowLeft")
    assert page.run(readout).startswith("95k steps")
    page.run("document.activeElement.blur()")
    assert page.run(readout) == ""
    box = page.run("(({x, y, width, height}) => [x, y, width, height])(chart())".replace(
        "chart()", "document.getElementById('success-1').getBoundingClientRect()"))  # fmt: skip
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + box[2] / 2, y=box[1] + box[3] / 2)
    assert "HRAC (1 seed)" in page.run(readout)


def test_the_slider_moves_all_maps_and_shows_the_moment(page):
    shown = "[...document.querySelectorAll('#run-1 svg.map')].map(m => [...m.querySelectorAll('.moment')]"
    shown += ".findIndex(g => getComputedStyle(g).display !== 'none'))"
    title = "document.querySelector('#run-1 .controls output').textContent"
    assert page.run(shown) == [3, 3]
    page.run("document.getElementById('run-1-slider').focus()")
    page.press("Home")
    assert page.run(shown) == [0, 0]
    assert page.run(title).startswith("25k steps")
    page.press("ArrowRight")
    assert page.run(shown) == [1, 1]
    assert page.run("document.getElementById('run-1-slider').getAttribute('aria-valuetext')") == page.run(title)


def test_playing_stops_at_the_end(page):
    page.run("document.getElementById('run-1-slider').value = 2")
    page.run("document.getElementById('run-1-play').focus()")
    page.press("Enter")
    assert page.run("document.getElementById('run-1-play').textContent") == "Pause"
    wait_for(lambda: page.run("document.getElementById('run-1-play').textContent") == "Play")
    assert page.run("document.getElementById('run-1-slider').value") == "3"


def test_layers_can_be_shown_and_hidden(page):
    edge = "getComputedStyle(document.querySelector('#run-1 .moment.on .edge')).display"
    assert page.run(edge) == "none"
    page.run("document.getElementById('run-1-graph').focus()")
    page.press(" ")
    assert page.run(edge) != "none"
    page.run("document.getElementById('run-1-visited').click()")
    assert page.run("getComputedStyle(document.querySelector('#run-1 .moment.on .visited')).display") == "none"


def test_the_video_plays(page):
    video = "document.querySelector('#run-1 video')"
    if page.run(f"{video}.canPlayType('video/mp4; codecs=\"avc1.42E01E\"')") == "":
        pytest.skip("THIS BROWSER HAS NO H.264: the video was NOT played")
    wait_for(lambda: page.run(f"{video}.readyState") >= 2)
    assert page.run(f"{video}.duration") == pytest.approx(1.0, abs=0.2)
    page.run(f"{video}.play().then(() => true)")
    wait_for(lambda: page.run(f"{video}.currentTime") > 0)


def test_a_link_to_a_run_opens_its_section(page):
    assert not page.run("document.getElementById('run-2').open")
    page.run("document.querySelector('a[href=\"#run-2\"]').click()")
    wait_for(lambda: page.run("document.getElementById('run-2').open"))


def test_every_control_can_be_reached_by_keyboard(page):
    page.run("document.querySelector('.skip').focus()")
    reached = set()
    for _ in range(40):
        page.press("Tab")
        reached.add(page.run("document.activeElement.id || document.activeElement.tagName"))
    assert {"success-1", "run-1-play", "run-1-slider", "run-1-graph"} <= reached


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_on_a_phone(browser, report, dark):
    page = browser.open(report, width=360, phone=True, dark=dark)
    assert page.run("document.documentElement.scrollWidth") <= 360
    assert page.run("parseFloat(getComputedStyle(document.body).fontSize)") >= 15
    # The smallest text of a chart, in real pixels.
    smallest = page.run(
        "Math.min(...[...document.querySelectorAll('.chart .tick')].map(t => t.getBoundingClientRect().height))"
    )
    assert smallest >= 9
    background = page.run("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")
    assert page.errors == []
    page.close()


def test_print_shows_everything_on_white(browser, report):
    page = browser.open(report, dark=True)
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.run("[...document.querySelectorAll('details')].every(d => d.open)")
    page.call("Emulation.setEmulatedMedia", media="print", features=[])
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.querySelector('button')).display") == "none"
    pdf = page.call("Page.printToPDF", printBackground=True)
    assert len(pdf["data"]) > 10_000
    assert page.errors == []
    page.close()


def test_a_watched_page_updates_and_keeps_the_readers_choices(browser, run_folder, video_bytes):
    (run_folder / "video.mp4").write_bytes(video_bytes)
    with serving(run_folder, seconds=0.2) as port:
        page = browser.open(f"http://127.0.0.1:{port}/")
        page.run("document.getElementById('run-1-graph').click()")
        page.run("document.getElementById('run-1-settings').open = true")
        page.run("document.querySelector('video').dataset.mine = 'yes'")
        with (run_folder / "metrics.jsonl").open("a") as file:
            file.write('{"step": 105000, "time": 1200.0}\n')
        shutil.copy(run_folder / "snapshots/000000100000.npz", run_folder / "snapshots/000000105000.npz")
        wait_for(lambda: "105k" in page.run("document.querySelector('.facts').textContent"))
        assert page.run("document.getElementById('run-1-slider').value") == "3"
        assert page.run("document.getElementById('run-1-graph').checked")
        assert page.run("document.getElementById('run-1-settings').open")
        assert page.run("document.querySelector('video').dataset.mine") == "yes"
        assert page.errors == []
        assert {address.rpartition(str(port))[2] for address in page.requests if "http" in address} == {"/", "/version"}
        page.close()


def test_a_damaged_run_causes_no_script_error(browser, tmp_path):
    folder = synthetic_run(tmp_path / "run", snapshots=1)
    for path in folder.iterdir():
        if path.is_file() and path.name != "run.json":
            path.unlink()
    shutil.rmtree(folder / "snapshots")
    write_report(find_runs([folder]), tmp_path / "report.html")
    page = browser.open(f"file://{tmp_path / 'report.html'}")
    assert page.run("document.querySelectorAll('.notices li').length") >= 4
    assert page.errors == []
    page.close()
