"""A folder to upload to a model hub: the policy, a model card with its success, pictures and a video.

The folder is a small run folder too: `higl.load_policy`, `higl eval` and `higl render` read it. Nothing here uses the
network.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from higl.algo.policy import Policy
from higl.errors import RenderError, SettingsError
from higl.figures.curves import make_curves, save
from higl.figures.maps import draw_landmarks
from higl.figures.video import make_video
from higl.pretrained import copy_run
from higl.run.files import replace_file
from higl.run.measure import Evaluation, measure_policy
from higl.run.naming import algorithm_title, changed_settings, task_name
from higl.run.policy_file import load_policy
from higl.run.reading import Run, how_to_repeat, policy_path
from higl.settings.flat import differing, flat_config
from higl.settings.layers import toml_line
from higl.settings.presets import has_rewards
from higl.text import counted, duration, module_in, value_text

CARD, CURVE, MAP = "README.md", "curve.png", "landmarks.png"
VIDEO = "replay.mp4"
"""Name of the video: hubs show a file of this name beside the card."""

_PAPERS = {"higl": "2110.13625", "hrac": "2006.11485", "hiro": "1805.08296"}
"""Where each algorithm was published, on arXiv."""

# Packages whose versions the card names.
_PACKAGES = ("higl", "jax", "mujoco", "gymnasium", "numpy", "Python")


@dataclass(frozen=True)
class Seed:
    """A run of the card: its seed, its steps, and the success of its policy."""

    run: Run
    measured: Evaluation

    @cached_property
    def policy(self) -> Policy:
        """The run's policy."""
        return load_policy(policy_path(self.run.path))[0]

    @property
    def number(self) -> int:
        """The seed of the run."""
        return self.policy.config.seed

    @property
    def steps(self) -> int:
        """Environment steps that the policy was trained for."""
        saved = self.run.facts.get("saved_step")
        return saved if isinstance(saved, int) else self.run.last_step


