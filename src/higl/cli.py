"""The command line: `higl COMMAND ...`.

To add a command: write a module in `higl.commands` with a function from arguments to an exit code (the decorator
`higl.commands.command.command` makes one from a function of options), and list it here. A module is imported when its
command is called, so `higl --help` and `higl tasks` start at once, and a command can choose cores and device before JAX
is imported.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from higl import __version__

# Command: (module, function, one line of help).
COMMANDS = {
    "train": ("higl.commands.train", "train", "train a task, or continue an existing run"),
    "resume": ("higl.commands.resume", "resume", "continue a run from its last checkpoint"),
    "eval": ("higl.commands.evaluate", "evaluate", "measure a trained policy over many episodes"),
    "runs": ("higl.commands.runs", "runs", "list runs with their state and latest success"),
    "sweep": ("higl.commands.sweep", "sweep", "train many runs: the figures of the paper, or your own"),
    "results": ("higl.commands.results", "results", "collect results of runs and write the results page"),
    "plot": ("higl.commands.plot", "plot", "draw learning curves of runs"),
    "landmarks": ("higl.commands.landmarks", "landmarks", "draw a run's landmark maps"),
    "render": ("higl.commands.render", "render", "make a video of a run's policy"),
    "report": ("higl.commands.report", "report", "write a report about runs, one HTML page"),
    "watch": ("higl.commands.watch", "watch", "serve the report on this machine while runs train"),
    "track": ("higl.commands.track", "track", "write a run into Weights & Biases or Trackio"),
    "card": ("higl.commands.card", "card", "write a folder about a policy for a model hub"),
    "export": ("higl.commands.export", "export", "write a policy as an ONNX graph"),
    "bench": ("higl.commands.bench", "bench", "time every stage of a run on this machine"),
    "tasks": ("higl.commands.tasks", "tasks", "list the tasks"),
    "show": ("higl.commands.show", "show", "draw a task"),
}


def usage() -> str:
    """Return the help of `higl` itself."""
    lines = ["usage: higl COMMAND ...", "", "Hierarchical reinforcement learning guided by landmarks.", ""]
    width = max(map(len, COMMANDS))
    lines += [f"  {name:{width}}  {help_line}" for name, (_, _, help_line) in COMMANDS.items()]
    lines += ["", "`higl COMMAND --help` describes a command; `higl --version` prints the version."]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 usage error, 128 + N stopped by signal N."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words)
        sys.stdout.flush()  # here, where it can be caught that nobody reads it any more
        return code
    except KeyboardInterrupt:
        begin = "\n" if sys.stderr.isatty() else ""  # a terminal has printed ^C
        print(f"{begin}{' '.join(['higl', *words[:1]])}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `higl runs | head`: the reader is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if words else 2
    if words[0] in ("--version", "-V"):
        print(f"higl {__version__}")
        return 0
    if words[0] not in COMMANDS:
        return _unknown(words[0])
    module, function, _ = COMMANDS[words[0]]
    return getattr(importlib.import_module(module), function)(words[1:])


def _unknown(word: str) -> int:
    from higl.text import did_you_mean

    print(f"higl: unknown command {word!r}{did_you_mean(word, COMMANDS)} (`higl --help` lists them)", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
