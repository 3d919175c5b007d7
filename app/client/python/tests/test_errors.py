"""Errors, keys and profiles."""

from __future__ import annotations

import json
import pathlib
import traceback
import zipfile
from typing import Any, Type

import pytest
from conftest import Service

import molrun
from molrun import _errors, _files


def test_errors_have_types(service: Service, lab: molrun.Client) -> None:
    with pytest.raises(molrun.AuthenticationFailed):
        service.client("molrun_wrong").whoami()
    with pytest.raises(molrun.ConnectionFailed, match="127.0.0.1:1"):
        service.client(base="http://127.0.0.1:1").whoami()
    viewer = service.run("key", "create", "--organization", "lab", "--email", "vic@lab.example", "--role", "viewer").strip()
    with pytest.raises(molrun.Forbidden, match="can't change"):
        service.client(viewer).submit("shell", script="true")
    with pytest.raises(molrun.Invalid) as refused:
        lab.submit("cg-idp", stepz=1, sequences=5)
    assert [f.loc for f in refused.value.faults] == [("body", "settings", "stepz"), ("body", "settings", "sequences")]
    assert 'did you mean "steps"?' in str(refused.value) and refused.value.request_id


def test_proxies_are_named_and_not_used_for_this_machine(service: Service, lab: molrun.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://ann:secret@127.0.0.1:1")
    service.client(lab._t.profile.key).whoami()
    with pytest.raises(molrun.ConnectionFailed, match="GET http://molrun.invalid/session through the proxy 127.0.0.1:1 \\(from http_proxy\\): ") as e:
        service.client(lab._t.profile.key, base="http://molrun.invalid").whoami()
    assert "secret" not in str(e.value)


def test_a_reference_is_the_same_from_macos() -> None:
    assert molrun.File("F", "Pru\u0308f.pdb", "inputs", 1, "a" * 64).reference == f"sha256:{'a' * 64}/Pr\u00fcf.pdb"


def test_another_organization_finds_nothing(service: Service, lab: molrun.Client) -> None:
    job = lab.submit("shell", script="echo a >out/a", name="private").wait()
    stranger = service.client(service.run("key", "create", "--organization", "others", "--email", "eve@others.example").strip())
    absent = molrun.Job(stranger, {**job.record, "jobName": "absent"})
    theirs = molrun.Job(stranger, job.record)
    for ask in ("refresh", "log", "views", "cancel", "retry", "delete", "share"):
        messages = []
        for j in (theirs, absent):
            with pytest.raises(molrun.NotFound) as e:
                getattr(j, ask)()
            messages.append(str(e.value).replace(j.name, "NAME"))
        assert messages[0] == messages[1], ask
    for j in (theirs, absent):
        with pytest.raises(molrun.NotFound):
            j.result().read("a")
    assert list(stranger.jobs()) == [] and job.refresh().status == "COMPLETED"


@pytest.mark.parametrize(
    "status, body, kind, code",
    [
        (403, {"error": {"code": "QUOTA_EXCEEDED", "message": "too much"}}, molrun.QuotaExceeded, "QUOTA_EXCEEDED"),
        (429, {"error": {"code": "RATE_LIMITED", "message": "wait"}}, molrun.RateLimited, "RATE_LIMITED"),
        (503, {"error": {"code": "UNAVAILABLE", "message": "busy"}}, molrun.Unavailable, "UNAVAILABLE"),
        (507, {"error": {"code": "STORAGE_FULL", "message": "full"}}, molrun.Unavailable, "STORAGE_FULL"),
        (422, {"detail": [{"loc": ["body", "settings", 3, "x"], "msg": "bad", "type": "t"}]}, molrun.Invalid, "INVALID"),
        (502, None, molrun.Unavailable, ""),
        (418, "<html>", molrun.ServiceError, ""),
        (422, {"detail": "text", "error": 5}, molrun.Invalid, ""),
    ],
)
def test_answers_become_exceptions(status: int, body: Any, kind: Type[molrun.ServiceError], code: str) -> None:
    e = _errors.service_error(status, body, {"retry-after": "7", "x-request-id": "R"})
    assert type(e) is kind and e.code == code and e.retry_after == 7 and e.request_id == "R" and str(e)
    if code == "INVALID":
        assert str(e) == "body.settings[3].x: bad"
    if not code:
        assert "might not be a molrun service" in str(e)


def test_whitespace_around_a_key_is_ignored(service: Service, lab: molrun.Client, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, server = lab._t.profile.key, lab.server
    folder = tmp_path / "molrun"
    folder.mkdir()
    file = folder / "profiles.json"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for around in (" ", "\t", "\r", "\n", " \t\r\n"):
        given = around + key + around
        assert molrun.Client(server, given).whoami()["organization"] == "lab"
        monkeypatch.setenv("MOLRUN_KEY", given)
        assert molrun.Client(server).whoami()["organization"] == "lab"
        monkeypatch.delenv("MOLRUN_KEY")
        file.write_text(json.dumps({"current": "p", "profiles": {"p": {"server": server, "key": given}}}))
        file.chmod(0o600)
        assert molrun.Client().whoami()["organization"] == "lab"


@pytest.mark.parametrize("inside", ["\n", "\r\n", " ", "\x00", "\u200b", "\u00e9", '"'])
def test_no_error_shows_a_key(inside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "molrun_abcdefghijkl_0123456789"
    damaged = secret + inside + secret
    with pytest.raises(molrun.ConfigError, match="argument key has characters other") as refused:
        molrun.Client("http://127.0.0.1:1", damaged)
    assert secret not in "".join(traceback.format_exception(None, refused.value, refused.value.__traceback__))
    if inside != "\x00":  # environment variables cannot contain it
        monkeypatch.setenv("MOLRUN_KEY", damaged)
        with pytest.raises(molrun.ConfigError, match="MOLRUN_KEY has characters other"):
            molrun.Client("http://127.0.0.1:1")


def test_profiles_of_the_command_line(service: Service, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(molrun.ConfigError, match="molrun login"):
        molrun.Client()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    service.environment["XDG_CONFIG_HOME"] = str(tmp_path)
    try:
        service.run("login", "--local", "--email", "ann@lab.example")
    finally:
        del service.environment["XDG_CONFIG_HOME"]
    assert molrun.Client().whoami()["email"] == "ann@lab.example"
    assert molrun.Client(service.base + "/").whoami()["email"] == "ann@lab.example"
    with pytest.raises(molrun.ConfigError, match="no profile 'lab'; available: default"):
        molrun.Client(profile="lab")
    with pytest.raises(molrun.ConfigError, match="no key for http://elsewhere.example"):
        molrun.Client("http://elsewhere.example", profile="default")  # a key is for its own service
    monkeypatch.setenv("MOLRUN_SERVER", service.base)
    monkeypatch.setenv("MOLRUN_KEY", "molrun_wrong")
    with pytest.raises(molrun.AuthenticationFailed):
        molrun.Client().whoami()
    monkeypatch.delenv("MOLRUN_KEY")
    file = tmp_path / "molrun" / "profiles.json"
    file.chmod(0o644)
    with pytest.raises(molrun.ConfigError, match="others can read the API keys"):
        molrun.Client()
    file.chmod(0o600)
    file.write_text("{")
    with pytest.raises(molrun.ConfigError, match="damaged"):
        molrun.Client()


@pytest.mark.parametrize("text", ["ftp://a", "http://", "http://u:p@h", "http://h/?a=b", "http://h/#a"])
def test_addresses(text: str) -> None:
    with pytest.raises(molrun.ConfigError, match="not the address"):
        molrun.Client(text, "molrun_x")


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b", "a//b", "", ".", "a\\..\\b", "C:\\a"])
def test_archives_write_nothing_outside(name: str, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as z:
        z.writestr("first", "x")
        z.writestr(zipfile.ZipInfo(name or "a"), "y")
        if not name:
            z.filelist[-1].filename = ""
    if name == "":
        with pytest.raises(molrun.Error):
            _files.inside(folder, "")
        return
    with pytest.raises(molrun.Error, match="is not a valid path inside a folder"):
        _files.unpack(tmp_path / "a.zip", folder)
    assert list(folder.iterdir()) == []


def test_archives_follow_no_links(tmp_path: pathlib.Path) -> None:
    folder, outside = tmp_path / "out", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "link").symlink_to(outside)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as z:
        z.writestr("link/a", "x")
    with pytest.raises(molrun.Error, match="is a link"):
        _files.unpack(tmp_path / "a.zip", folder)
    assert list(outside.iterdir()) == []


def test_key_does_not_leave_the_service(service: Service) -> None:
    lab = service.client()
    assert service.key not in repr(lab) and service.key not in json.dumps(lab.whoami())
