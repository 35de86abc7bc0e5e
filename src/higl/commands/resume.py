"""`higl resume`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from higl.commands.arguments import Argument, Run
from higl.commands.command import check_checkpoint_minutes, command
from higl.commands.trust import NamedEnv, allowed_name, import_task_module
from higl.commands.work import WorkOptions, allow_stored, announce_work, check_test_env, with_earlier, work_on_run
from higl.errors import SettingsError
from higl.run.held import find_held_run
from higl.run.process import prepare_process
from higl.run.reading import how_to_continue, read_config, read_facts
from higl.settings.layers import apply


@dataclass(frozen=True, kw_only=True)
class ResumeOptions(WorkOptions):
    """Continue a run from its last checkpoint, exactly as if it had not stopped."""

    run: Run
    """Folder of the run."""
    env: NamedEnv = None
    """Environment to train in, by its name (`module:id`), for a run that has none."""
    steps: Annotated[int | None, Argument(default="as before")] = None
    """Total number of environment steps to train to."""


@command("resume", ResumeOptions)
def resume(options: ResumeOptions) -> int:
    """Continue a run."""
    check_checkpoint_minutes(options.checkpoint_minutes)
    facts, config = read_facts(options.run), read_config(options.run)
    has_id, continuing = facts.get("has_id", True), how_to_continue(options.run, facts, config)
    if options.steps is not None:
        reached = facts["saved_step"] or 0
        if options.steps < reached:
            raise SettingsError(f"--steps {options.steps}: {options.run} has already reached {reached} steps")
        config = apply(config, {"steps": options.steps})
    held = find_held_run(options.run, config)
    # A run that has reached its success can continue to the steps that it was to have, if they are asked for.
    unreached = options.steps is not None and (facts["saved_step"] or 0) < options.steps
    if held is not None and held.state == "finished" and held.config.steps == config.steps and not unreached:
        more = f"{continuing} --steps N` extends it to N steps" if has_id else f"{continuing}` extends it"
        print(f"{options.run} is finished. `{more}.")
        return 0
    if not has_id and options.env is None:
        raise SettingsError(
            f"{options.run} was trained in Python on an environment object: `{continuing}` continues it; "
            "or name an environment with --env"
        )
    if options.steps is not None:
        facts |= {"stop_at": None}
    check_test_env(options.run, config, options, facts)
    announce_work(options.run, config, options, facts)
    prepare_process(options.cores, options.device)  # first: the module may import NumPy or JAX
    task = allowed_name(options.env, config.task, options.run, trust=options.trust, option="--env")
    allow_stored(options.run, facts, options)
    if options.test_env is not None:
        import_task_module(options.test_env)
    return work_on_run(options.run, config, with_earlier(options, facts), new=False, env=task)
