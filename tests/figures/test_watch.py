"""`higl watch`: only for this machine, always the current page, and a clear answer when the runs are gone."""

import http.client
import shutil
import socket

import pytest
from support.serving import serving

from higl.errors import NoRunsError, PortError
from higl.figures.watch import LOOPBACK, make_server


def ask(port, path="/", host=None, method="GET"):
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
    connection.request(method, path, headers={"Host": host or f"localhost:{port}"})
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer, content


def test_the_page_follows_the_files(run_folder):
    with serving(run_folder, seconds=2.0) as port:
        answer, first = ask(port)
        assert answer.status == 200
        assert 'data-watch="2"' in first
        assert "105k" not in first
        version = ask(port, "/version")[1]
        assert f'data-version="{version}"' in first
        with (run_folder / "metrics.jsonl").open("a") as file:
            file.write('{"step": 105000, "time": 1200.0}\n')
        assert ask(port, "/version")[1] != version
        assert "105k" in ask(port)[1]
        shutil.move(run_folder, run_folder.with_name("elsewhere"))
        assert ask(port)[0].status == 503


def test_only_this_machine_gets_an_answer(run_folder):
    with serving(run_folder) as port:
        assert ask(port, host="evil.example:80")[0].status == 403
        assert ask(port, "/../../etc/passwd")[0].status == 404
        answer, content = ask(port, method="HEAD")
        assert (answer.status, content) == (200, "")
        assert answer.headers["Cache-Control"] == "no-store"
    server = make_server([run_folder], 0)
    assert server.server_address[0] == "127.0.0.1"
    server.server_close()


def test_a_port_that_cannot_be_used_is_an_error(run_folder, tmp_path):
    with socket.create_server((LOOPBACK, 0)) as taken, pytest.raises(PortError, match="choose another --port"):
        make_server([run_folder], taken.getsockname()[1])
    with pytest.raises(PortError, match="no port 99999"):
        make_server([run_folder], 99_999)
    first, second = make_server([run_folder]), make_server([run_folder])
    assert first.server_address[1] != second.server_address[1]
    first.server_close()
    second.server_close()
    with pytest.raises(NoRunsError):
        make_server([tmp_path / "nowhere"], 0)
