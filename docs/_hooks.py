"""Additions to the site that are made from the code when it is built, so that they cannot go stale.

- `{{ settings }}` becomes the tables of settings.
- `[[module:name]]` becomes a link to the line that defines `name`, on a page with the source of `higl/module.py`.
- The tables of modules in `architecture.md` get links, and must list exactly the modules that exist.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from higl.settings.config import Config, Preset
from higl.settings.field_texts import field_texts
from higl.settings.flat import flat_config
from higl.settings.presets import PAPER_TASKS, is_derivable, preset

SOURCE = Path(__file__).resolve().parents[1] / "src" / "higl"
EXAMPLES = SOURCE.parents[1] / "examples"
_LINK = re.compile(r"\[\[([\w/]+):([\w.]+)\]\]")
# Settings that choose the others, so that they have no base value of their own.
_CHOICES = ("task", "preset")
_PACKAGE = re.compile(r"### `(\w+)/`")
_MODULE = re.compile(r"\| `(\w+)\.py` \|")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page with the source of each module and example."""
    sources = [(path.relative_to(SOURCE), f"higl/{path.relative_to(SOURCE)}", path) for path in SOURCE.rglob("*.py")]
    sources += [(Path("examples", path.name), f"examples/{path.name}", path) for path in EXAMPLES.glob("*.py")]
    for place, title, path in sorted(sources):
        name = place.with_suffix("").as_posix()
        text = f'---\nsearch:\n  exclude: true\n---\n\n# {title}\n\n```python linenums="1"\n{path.read_text()}```\n'
        page = File.generated(config, f"source/{name}.md", content=text, inclusion=InclusionLevel.NOT_IN_NAV)
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in settings and links."""
    if page.file.src_uri.startswith("source/"):
        return markdown
    if page.file.src_uri == "architecture.md":
        markdown = link_modules(markdown)
    if "{{ settings }}" in markdown:
        markdown = markdown.replace("{{ settings }}", settings_tables())
    return _LINK.sub(lambda match: link(*match.groups(), depth=page.file.src_uri.count("/")), markdown)


# --- Links to lines -------------------------------------------------------------------------------------------------


def link(module: str, name: str, depth: int) -> str:
    """Return a link to the line where a name is defined.

    Raises:
        PluginError: there is no such name, so the page has gone stale.
    """
    line = lines_of(module).get(name)
    if line is None:
        raise PluginError(f"[[{module}:{name}]]: higl/{module}.py defines no {name}")
    place = f"{'../' * depth}source/{module}.html#__codelineno-0-{line}"
    return f'<a href="{place}"><code>{module}.{name}</code></a>'


@cache
def lines_of(module: str) -> dict[str, int]:
    """Return the line of each function, class and method of a module."""
    path = SOURCE / f"{module}.py"
    if not path.exists():
        raise PluginError(f"[[{module}:...]]: there is no higl/{module}.py")
    found: dict[str, int] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                found[prefix + child.name] = child.lineno
                visit(child, f"{prefix}{child.name}.")

    visit(ast.parse(path.read_text()), "")
    return found


def link_modules(markdown: str) -> str:
    """Return the page "Architecture" with a link from each row of its tables of modules to the module's source.

    Raises:
        PluginError: the tables leave out a module, or list one that does not exist.
    """
    lines, package, listed = markdown.splitlines(), "", set()
    for number, text in enumerate(lines):
        if text.startswith("#"):
            heading = _PACKAGE.fullmatch(text)
            package = heading[1] if heading else ""
        row = _MODULE.match(text)
        if package and row:
            module = row[1] if package == "higl" else f"{package}/{row[1]}"
            listed.add(module)
            name = f'<a href="source/{module}.html"><code>{row[1]}.py</code></a>'
            lines[number] = f"| {name} |{text.removeprefix(row[0])}"
    existing = {path.relative_to(SOURCE).with_suffix("").as_posix() for path in SOURCE.rglob("*.py")}
    existing = {module for module in existing if not module.endswith(("__init__", "__main__"))}
    if listed != existing:
        missing, gone = sorted(existing - listed), sorted(listed - existing)
        raise PluginError(f"architecture.md: not listed: {missing}; listed, but not there: {gone}")
    return "\n".join(lines) + "\n"


# --- Settings -------------------------------------------------------------------------------------------------------


def settings_tables() -> str:
    """Return one table for each part of the settings, with what differs between the tasks below it."""
    parts = [("", Config)] + [
        (field.name, kind)
        for field, kind in ((f, get_type_hints(Config)[f.name]) for f in dataclasses.fields(Config))
        if dataclasses.is_dataclass(kind)
    ]
    return "\n\n".join(f"{_heading(name, kind)}\n\n{_table(name, kind)}" for name, kind in parts) + _presets()


def _heading(name: str, kind: Any) -> str:
    title = f"`{name}`" if name else "The run"
    return f"## {title}\n\n{(kind.__doc__ or '').strip().splitlines()[0]}"


def _table(part: str, kind: Any) -> str:
    texts = field_texts(kind)
    hints = get_type_hints(kind)
    rows = ["| setting | base value | what |", "|---|---|---|"]
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint):
            continue
        name = f"{part}.{field.name}" if part else field.name
        choices = ", ".join(f"`{choice}`" for choice in get_args(hint)) if get_origin(hint) is Literal else ""
        text = texts[field.name] + (f" One of {choices}." if choices else "")
        base = "" if name in _CHOICES else _shown(field.default)
        rows.append(f"| `{name}` | {base} | {text} |".replace("\n", " "))
    return "\n".join(rows)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _presets() -> str:
    """Return a table of the recipe `best`, and one of `paper` by task: what differs from the base values."""
    text = "\n\n## Presets\n\nWhat is not listed here has its base value above."
    base = flat_config(Config())
    for family in get_args(Preset):
        names = {"every environment": ""} if family == "best" else {task: task for task in PAPER_TASKS}
        columns = {title: flat_config(preset(task, family=family)) for title, task in names.items()}
        rows = [f"| setting | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
        for name in base:
            if name not in _CHOICES and any(values[name] != base[name] for values in columns.values()):
                rows.append(f"| `{name}` | {' | '.join(_shown(values[name]) for values in columns.values())} |")
        text += f"\n\n### `{family}`\n\n" + "\n".join(rows)
        if family == "best":
            derived = ", ".join(f"`{name}`" for name in base if is_derivable(name, preset("", "hrac")))
            text += f"\n\n[Derived from the environment](own-environment.md#what-is-derived): {derived}."
    return text + "\n"
