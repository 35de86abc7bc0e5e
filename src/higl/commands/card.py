"""`higl card`: a folder to upload to a model hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from higl.commands.arguments import Argument, Cores, Runs, Switch
from higl.commands.command import check_seed, command, warn
from higl.commands.trust import NamedEnv, TrustOptions, allowed_name
from higl.errors import SettingsError
from higl.pretrained import pretrained_run
from higl.run.process import prepare_process

if TYPE_CHECKING:
    from higl.run.reading import Run


@dataclass(frozen=True, kw_only=True)
class CardOptions(TrustOptions):
    """Measure a policy and write a folder for a model hub: policy, model card, settings, curve, landmark map, video."""

    runs: Runs
    """Folder of the run whose policy is published, then those of its other seeds, if any; with --pretrained, a task."""
    pretrained: Switch = False
    """Use the trained policy that comes with higl: `higl card ant-maze-u --pretrained`."""
    env: NamedEnv = None
    """Environment of a run that was trained in Python on an environment object, by its name (`module:id`)."""
    out: Annotated[Path, Argument(alias="-o", metavar="DIR")] = Path("card")
    """Folder to write."""
    episodes: int = 100
    """Number of test episodes of each run."""
    seed: int = 0
    """Seed of the test episodes."""
    license: str = "mit"
    """Licence of the policy, as model hubs abbreviate it."""
    flat: Switch = False
    """Draw the video as plans, which need no graphics library."""
    cores: Cores = ()
    """Cores to run on."""


@command("card", CardOptions)
def card(options: CardOptions) -> int:
    """Write a folder for a model hub."""
    if options.episodes < 1:
        raise SettingsError("--episodes must be 1 or more")
    check_seed(options.seed)
    if options.pretrained and len(options.runs) > 1:
        raise SettingsError("--pretrained takes one task")
    folders = [pretrained_run(str(options.runs[0]))] if options.pretrained else options.runs
    prepare_process(options.cores)
    from higl.figures.card import write_card
    from higl.run.reading import find_runs

    runs = find_runs(folders)
    for run in runs:
        allowed_name(options.env, _tested_in(run, options.env), run.path, trust=options.trust, option="--env")
    names = write_card(
        runs,
        options.out,
        env=options.env,
        episodes=options.episodes,
        seed=options.seed,
        licence=options.license,
        flat=True if options.flat else None,
        say=lambda text: warn([text]),
    )
    print(f"{options.out}: {', '.join(names)}")
    return 0


def _tested_in(run: Run, env: str | None) -> str:
    """Return the environment that a run was tested in, by its name; `env` is what the user calls it.

    Raises:
        SettingsError: it has another name, or none and the user gave none.
    """
    from higl.run.reading import read_config, tested_in

    stored = tested_in(run.path, read_config(run.path))
    unnamed = stored == run.task and not run.facts.get("has_id", True)
    if unnamed and env is None:
        raise SettingsError(
            f"{run.path} was trained in Python on an environment object: register that environment with Gymnasium and "
            "name it, --env module:Id"
        )
    if not unnamed and env not in (None, stored):
        raise SettingsError(
            f"{run.path} was tested in {stored}, and so is its card: leave out --env; "
            f"`higl eval {run.path} --env {env}` measures its policy there"
        )
    return stored
