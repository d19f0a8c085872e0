"""The server over real sockets: what it answers, and above all what it refuses."""

import io
import json
import socket
import zlib

import pytest
from tests.review.support import Image, paint, write_run

from bagwise._utils.caches import cache_folder
from bagwise.review.access import Guard, run_token
from bagwise.review.decisions import ReviewError
from bagwise.review.log import DecisionLog
from bagwise.review.server import ReviewServer, listen

BOX = [10, 10, 50, 60]


def decision(**changes):
    return {"action": "accept", "boxes": [BOX], "rejected": [], "version": 0, "client": "me", "key": "k1"} | changes


@pytest.fixture
def server(serve, small_run):
    return serve(small_run)


def test_the_token_opens_the_page_and_becomes_a_cookie_no_script_can_read(quiet_server):
    status, headers, body = quiet_server.request("GET", f"/?token={quiet_server.token}", known=False)
    assert status == 200
    assert b"<title>bagwise review</title>" in body
    cookie = headers["set-cookie"]
    assert cookie.startswith(f"bagwise_review_{quiet_server.port}={quiet_server.token};")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert quiet_server.request("GET", "/")[0] == 200, "the cookie alone is enough afterwards"


@pytest.mark.parametrize("path", ["/", "/api/index", "/api/items/0", "/images/1/display", "/static/app.js"])
def test_without_the_token_nothing_is_served(quiet_server, path):
    assert quiet_server.request("GET", path, known=False)[0] == 401
    assert quiet_server.request("GET", path + "?token=wrong", known=False)[0] == 401
    assert quiet_server.request("GET", path + "?token=", known=True)[0] in (200, 401)


@pytest.mark.parametrize(
    "host", ["evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{port}", "8.8.8.8:{port}"]
)
def test_foreign_host_names_are_refused(quiet_server, host):
    """A web site can point its own name at 127.0.0.1; then its name is in the Host header."""
    assert quiet_server.request("GET", "/api/index", headers={"Host": host.format(port=quiet_server.port)})[0] == 421


@pytest.mark.parametrize("host", ["localhost:{port}", "[::1]:{port}"])
def test_other_names_of_this_computer_are_fine(quiet_server, host):
    assert quiet_server.request("GET", "/api/index", headers={"Host": host.format(port=quiet_server.port)})[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}", ""]
)
def test_other_sites_cannot_make_the_browser_decide(quiet_server, origin):
    headers = {"Origin": origin.format(port=quiet_server.port)}
    assert quiet_server.request("POST", "/api/items/0/decision", decision(), headers=headers)[0] == 403
    assert quiet_server.log() == []


def test_reading_from_another_origin_is_refused(quiet_server):
    assert quiet_server.request("GET", "/api/index", headers={"Origin": "http://evil.example"})[0] == 403


def test_every_answer_carries_the_protective_headers(quiet_server):
    for path in ("/", "/api/index", "/images/1/thumbnail", "/nowhere"):
        _, headers, _ = quiet_server.request("GET", path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e/server.py",
        "/static//etc/passwd",
        "/images/..%2f..%2fetc/passwd",
        "/images/1/close",
        "/images/0/display",
        "/images/99/display",
        "/images/-1/display",
    ],
)
def test_there_is_no_way_to_other_files(quiet_server, path):
    assert quiet_server.request("GET", path)[0] == 404


def test_a_link_out_of_the_image_folder_is_refused(serve, small_run, tmp_path):
    secret = tmp_path / "secret.jpg"
    paint(secret, 50, 50)
    inside = small_run.image_path(small_run.images["file"][0].as_py())
    inside.unlink()
    inside.symlink_to(secret)
    server = serve(small_run)
    for size in ("thumbnail", "display"):
        status, _, body = server.request("GET", f"/images/1/{size}")
        assert status == 404
        assert "leads out of" in json.loads(body)["error"]


def test_a_file_that_is_no_picture_cannot_be_fetched(serve, small_run):
    inside = small_run.image_path(small_run.images["file"][0].as_py())
    inside.write_bytes(b"<html><script>alert(1)</script>")
    status, _, body = serve(small_run).request("GET", "/images/1/display")
    assert status == 404
    assert b"script" not in body


