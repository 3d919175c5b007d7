"""Jobs and series in a notebook: HTML without scripts, in which all text is escaped."""

from __future__ import annotations

import base64
import html
import math
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from ._errors import Error
from ._figures import figures

if TYPE_CHECKING:
    from ._jobs import Job
    from ._tables import Series

_GLYPHS = {"QUEUED": ("◌", "#9a6700"), "RUNNING": ("▶", "#0969da"), "COMPLETED": ("✔", "#1a7f37"), "FAILED": ("✘", "#cf222e")}
_COLOURS = ("#0969da", "#cf222e", "#1a7f37", "#8250df")
_PICTURES = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}

# Limits of a cell.
_MAX_PLOTS, _MAX_PICTURES = 3, 2
_MAX_PICTURE, _MAX_STRUCTURE = 512 << 10, 4 << 20  # bytes


def card(job: "Job") -> str:
    """Returns a job as HTML: its state, and once completed, its metrics, plots and structure."""
    r = job.record
    glyph, colour = _GLYPHS.get(job.status, ("", "#57606a"))
    head = (
        f'<div><b>{_e(job.name)}</b> <span style="color:{colour}">{glyph} {_e(job.status.lower())}</span> '
        f'{_e(job.type)} {_e(str(r.get("version", "")))} · <a href="{_e(job.url)}" target="_blank" rel="noopener noreferrer">open</a></div>'
    )
    parts = [head, _about(r)] + [f"<p>⚠ {_e(w)}</p>" for w in job.warnings]
    if job.status == "COMPLETED" and "subjobCounts" not in r:
        try:
            parts += _results(job)
        except Error as e:
            parts.append(f"<p>{_e(str(e))}</p>")
    return f'<div style="font-family:sans-serif;font-size:13px">{"".join(parts)}</div>'


def _about(r: Dict[str, Any]) -> str:
    if r.get("failure"):
        f = r["failure"]
        tail = f"<pre>{_e(f['logTail'][-2000:])}</pre>" if f.get("logTail") else ""
        return f"<p>{_e(f.get('message', ''))}</p>{tail}"
    counts = r.get("subjobCounts")
    if counts:
        return f"<p>{', '.join(f'{int(n)} {_e(s.lower())}' for s, n in counts.items() if n)}</p>"
    p = r.get("progress")
    if r.get("status") == "RUNNING" and p:
        return f'<p><progress value="{float(p["fraction"])}"></progress> {float(p["fraction"]):.0%} {_e(p.get("text", ""))}</p>'
    q = r.get("queue") or {}
    if r.get("status") == "QUEUED" and q.get("position"):
        return f"<p>position {int(q['position'])} of {int(q.get('of', 0))}; {_e(r.get('statusReason') or '')}</p>"
    return ""


def _results(job: "Job") -> List[str]:
    metrics = job._client.algorithm(job.type, str(job.record.get("version") or "") or None).get("metrics") or [] if job.figures else []
    rows = "".join(f'<tr><td style="text-align:left">{_e(k)}</td><td style="text-align:left">{_e(v)}</td></tr>' for k, v in figures(job.figures, metrics))
    parts = [f'<table style="font-size:13px">{rows}</table>'] if rows else []
    plots: List[str] = []
    pictures: List[str] = []
    structure = ""
    for view in job.views():
        files = view.get("files") or []
        if not files:
            continue
        file = files[0]
        title = view.get("title") or view["name"]
        if view["kind"] in ("structure", "trajectory") and not structure:
            structure = _structure(job, file, title)
        elif len(plots) < _MAX_PLOTS and view["kind"] == "series":
            plots.append(_figure(plot(job.series(view["name"], points=400)), title))
        elif len(pictures) < _MAX_PICTURES and view["kind"] == "image" and file["size"] <= _MAX_PICTURE:
            pictures.append(_figure(_picture(job, file["path"], title), title))
    return parts + ['<div style="display:flex;flex-wrap:wrap;gap:12px">', structure, *plots, *pictures, "</div>"]


def _figure(content: str, title: str) -> str:
    return f'<figure style="margin:0"><figcaption>{_e(title)}</figcaption>{content}</figure>' if content else ""


def _picture(job: "Job", name: str, title: str) -> str:
    kind = _PICTURES.get(name[name.rfind(".") :].lower())
    if kind is None:
        return ""
    data = base64.b64encode(job.result().read(name, _MAX_PICTURE)).decode()
    # Scripts in an SVG image do not run. Images expect a light background, but notebooks can be dark.
    return f'<img style="max-width:360px;background:#fff" alt="{_e(title)}" src="data:{kind};base64,{data}">'


def _structure(job: "Job", file: Dict[str, Any], title: str) -> str:
    name = file.get("topology") or file["path"]
    if not name.lower().endswith(".pdb"):
        return ""
    text = job.result().read(name, _MAX_STRUCTURE).decode("latin-1")
    return _figure(backbone(text), title if name == file["path"] else f"{title}: {name}")


