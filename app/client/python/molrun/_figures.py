"""Formatting of metrics, as defined by the algorithm."""

from __future__ import annotations

import math
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def figures(results: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> List[Tuple[str, str]]:
    """Returns titles and values in the order of the algorithm, with errors next to their values."""
    known: Dict[str, Mapping[str, Any]] = {m["name"]: m for m in metrics}
    names = [n for n in known if n in results] + [n for n in results if n not in known]
    shown = []
    for name in names:
        m, v = known.get(name, {}), results[name]
        if isinstance(v, (dict, list)) or _number(results.get(m.get("errorOf", ""))) and _positive(v):
            continue
        shown.append((m.get("title") or name, _text(v, m, _error_of(name, results, metrics))))
    return shown


def _text(v: Any, m: Mapping[str, Any], error: Optional[float]) -> str:
    if not _number(v):
        return {None: "unknown", True: "yes", False: "no"}.get(v) or str(v)
    text = measured(v, error, m.get("digits")) + (f" {m['unit']}" if m.get("unit") else "")
    reached = [r["words"] for r in m.get("reading") or [] if v >= r.get("from", -math.inf)]
    return f"{text}: {reached[-1]}" if reached else text


def _error_of(name: str, results: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> Optional[float]:
    errors = [results.get(m["name"]) for m in metrics if m.get("errorOf") == name]
    return errors[0] if errors and _positive(errors[0]) else None


def _number(v: Any) -> bool:
    return isinstance(v, (int, float)) and not isinstance(v, bool)


def _positive(v: Any) -> bool:
    return _number(v) and v > 0


def measured(v: float, error: Optional[float] = None, digits: Optional[int] = None) -> str:
    """Returns a value with the digits that its error justifies, or otherwise with the given number of decimals or up to five significant digits."""
    if error:
        return _within(v, error)
    if digits is not None:
        return _fixed(v, digits)
    size = abs(v)
    if v == int(v) and size < 1e15:
        return _fixed(v, 0)
    if size >= 1e6 or size < 1e-3:
        return re.sub(r"e([+-])0*", r"e\1", f"{v:.3e}")
    behind = max(0, 4 - math.floor(math.log10(size)))
    short = _fixed(round(v, 4 - math.floor(math.log10(size))), behind)
    return short.rstrip("0").rstrip(".") if "." in short else short


def _within(v: float, error: float) -> str:
    """Rounds the error to two digits if its first three are 100 to 354, otherwise to one, and the value to the same place."""
    power = math.floor(math.log10(max(abs(v), error)))
    if power < -3 or power >= 6:
        return f"({_within(v / 10**power, error / 10**power)})×10{str(power).translate(_SUPERSCRIPT)}"
    size = math.floor(math.log10(error))
    behind = (1 if math.floor(error * 10.0 ** (2 - size) + 0.5) < 355 else 0) - size
    if behind < 0:
        v, error = round(v, behind), round(error, behind)
    return f"{_fixed(v, max(0, behind))} ± {_fixed(error, max(0, behind))}"


def _fixed(v: float, digits: int) -> str:
    """Separates thousands in numbers of five or more digits; 0 has no sign."""
    text = f"{v:.{digits}f}"
    if not text.strip("-0."):
        return text.lstrip("-")
    whole, point, fraction = text.partition(".")
    return (f"{int(whole):,}" if len(whole.lstrip("-")) > 4 else whole) + point + fraction
