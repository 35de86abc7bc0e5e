"""Docstrings of dataclass fields: the text below each field is its documentation, in the help and on the site."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from itertools import pairwise


def field_texts(kind: type) -> dict[str, str]:
    """Return the docstring of each field of a dataclass, inherited fields included, as one line."""
    texts: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        body = _classes(owner.__module__)[owner.__name__].body if owner is not object else []
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                texts[ast.unparse(field.target)] = " ".join(str(text.value.value).split())
    return texts


@cache
def _classes(module: str) -> Mapping[str, ast.ClassDef]:
    """Return the class definitions of an imported module by name."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