def test_pictures_are_upright_and_scaled(serve, tmp_path):
    run = write_run(tmp_path / "run", [(3000, 4000), (160, 120)])
    files = run.images["file"].to_pylist()
    paint(run.image_path(files[0]), 4000, 3000, orientation=6)
    paint(run.image_path(files[1]), 160, 120)
    server = serve(run)
    for path, size in (
        ("/images/1/display", (1440, 1920)),
        ("/images/1/thumbnail", (144, 192)),
        ("/images/2/display", (160, 120)),
    ):
        status, headers, body = server.request("GET", path)
        assert status == 200
        assert headers["content-type"] == "image/jpeg"
        assert headers["cache-control"].startswith("private")
        assert Image.open(io.BytesIO(body)).size == size
    assert (run.path / "review" / "thumbnails" / "1.jpg").exists()
    paint(run.image_path(files[0]), 300, 300)
    body = server.request("GET", "/images/1/thumbnail")[2]
    assert Image.open(io.BytesIO(body)).size == (192, 192), "a changed image gets a new thumbnail"


def test_the_index_lists_every_item_with_its_state(server):
    server.json("POST", "/api/items/2/decision", decision())
    index = server.json("GET", "/api/index")
    assert index["classes"] == ["cat", "dog"]
    assert len(index["items"]) == len(index["images"]) == 6
    image_id, label, _, status, version, edited, box, said, listed = index["items"][2]
    assert (image_id, label, status, version, edited, box, said, listed) == (3, 1, 1, 1, 1, BOX, "58%", 1)
    assert index["items"][0][3:6] == [0, 0, 0]


def test_the_index_is_compressed_for_whoever_reads_that(server):
    server.json("POST", "/api/items/2/decision", decision())
    plain = server.request("GET", "/api/index")
    packed = server.request("GET", "/api/index", headers={"Accept-Encoding": "gzip, deflate, br, zstd"})
    assert "content-encoding" not in plain[1]
    assert packed[1]["content-encoding"] == "deflate"
    assert zlib.decompress(packed[2]) == plain[2]
    assert json.loads(plain[2])["items"][2][3] == 1


def test_a_decision_is_logged_and_heard_by_others(server):
    before = server.json("GET", "/api/changes?since=0")
    assert before["items"] == []
    after = server.json("POST", "/api/items/1/decision", decision(rejected=[[0, 0, 20, 20]]))
    assert (after["status"], after["version"], after["boxes"]) == ("accepted", 1, [BOX])
    (line,) = server.log()
    assert line["file"] == "cat/picture 0001.jpg"
    assert line["rejected"] == [[0, 0, 20, 20]]
    news = server.json("GET", f"/api/changes?since={before['seq']}")
    assert [item for item, _ in news["items"]] == [1]


def test_a_conflict_answers_with_how_things_stand(server):
    server.json("POST", "/api/items/1/decision", decision())
    status, _, body = server.request(
        "POST", "/api/items/1/decision", decision(action="reject", boxes=None, client="other", key="k2")
    )
    assert status == 409
    assert json.loads(body)["now"]["status"] == "accepted"
    assert len(server.log()) == 1


def test_undo_over_http(server):
    assert server.json("POST", "/api/undo", {"client": "me", "key": "u0"}) == {"item": None}
    server.json("POST", "/api/items/1/decision", decision())
    back = server.json("POST", "/api/undo", {"client": "me", "key": "u1"})
    assert (back["item"], back["status"], back["version"]) == (1, "open", 2)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "not JSON"),
        (b"[1]", "object"),
        (b"[" * 100_000, "not JSON"),
        (decision(action="dance"), "unknown"),
        (decision(boxes=[[0, 0, 0, 0]]), "no area"),
        (decision(boxes=[[1, 2, 3]]), "four finite"),
        (decision(version="1"), "whole number"),
        (decision(client=""), "client"),
        (decision(key="k" * 200), "key"),
    ],
)
def test_nonsense_gets_one_sentence(quiet_server, body, message):
    status, _, answer = quiet_server.request("POST", "/api/items/0/decision", body)
    assert status == 400
    assert message in json.loads(answer)["error"]
    assert quiet_server.log() == []


def test_bodies_must_be_json_and_small(quiet_server):
    path = "/api/items/0/decision"
    assert quiet_server.request("POST", path, decision(), headers={"Content-Type": "text/plain"})[0] == 415
    assert quiet_server.request("POST", path, b" " * 300_000)[0] == 413
    assert quiet_server.request("POST", "/api/items/99/decision", decision())[0] == 400
    assert quiet_server.request("PUT", path, decision())[0] == 405


