"""Build the wheel and the source archive of a release, and check them: `python tools/release.py FOLDER`.

- There is one of each, and their metadata are valid and equal.
- The wheel holds every file of the package, and nothing else.
- The source archive builds the same wheel.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "higl"


def check_release(folder: Path) -> list[str]:
    """Return what is wrong with the archives in a folder, one line each."""
    wheels, sources = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        return [f"{folder} holds {len(wheels)} wheels and {len(sources)} source archives: expected one of each"]
    wheel, source = wheels[0], sources[0]
    return [*check_metadata(wheel, source), *check_content(wheel), *check_source(wheel, source)]


def check_metadata(wheel: Path, source: Path) -> list[str]:
    """Return what is wrong with the metadata: of each archive, and between them."""
    found = []
    texts = [_read_wheel(wheel, ".dist-info/METADATA"), _read_source(source, "PKG-INFO")]
    for path, text in zip((wheel, source), texts, strict=True):
        try:
            metadata = Metadata.from_email(text, validate=True)
        except ExceptionGroup as errors:
            found += [f"{path.name}: {error}" for error in errors.exceptions]
            continue
        if path.name.removeprefix(f"higl-{metadata.version}") == path.name:
            found.append(f"{path.name}: its metadata say version {metadata.version}")
        if metadata.description_content_type != "text/markdown" or not (metadata.description or "").strip():
            found.append(f"{path.name}: its metadata have no README")
    if texts[0] != texts[1]:
        found.append("the metadata of the wheel and of the source archive differ")
    return found


def check_content(wheel: Path) -> list[str]:
    """Return which files of the package the wheel lacks, and which it has besides."""
    expected = {path.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob("*") if path.is_file()}
    expected = {name for name in expected if "__pycache__" not in name}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    missing, besides = sorted(expected - names), sorted(names - expected)
    return [f"{wheel.name} lacks {name}" for name in missing] + [f"{wheel.name} also has {name}" for name in besides]


def check_source(wheel: Path, source: Path) -> list[str]:
    """Return in which files the wheel that the source archive builds differs."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with tarfile.open(source) as archive:
            # Python 3.11.0 to 3.11.3 know no filters; there, the attribute has no effect.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(folder)
        build_archives(folder / source.name.removesuffix(".tar.gz"), folder / "built", "wheel")
        (built,) = (folder / "built").glob("*.whl")
        first, second = _contents(wheel), _contents(built)
    differ = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    return [f"the source archive builds another {name}" for name in differ]


def build_archives(project: Path, folder: Path, *kinds: str) -> None:
    """Build a project's archives: `wheel`, `sdist`."""
    targets = [word for kind in kinds for word in ("-t", kind)]
    command = [sys.executable, "-m", "hatchling", "build", *targets, "-d", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _read_wheel(wheel: Path, suffix: str) -> bytes:
    (text,) = (content for name, content in _contents(wheel).items() if name.endswith(suffix))
    return text


def _read_source(source: Path, name: str) -> bytes:
    with tarfile.open(source) as archive:
        file = archive.extractfile(f"{source.name.removesuffix('.tar.gz')}/{name}")
        assert file is not None
        return file.read()


def main() -> int:
    """Build the archives into a folder without any, and check them."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve()
    build_archives(ROOT, folder, "sdist", "wheel")
    wrong = check_release(folder)
    for line in wrong:
        print(f"release: {line}", file=sys.stderr)
    if not wrong:
        print("\n".join(f"{path}: {path.stat().st_size / 1e6:.1f} MB" for path in sorted(folder.iterdir())))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
