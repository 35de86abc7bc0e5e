"""`higl export`: a policy for programs without Python."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from higl.commands.arguments import Out, Run
from higl.commands.command import check_suffix, command
from higl.run.reading import policy_path


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Write a policy as an ONNX graph, which acts without Python. Needs the extra `onnx`.

    Policies that walk a map (HIGL with the preset best, and those that come with higl) cannot be exported: use
    `higl.load_policy` in Python.
    """

    run: Run
    """Folder of a run, or a policy file."""
    out: Out = Path("policy.onnx")
    """File to write: onnx."""


@command("export", ExportOptions)
def export(options: ExportOptions) -> int:
    """Write a policy as an ONNX graph."""
    check_suffix(options.out, (".onnx",))
    file = policy_path(options.run)
    from higl.run.onnx_file import save_onnx
    from higl.run.policy_file import load_policy

    policy, config = load_policy(file)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    save_onnx(options.out, policy)
    print(f"{options.out}: {config.task}, both levels, a new subgoal every {policy.period} steps")
    return 0