def test_export_writes_the_reviewed_boxes(server):
    server.json("POST", "/api/items/0/decision", decision())
    server.json("POST", "/api/items/1/decision", decision(action="reject", boxes=None, key="k2"))
    done = server.json("POST", "/api/export", {"format": "coco", "checked_only": True})
    (document,) = (server.run.path / "exports").glob("coco-*/annotations.json")
    assert str(document.parent) == done["path"]
    written = json.loads(document.read_text())
    (annotation,) = written["annotations"]
    assert annotation["bbox"] == [10, 10, 40, 50]
    assert annotation["image_id"] == 1
    assert [image["id"] for image in written["images"]] == [1, 2]
    everything = server.json("POST", "/api/export", {"format": "yolo", "checked_only": False})
    assert everything["boxes"] == 5, "one accepted, one rejected, four still the model's"
    status, _, body = server.request("POST", "/api/export", {"format": "../../x"})
    assert status == 400
    assert "format" in json.loads(body)["error"]


def test_decisions_survive_a_kill_and_the_token_stays(process):
    server = process
    server.json("POST", "/api/items/1/decision", decision())
    token = server.token
    server.kill()
    with server.run.decisions_path.open("ab") as file:
        file.write(b'{"seq": 2, "time": "20')
    server.start()
    assert server.token == token
    assert server.json("GET", "/api/items/1")["status"] == "accepted"
    again = server.json("POST", "/api/items/1/decision", decision())
    assert again["version"] == 1, "the same request after a lost answer counts once"


def test_a_second_server_on_the_run_is_told_so(server):
    pytest.importorskip("fcntl", reason="locks need a POSIX system")
    with pytest.raises(ReviewError, match="already under review"):
        ReviewServer(server.run, port=0)


def test_a_taken_port_is_one_sentence_and_leaves_no_lock(quiet_server, small_run):
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1 port {quiet_server.port}"):
        ReviewServer(small_run, port=quiet_server.port)
    DecisionLog(small_run.decisions_path).close()


def test_without_a_wish_a_taken_usual_port_is_no_problem(small_run, monkeypatch, quiet_server):
    monkeypatch.setattr("bagwise.review.server.DEFAULT_PORT", quiet_server.port)
    server = ReviewServer(small_run)
    assert server.port != quiet_server.port
    server.close()


def test_told_to_listen_to_the_network_it_answers_to_addresses_but_not_to_foreign_names():
    async def app(scope, receive, send):
        raise AssertionError("not called")

    guard = Guard(app, token="t", host="0.0.0.0", port=80)
    assert guard._is_our_name("192.168.1.5:80")
    assert guard._is_our_name(f"{socket.gethostname()}:80")
    assert not guard._is_our_name("evil.example:80")
    assert not Guard(app, token="t", host="127.0.0.1", port=80)._is_our_name("192.168.1.5:80")


def test_a_run_whose_images_are_gone_is_said_so(tmp_path):
    run = write_run(tmp_path / "run", [(10, 10)])
    run.source_root.rmdir()
    with pytest.raises(ReviewError, match=r"not at .* any more"):
        ReviewServer(run, port=0)


def test_the_token_is_private_stable_and_one_per_run(tmp_path):
    first = run_token(tmp_path / "a")
    assert run_token(tmp_path / "a") == first
    assert run_token(tmp_path / "b") != first
    assert len(first) >= 32
    (path,) = [file for file in cache_folder().glob("review/*.token") if file.read_text() == first]
    assert path.stat().st_mode & 0o077 == 0
    path.write_text(first[:5])
    assert len(run_token(tmp_path / "a")) >= 32, "a token cut short by a crash is made anew"


def test_a_host_that_cannot_be_listened_on_is_one_sentence(small_run):
    with pytest.raises(OSError, match=r"cannot listen on 203\.0\.113\.1 port"):
        ReviewServer(small_run, host="203.0.113.1", port=0)


def test_small_answers_are_sent_at_once():
    """asyncio switches Nagle's waiting off only for sockets that say they are TCP; without that answers take 40 ms."""
    listener = listen("127.0.0.1", 0)
    try:
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            assert accepted.proto == socket.IPPROTO_TCP
            accepted.close()
    finally:
        listener.close()
