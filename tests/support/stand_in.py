"""A stand-in for the process of a run: it writes a real run folder, saves, stops and fails, but does not train.

`python stand_in.py PARENT FOLDER ARGUMENTS...` has the arguments of `higl.sweep.worker`. It logs what it does in
`history.txt` of the run folder. Settings control it: `evaluation.every` steps take a tenth of a second, and with
`batch_size = 13` it fails halfway.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from higl.run.files import FACTS
from higl.run.folder import RunFolder
from higl.run.reading import is_run, read_config
from higl.settings.config import Config
from higl.settings.layers import apply, read_settings
from higl.sweep.worker import stop_with_parent, wait_for_folder

SECONDS = 0.1
UNLUCKY = 13


def note(folder: Path, text: str) -> None:
    with open(folder / "history.txt", "a") as file:
        file.write(f"{text}\n")


def main() -> int:
    parent, folder, words = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    stop_with_parent(parent)
    wait_for_folder(folder)
    stop = []
    signal.signal(signal.SIGTERM, lambda number, frame: stop.append(number))
    if is_run(folder):
        config = read_config(folder)
        if "--steps" in words:
            config = apply(config, {"steps": int(words[words.index("--steps") + 1])})
        run = RunFolder.open(folder, print)
        run.change_settings(config)
    else:
        config = apply(Config(), read_settings(Path(words[words.index("--config") + 1])))
        run = RunFolder.create(folder, config, print)
    if run.facts["status"] == "finished":
        note(folder, "finished before")
        return 0
    step = run.facts["saved_step"] or 0
    run.cut(run.facts.get("lengths", {}))
    run.start(1, "cpu (stand-in)", step)
    note(folder, f"start {step}")
    # Processes that tests kill: the worker or driver, and this process.
    (folder / "processes.json").write_text(json.dumps({"parent": parent, "self": os.getpid()}))
    config = run.config
    while step < config.steps and not stop:
        time.sleep(SECONDS)
        step += config.evaluation.every
        if config.batch_size == UNLUCKY and step > config.steps / 2:
            run.update(status="failed", message=f"failed at step {step:,}: a stand-in's bad luck")
            return 1
        run.episode({"step": step, "episode": 1, "time": 0.0})
        success = min(1.0, step / config.steps)
        row = {"step": step, "time": 0.0, "episodes": 5, "success": success, "return": 0.0, "steps_to_success": ""}
        run.evaluation(row | {"path_length": 1.0})
        run.update(saved_step=step, lengths=run.lengths())
    run.update(status="finished" if step >= config.steps else "stopped")
    note(folder, f"{'finish' if step >= config.steps else 'stop'} {step}")
    run.close()
    assert (folder / FACTS).is_file()
    return 128 + stop[0] if step < config.steps else 0


if __name__ == "__main__":
    sys.exit(main())
