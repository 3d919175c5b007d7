"""The service and key to use, from the command line's profiles and environment variables."""

from __future__ import annotations

import json
import os
import pathlib
import re
import stat
import urllib.parse
from typing import Any, Dict, NamedTuple, Optional

from ._errors import ConfigError


class Profile(NamedTuple):
    """A service and how to access it."""

    server: str  # address without a trailing slash
    key: str  # API key
    trust: str = ""  # PEM file with the certificate of the service, if no certificate authority has signed it


def find(server: Optional[str], key: Optional[str], profile: Optional[str], trust: Optional[str]) -> Profile:
    """Returns the profile to use: from arguments, then environment variables, then the profiles of `molrun login`.

    Raises:
        ConfigError: if no service or key is configured, or the key is malformed.
    """
    server = address(server or os.environ.get("MOLRUN_SERVER") or "")
    key = api_key(key, "argument key") or api_key(os.environ.get("MOLRUN_KEY"), "variable MOLRUN_KEY")
    name = profile or os.environ.get("MOLRUN_PROFILE") or ""
    if server and key:
        known = _of_server(_read(), server)
        return Profile(server, key, trust or (known.trust if known else ""))
    file = _read()
    known = _of_server(file, server) if server and not name else _named(file, name)
    if known is None or server and known.server != server:
        raise ConfigError(f"there is no key for {server or 'any service'}; run molrun login, or set MOLRUN_KEY")
    return Profile(known.server, key or api_key(known.key, "profile"), trust or known.trust)


def api_key(text: Optional[str], source: str) -> str:
    """Returns the API key in a text without surrounding whitespace, "" if there is none.

    Raises:
        ConfigError: if it has characters that keys cannot have. The message does not contain the text.
    """
    key = (text or "").strip()
    if re.search("[^0-9A-Za-z_]", key):
        raise ConfigError(
            f"the API key in the {source} has characters other than letters, digits and underscores; copy it again, from molrun_ to its end"
        )
    return key


def address(text: str) -> str:
    """Returns the address of a service with a scheme and without a trailing slash.

    Raises:
        ConfigError: if it is not a valid address.
    """
    if not text:
        return ""
    u = urllib.parse.urlsplit(text if "://" in text else "http://" + text)
    if u.scheme not in ("http", "https") or not u.hostname or u.username or u.query or u.fragment:
        raise ConfigError(f"{text!r} is not the address of a service; write http://HOST:PORT or https://HOST, followed by its path if it has one")
    return u.geturl().rstrip("/")


def path() -> pathlib.Path:
    """Returns the path of the profiles file."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(base):
        return pathlib.Path(base, "molrun", "profiles.json")
    return pathlib.Path(os.path.expanduser("~"), ".config", "molrun", "profiles.json")


def _read() -> Dict[str, Any]:
    file = path()
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"others can read the API keys in {file}; run chmod 600 {file}, and replace the keys if the machine is shared")
    try:
        content = json.loads(text)
    except ValueError as e:
        raise ConfigError(f"{file} is damaged ({e}); delete it and run molrun login again") from e
    return content if isinstance(content, dict) else {}


def _profile(entry: Any) -> Profile:
    return Profile(address(str(entry.get("server", ""))), str(entry.get("key", "")), str(entry.get("trust") or ""))


def _of_server(file: Dict[str, Any], server: str) -> Optional[Profile]:
    known = [_profile(p) for p in (file.get("profiles") or {}).values()]
    return next((p for p in known if p.server == server), None)


def _named(file: Dict[str, Any], name: str) -> Profile:
    profiles = file.get("profiles") or {}
    name = name or str(file.get("current") or "")
    if name in profiles:
        return _profile(profiles[name])
    if not name:
        raise ConfigError("no service is saved yet; run molrun login --server http://HOST:PORT, or give server and key")
    raise ConfigError(f"there is no profile {name!r}; available: {', '.join(sorted(profiles)) or 'none'}")
