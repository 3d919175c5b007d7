"""The API calls that the examples need, using only Python's standard library."""
import http.client
import json
import os
import pathlib
import sys
import urllib.error
import urllib.parse
import urllib.request

BASE = os.environ.get("BASE", "http://127.0.0.1:8080").rstrip("/")
KEY = os.environ.get("KEY", "").strip()


def call(method, path, body=None):
    """Calls the API and returns its JSON; exits with the message of an error."""
    request = urllib.request.Request(BASE + path, method=method, data=None if body is None else json.dumps(body).encode())
    request.add_header("x-api-key", KEY)
    if body is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        sys.exit(f"{method} {path}: {refused.status} {refused.read().decode(errors='replace')}")


def upload(file):
    """Uploads a file and returns its reference for settings."""
    file = pathlib.Path(file)
    grant = call("PUT", f"/upload/{urllib.parse.quote(file.name)}?folder=inputs")
    link = urllib.parse.urlsplit(grant["uploadUrl"])
    connect = http.client.HTTPSConnection if link.scheme == "https" else http.client.HTTPConnection
    connection = connect(link.netloc, timeout=600)  # urllib would add a content type that does not match the link
    connection.request("PUT", f"{link.path}?{link.query}", file.read_bytes())
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"upload of {file.name}: {answer.status} {answer.read().decode(errors='replace')}")
    connection.close()
    call("POST", f"/upload/{grant['fileId']}/complete")
    return f"inputs/{file.name}"


def wait(name):
    """Waits until a job has finished and returns its record; exits if it failed."""
    while True:
        job = call("GET", f"/jobs/{urllib.parse.quote(name)}?wait=30s")
        if job["status"] not in ("QUEUED", "RUNNING"):
            break
        progress = job.get("progress") or {}
        print(f"\r{name}: {job['status'].lower()} {progress.get('text', '')}".ljust(78), end="", file=sys.stderr, flush=True)
    print(f"\r{name}: {job['status'].lower()}".ljust(78), file=sys.stderr)
    if job["status"] != "COMPLETED":
        sys.exit(json.dumps(job.get("failure") or job, indent=1))
    return job


def download(job, path, target):
    """Downloads a file of a result."""
    request = urllib.request.Request(f"{BASE}/jobs/{urllib.parse.quote(job)}/files/{urllib.parse.quote(path)}", headers={"x-api-key": KEY})
    with urllib.request.urlopen(request, timeout=600) as answer:
        pathlib.Path(target).write_bytes(answer.read())
    return target
