"""`higl report`: the page it writes, and files that cannot be written."""

from higl.cli import main


def test_page(runs_folder, tmp_path, capsys):
    out = tmp_path / "report.html"
    assert main(["report", str(runs_folder / "higl-0"), "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 1 run, {out.stat().st_size / 1e6:.1f} MB\n"
    assert "Point Maze" in out.read_text()


def test_mistakes(runs_folder, tmp_path, capsys):
    assert main(["report", str(runs_folder), "-o", "report"]) == 2
    assert capsys.readouterr().err == "higl report: report: the name must end in .html\n"
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "report.html"
    assert main(["report", str(runs_folder / "higl-0"), "-o", str(out)]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"higl report: {tmp_path / 'file'}")