def write_card(
    runs: Sequence[Run],
    folder: Path,
    *,
    episodes: int,
    seed: int,
    env: str | None = None,
    licence: str = "mit",
    flat: bool | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[str]:
    """Measure runs that differ only in their seed, and write a folder about them with the policy of the first.

    Args:
        runs: the runs.
        folder: folder to write; new, empty, or an earlier card.
        episodes: test episodes of each run.
        seed: seed of these episodes.
        env: name of the environment, its module imported; None: the one that the runs name.
        licence: licence of the policy, as hubs abbreviate it.
        flat: True draws the video as plans; None prefers MuJoCo's renderer.
        say: receives messages for the user.

    Returns:
        The names of the files.

    Raises:
        SettingsError: the runs differ in more than their seeds, or the folder holds something else.
        RunFolderError: a run has no policy yet.
    """
    _check(runs, folder)
    if env is not None:
        runs = [replace(run, facts=run.facts | {"test_env": env}) for run in runs]
    seeds = [Seed(run, measure_policy(policy_path(run.path), seed, episodes, _tested_in(run))) for run in runs]
    folder.mkdir(parents=True, exist_ok=True)
    for name in (CURVE, MAP, VIDEO):
        (folder / name).unlink(missing_ok=True)
    copy_run(runs[0].path, folder, test_env=env)
    _draw(runs, folder, seed, flat, say)
    replace_file(folder / CARD, card_text(seeds, folder, seed, licence).encode())
    return sorted(path.name for path in folder.iterdir())


def _tested_in(run: Run) -> str:
    """Return the name of the environment that a run was tested in."""
    return run.test_env or run.task


def _check(runs: Sequence[Run], folder: Path) -> None:
    if folder.exists() and not (folder.is_dir() and ((folder / CARD).is_file() or not any(folder.iterdir()))):
        raise SettingsError(f"{folder} exists and is no earlier card: name a new folder")
    if any(folder.resolve() == run.path.resolve() for run in runs):
        raise SettingsError(f"{folder} is the run itself: name a new folder")
    differ = differing(*(run.settings | {"test_env": run.test_env} for run in runs), leave_out=("seed",))
    if differ:
        raise SettingsError(f"a card is about one policy and its seeds, and these runs differ in {', '.join(differ)}")
    for run in runs:
        policy_path(run.path)


def _draw(runs: Sequence[Run], folder: Path, seed: int, flat: bool | None, say: Callable[[str], None]) -> None:
    """Draw what the first run has the data for."""
    if len(runs[0].evaluations["step"]):
        curve = make_curves(runs, ("success",))
        assert curve is not None
        save(curve, folder / CURVE)
    if runs[0].snapshots:
        save(draw_landmarks(runs[0]), folder / MAP)
    try:
        make_video(runs[0], folder / VIDEO, task=_tested_in(runs[0]), seed=seed, flat=flat, say=say)
    except RenderError as error:
        say(f"no video: {error}")


def card_text(seeds: Sequence[Seed], folder: Path, test_seed: int, licence: str) -> str:
    """Return the model card: YAML metadata for the hub, then Markdown. It refers to the pictures in the folder."""
    shown, policy = seeds[0], seeds[0].policy
    config, run = policy.config, shown.run
    changed = changed_settings(config, leave_out=("task", "reward", "seed", "steps"))
    template = resources.files("higl.figures").joinpath("page", "card.md").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters.update(counted=counted, quoted=_quoted, percent=lambda share: f"{100 * share:.1f}%")
    return environment.from_string(template).render(
        title=f"{algorithm_title(config.algo)} on {run.task_title}",
        algorithm=algorithm_title(config.algo),
        paper=_PAPERS[config.algo],
        has_rewards=has_rewards(config.task),
        tested_in=_tested_in(run),
        has_own_test=run.test_env is None,
        module=module_in(_tested_in(run)),
        repeat=how_to_repeat(run.facts, config),
        name=f"{config.algo}-{task_name(config, run.test_env)}",
        config=config,
        policy=policy,
        parameters=_parameters(policy),
        action_low=_bounds(policy.spaces.action_low),
        action_high=_bounds(policy.spaces.action_high),
        seeds=seeds,
        shown=shown,
        test_seed=test_seed,
        licence=licence,
        settings=[toml_line(name, flat_config(config)[name]) for name in changed],
        trained_on=_trained_on(run),
        versions=_versions(run),
        files={name for name in (CURVE, MAP, VIDEO) if (folder / name).exists()},
    )


def _parameters(policy: Policy) -> int:
    """Return the number of weights that were trained; with a map, the high level's network is not."""
    layers = policy.low_actor if policy.config.walks_map else (*policy.low_actor, *policy.high_actor)
    return sum(array.size for layer in layers for array in layer)


def _quoted(text: Any) -> str:
    """Return a text as YAML, which reads the strings of JSON."""
    return json.dumps(str(text))


def _bounds(numbers: Sequence[float]) -> str:
    """Return the bound of each action, or the one number that all have in common."""
    return value_text(float(numbers[0]) if len(set(numbers)) == 1 else tuple(map(float, numbers)))


def _trained_on(run: Run) -> str:
    """Return how long the run took and on what: ', 1h 27m on 1 core (AMD EPYC)'."""
    last, seconds = _last_start(run), run.facts.get("seconds")
    words = [f", {duration(seconds)}"] if isinstance(seconds, (int, float)) else []
    words += [f"on {counted(last['cores'], 'core')}"] if last.get("cores") else []
    words += [f"({last['processor']})"] if last.get("processor") else []
    return " ".join(words if seconds is not None else ["", *words])


def _versions(run: Run) -> list[str]:
    """Return the versions that the run was trained with: 'jax 0.10.2'."""
    last = _last_start(run)
    packages = (last.get("packages") or {}) | {"Python": last.get("python")}
    return [f"{name} {packages[name]}" for name in _PACKAGES if packages.get(name)]


def _last_start(run: Run) -> dict[str, Any]:
    starts = run.facts.get("starts")
    return starts[-1] if isinstance(starts, list) and starts and isinstance(starts[-1], dict) else {}
