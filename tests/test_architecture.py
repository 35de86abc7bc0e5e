"""Imports point downward: which part of the package may import which."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"

# From top to bottom. A part imports itself and the parts below it; parts on one line do not import each other.
LAYERS = [
    {"__main__"},
    {"cli"},
    {"commands"},
    {"sweep"},
    {"figures"},
    {"__init__"},
    {"acting", "callbacks"},
    {"agent", "pretrained"},
    {"run"},
    {"algo", "envs"},
    {"settings"},
    {"text", "errors", "observations", "processor"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}

# Stricter than the order. A key is a part or a module, a value what it may import besides its own part.
ONLY = {
    "higl.algo": {"higl.settings.config", "higl.errors", "higl.text", "higl.observations", "higl.processor"},
    "higl.envs": {"higl.errors", "higl.text", "higl.observations"},
    "higl.settings.config": set(),
}

# Packages that are slow to import, or that belong to the learner.
WITHOUT_JAX = ("envs", "settings", "text", "errors", "processor", "cli")
LEARNING_PACKAGES = {"jax", "jaxlib", "optax"}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts if len(parts) == 2 or parts[-1] != "__init__" else parts[:-1])


MODULES = {module_name(path): path for path in sorted((SOURCE / "higl").rglob("*.py"))}


def part_of(module: str) -> str:
    return module.split(".")[1]


def imports_of(path: Path) -> set[str]:
    """Return every module that a file imports, at its top or in a function, or names in a string for `importlib`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by the full name"
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inside & MODULES.keys() or {node.module}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value.partition(":")[0]} & MODULES.keys()
    return found


IMPORTS = {module: imports_of(path) for module, path in MODULES.items()}


def is_allowed(importer: str, imported: str) -> bool:
    if importer == imported or imported == "higl":  # the version
        return True
    for scope, targets in ONLY.items():
        if importer == scope or importer.startswith(f"{scope}."):
            inside = imported == scope or imported.startswith(f"{scope}.")
            return inside or imported in targets
    here, there = part_of(importer), part_of(imported)
    return here == there or LEVEL[here] < LEVEL[there]


def test_every_part_has_a_place():
    assert {part_of(module) for module in MODULES} == LEVEL.keys()


def test_imports_point_downward():
    edges = [(importer, imported) for importer, found in IMPORTS.items() for imported in found]
    ours = [edge for edge in edges if edge[1].split(".")[0] == "higl"]
    assert len(ours) > 100
    assert [f"{importer} imports {imported}" for importer, imported in ours if not is_allowed(importer, imported)] == []


def test_only_the_version_is_taken_from_the_top():
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "higl":
                names = {alias.name for alias in node.names if f"higl.{alias.name}" not in MODULES}
                assert names <= {"__version__"}, module


@pytest.mark.parametrize("part", WITHOUT_JAX)
def test_part_does_without_jax(part):
    for module, found in IMPORTS.items():
        if part_of(module) == part:
            assert not {name.split(".")[0] for name in found} & LEARNING_PACKAGES, module


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("higl.sweep.plan", "higl.figures.curves", True),
        ("higl.figures.curves", "higl.sweep.plan", False),
        ("higl.sweep.worker", "higl.cli", False),
        ("higl.algo.learner", "higl.settings.config", True),
        ("higl.algo.learner", "higl.settings.layers", False),
        ("higl.algo.episodes", "higl.envs.adapt", False),
        ("higl.envs.make", "higl.settings.config", False),
        ("higl.settings.config", "higl.errors", False),
        ("higl.run.folder", "higl", True),
        ("higl.figures.report", "higl.commands.arguments", False),
    ],
)
def test_rules(importer, imported, allowed):
    assert is_allowed(importer, imported) == allowed
