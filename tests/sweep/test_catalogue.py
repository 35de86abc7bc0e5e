"""Catalogues: the entries of the paper, and mistakes that are named."""

import tomllib

import pytest
from support.sweeps import OWN_CATALOGUE

from higl.errors import CatalogueError
from higl.sweep.catalogue import PAPER as PAPER_FILE
from higl.sweep.catalogue import find_entry, read_catalogue

PAPER = read_catalogue()


def test_every_figure_of_the_paper_is_there_with_its_preset():
    figures = ["fig3", "fig3-best", "fig4a", "fig4b", "fig4c", "fig5a", "fig5b", "fig5c", "fig6"]
    sparse = [f"sparse-{what}" for what in ("coverage", "novelty", "landmarks", "shift", "degree")]
    appendix = ["discard", "automatic-shift", "larger-maze", "larger-maze-best"]
    assert list(PAPER) == [*figures, *sparse, *appendix, "baselines", "hrac-best", "leave-one-out"]
    best = {"fig3-best", "larger-maze-best", "hrac-best", "leave-one-out"}
    assert {name: entry.preset for name, entry in PAPER.items()} == {
        name: "best" if name in best else "paper" for name in PAPER
    }
    assert all("preset" in table for table in tomllib.loads(PAPER_FILE.read_text()).values())


def test_figure_3_is_the_same_with_both_presets_and_the_pusher_has_1m_steps():
    paper, best = PAPER["fig3"], PAPER["fig3-best"]
    assert (paper.variants, paper.tasks) == (best.variants, best.tasks)
    assert [task.steps for task in paper.tasks if task.task == "pusher"] == [1_000_000]


def test_every_figure_with_curves_states_what_the_paper_concludes():
    for entry in PAPER.values():
        ours = entry.draw == "landmarks" or entry.preset == "best" or entry.name == "baselines"
        assert (bool(entry.claim), bool(entry.better)) == (not ours, not ours)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("hidden", "hiden", "variant 'plain': unknown setting hiden; did you mean hidden?"),
        ("[64, 64]", "-3", "variant 'plain': hidden"),
        ("high.relabel = true", "algo = 'sac'", "variant 'long': algo"),
        ("high.relabel = true", "task = 'pusher'", "task is not a setting here: use `tasks` and `seeds`"),
        ("[mine.settings]", "[mine.setings]", "mine: unknown 'setings'; did you mean settings?"),
        ("[3, 7]", "-1", "variant 'long': seeds = -1: expected a number (4, at most 1,000) or a list"),
        ("[3, 7]", "[]", "expected a number (4, at most 1,000) or a list"),
        ("[3, 7]", "[true]", "variant 'long': seeds = [True]: expected a number"),
        ("[3, 7]", "[99999999999999999999]", "variant 'long': seeds = [99999999999999999999]: expected a number"),
        ("[3, 7]", "10000000000000", "variant 'long': seeds = 10000000000000: expected a number"),
        (", steps = 1000 }", " }", "no steps: give the sweep or each of its tasks a number of steps"),
        ("steps = 1000 }", "steps = 1.5 }", "steps = 1.5: expected a positive integer"),
        ('task = "reacher"', 'task = "reecher"', "tasks: unknown task 'reecher'; did you mean reacher?"),
        ('"dense"', '"thick"', "reward = 'thick': expected one of sparse, dense"),
        ('task = "reacher"', 'tusk = "reacher"', "tasks: expected { task = "),
        ("plain = {}", "plain = 3", "variant 'plain': expected a table of settings"),
        ("plain = {}", "plain = {}\nother = {}", "the variants 'plain' and 'other' are the same on reacher"),
        ("[mine]", "[mine]\npreset = 'bset'", "mine: preset = 'bset': expected one of best, paper"),
        ("[mine]", "[mine]\ndraw = 'boxes'", "draw = 'boxes': expected one of curves, landmarks"),
        ("[mine]", "[mine]\nbetter = [['plain', 'lang']]", "better: expected pairs of variants such as"),
        ("[mine]", "[mine]\nbetter = [['plain']]", "better: expected pairs of variants such as"),
        ("[mine]", "[mine]\nclaim = 3", "claim = 3: expected a string"),
        ("[mine]", "[mine", "is not a TOML file"),
        ("[mine.variants]", "[mine.variant]", "unknown 'variant'; did you mean variants?"),
    ],
)
def test_mistakes_are_reported_in_one_line(tmp_path, before, after, message):
    assert before in OWN_CATALOGUE
    (tmp_path / "own.toml").write_text(OWN_CATALOGUE.replace(before, after, 1))
    with pytest.raises(CatalogueError) as error:
        read_catalogue(tmp_path / "own.toml")
    assert message in str(error.value)
    assert "own.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_files_and_entries(tmp_path):
    with pytest.raises(CatalogueError, match="no such file"):
        read_catalogue(tmp_path / "none.toml")
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(CatalogueError, match="contains no sweep"):
        read_catalogue(tmp_path / "empty.toml")
    with pytest.raises(CatalogueError, match="no sweep 'fig33' in the catalogue; did you mean fig3"):
        find_entry(PAPER, "fig33")


def test_preset_of_an_entry_and_of_a_variant(tmp_path):
    text = OWN_CATALOGUE.replace("[mine]", '[mine]\npreset = "paper"')
    text = text.replace("plain = {}", 'plain = { preset = "best" }')
    (tmp_path / "own.toml").write_text(text)
    entry = read_catalogue(tmp_path / "own.toml")["mine"]
    reacher, other = entry.tasks
    plain, long = entry.variants
    assert entry.given(reacher, plain, 0, {})["preset"] == "best"
    assert entry.given(reacher, long, 0, {})["preset"] == "paper"
    assert entry.given(reacher, long, 0, {"preset": "best"})["preset"] == "best"
    assert entry.given(other, long, 0, {})["preset"] == "paper"