def backbone(pdb: str) -> str:
    """Draws the backbones of a structure's first model, viewed along its shortest axis."""
    chains: Dict[str, List[Tuple[float, float, float]]] = {}
    for line in pdb.splitlines():
        if line.startswith("ENDMDL"):
            break
        if line.startswith(("ATOM", "HETATM")) and line[12:16].strip() in ("CA", "P", "C3'") and line[16:17] in (" ", "A"):
            try:
                at = (float(line[30:38]), float(line[38:46]), float(line[46:54]))
            except ValueError:
                continue
            chains.setdefault(line[21:22], []).append(at)
    points = [p for c in chains.values() for p in c]
    if len(points) < 2 or len(points) > 20_000:
        return ""
    spread = [max(p[i] for p in points) - min(p[i] for p in points) for i in range(3)]
    a, b = sorted(range(3), key=lambda i: -spread[i])[:2]
    width, height, edge = 360.0, 240.0, 10.0
    scale = min((width - 2 * edge) / (spread[a] or 1), (height - 2 * edge) / (spread[b] or 1))
    low = [min(p[i] for p in points) for i in range(3)]
    lines = []
    for n, chain in enumerate(chains.values()):
        path = " ".join(f"{edge + (p[a] - low[a]) * scale:.1f},{edge + (p[b] - low[b]) * scale:.1f}" for p in chain)
        lines.append(f'<polyline fill="none" stroke="{_COLOURS[n % len(_COLOURS)]}" stroke-width="2" stroke-linejoin="round" points="{path}"/>')
    return _svg(width, height, "backbone") + "".join(lines) + "</svg>"


def _svg(width: float, height: float, label: str) -> str:
    """Starts a drawing in the color of the surrounding text, which is light in a dark notebook."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{_e(label)}" '
        'fill="currentColor" font-family="sans-serif" font-size="11">'
    )


def plot(series: "Series") -> str:
    """Returns a line plot of a series."""
    if len(series) < 2:
        return ""
    width, height, left, right, top, bottom = 360.0, 240.0, 52.0, 10.0, 18.0, 36.0
    x = series.axis.values
    shown = series.columns[1:5]
    xs, ys = _bounds(x), _bounds([v for c in shown for v in c.values])
    if not xs or not ys:
        return ""
    (x0, x1), (y0, y1) = xs, ys

    def px(v: float) -> float:
        return left + (v - x0) / (x1 - x0) * (width - left - right)

    def py(v: float) -> float:
        return height - bottom - (v - y0) / (y1 - y0) * (height - top - bottom)

    out = [_svg(width, height, f"{', '.join(c.name for c in shown)} by {series.axis.name}")]
    for v in ys:
        out.append(f'<text x="{left - 4}" y="{py(v) + 4:.1f}" text-anchor="end">{v:.4g}</text>')
    for v, anchor in zip(xs, ("start", "end")):
        out.append(f'<text x="{px(v):.1f}" y="{height - bottom + 14}" text-anchor="{anchor}">{v:.4g}</text>')
    out.append(f'<path d="M{left},{top}V{height - bottom}H{width - right}" fill="none" stroke="#8c959f"/>')
    for n, column in enumerate(shown):
        colour = _COLOURS[n % len(_COLOURS)]
        out.append(f'<path d="{_line(x, column.values, px, py)}" fill="none" stroke="{colour}" stroke-width="1.2"/>')
        out.append(f'<text x="{left + 4 + 80 * n}" y="12" fill="{colour}">{_e(_label(column.name, column.unit))}</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 6}" text-anchor="middle">{_e(_label(series.axis.name, series.axis.unit))}</text>')
    return "".join(out) + "</svg>"


def _line(x: Sequence[Optional[float]], y: Sequence[Optional[float]], px: Any, py: Any) -> str:
    path, pen = [], "M"
    for a, b in zip(x, y):
        if a is None or b is None:
            pen = "M"  # a gap
            continue
        path.append(f"{pen}{px(a):.1f},{py(b):.1f}")
        pen = "L"
    return "".join(path)


def _bounds(values: Sequence[Optional[float]]) -> Optional[Tuple[float, float]]:
    finite = [v for v in values if v is not None and math.isfinite(v)]
    if not finite:
        return None
    low, high = min(finite), max(finite)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _label(name: str, unit: str) -> str:
    return f"{name} / {unit}" if unit and not name.endswith("_" + unit) else name


def frame(url: str, height: int) -> str:
    """Returns a page of the service in a sandboxed frame for a notebook."""
    return f'<iframe src="{_e(url)}" width="100%" height="{int(height)}" style="border:0" sandbox="allow-scripts allow-same-origin allow-popups allow-downloads" title="structure"></iframe>'


def _e(text: str) -> str:
    return html.escape(text)
