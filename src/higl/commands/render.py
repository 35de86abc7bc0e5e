"""`higl render`: a video of a run's policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from higl.commands.arguments import Argument, Run, Switch
from higl.commands.command import check_seed, check_suffix, command, only_run, warn
from higl.commands.trust import TestedIn, TrustOptions, allowed_name
from higl.errors import SettingsError
from higl.pretrained import pretrained_run


@dataclass(frozen=True, kw_only=True)
class RenderOptions(TrustOptions):
    """Make a video of a run's policy, from above and from a tracking camera, with subgoal and landmarks."""

    run: Run
    """Folder of a run; with --pretrained, a task."""
    pretrained: Switch = False
    """Use the trained policy that comes with higl: `higl render ant-maze-u --pretrained`."""
    test_env: TestedIn = None
    """Environment to show it in, by its name (`module:id`): instead of the run's own, or the task's."""
    out: Annotated[Path | None, Argument(alias="-o", metavar="FILE", default="RUN/video.mp4")] = None
    """File to write: mp4. `higl report` shows RUN/video.mp4. With --pretrained the default is TASK.mp4."""
    episodes: int = 1
    """Number of episodes to show."""
    seed: int = 0
    """Seed of the episodes; `higl eval` with the same seed runs the same ones."""
    best: Switch = False
    """Show the best of several episodes: those that reach the goal soonest."""
    tries: int = 20
    """Number of episodes that --best chooses from."""
    whole: Switch = False
    """Continue each episode after the goal is reached."""
    flat: Switch = False
    """Draw plans, which need no graphics library."""
    size: int = 480
    """Height of the video in pixels."""


@command("render", RenderOptions)
def render(options: RenderOptions) -> int:
    """Make a video of a run's policy."""
    if options.out is not None:
        check_suffix(options.out, (".mp4",))
    if min(options.episodes, options.tries) < 1 or options.size < 64:
        raise SettingsError("--episodes and --tries must be 1 or more, --size 64 or more")
    check_seed(options.seed)
    from higl.figures.video import make_video
    from higl.run.files import VIDEO
    from higl.run.policy_file import load_policy
    from higl.run.reading import policy_path, tested_in

    # A policy that comes with the package has no logs of its training, and nothing to resume.
    folder = pretrained_run(str(options.run)) if options.pretrained else options.run
    run = only_run(folder, notices=not options.pretrained)
    # The folder of a policy that comes with the package may be read-only, so its video goes into the working folder.
    default = Path(f"{run.path.name}.mp4") if options.pretrained else run.path / VIDEO
    _, config = load_policy(policy_path(run.path))
    stored = tested_in(run.path, config)
    said = make_video(
        run,
        options.out or default,
        task=allowed_name(options.test_env, stored, run.path, trust=options.trust, option="--env"),
        episodes=options.episodes,
        seed=options.seed,
        best=options.tries if options.best else 0,
        flat=True if options.flat else None,
        size=options.size,
        whole=options.whole,
        say=lambda text: warn([text]),
    )
    print(said)
    return 0
