"""Plots of results as SVG files, using only Python's standard library."""
import math
import pathlib
import re

BLUE = "#1f6feb"
COLOURS = {"C": "#2da44e", "N": "#1f6feb", "O": "#d1242f", "S": "#bf8700", "Cl": "#1a7f37", "F": "#1a7f37", "P": "#bc4c00"}


def text(words):
    return re.sub(r"[<>&]", "", str(words))


def plot(series, target, title, x, y):
    """Draws a line plot as an SVG file. series is a list of (x, y) pairs."""
    width, height, left, bottom = 640, 360, 70, 50
    xs, ys = [p[0] for p in series], [p[1] for p in series]
    low, high = min(ys), max(ys)
    low, high = (low - 0.05 * (high - low), high + 0.05 * (high - low)) if high > low else (low - 1, high + 1)

    def at(px, py):
        return left + (px - min(xs)) / ((max(xs) - min(xs)) or 1) * (width - left - 20), 40 + (high - py) / (high - low) * (height - bottom - 40)

    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in (at(*p) for p in series))
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
             f'<rect width="{width}" height="{height}" fill="white"/><text x="{left}" y="24" font-size="16">{title}</text>']
    for k in range(5):
        value, place = low + (high - low) * k / 4, min(xs) + (max(xs) - min(xs)) * k / 4
        _, b = at(min(xs), value)
        a, _ = at(place, low)
        lines.append(f'<line x1="{left}" x2="{width - 20}" y1="{b:.1f}" y2="{b:.1f}" stroke="#ddd"/><text x="{left - 6}" y="{b + 4:.1f}" text-anchor="end">{value:.4g}</text>')
        lines.append(f'<text x="{a:.1f}" y="{height - bottom + 18}" text-anchor="middle">{place:.4g}</text>')
    lines.append(f'<text x="{(left + width) / 2}" y="{height - 8}" text-anchor="middle">{x}</text><text x="16" y="{height / 2}" text-anchor="middle" transform="rotate(-90 16 {height / 2})">{y}</text>')
    lines.append(f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="1.6"/></svg>\n')
    pathlib.Path(target).write_text("\n".join(lines), encoding="utf-8")


def bars(rows, target, title):
    """Draws a bar for each (name, negative number) pair, in order."""
    height, most = 60 + 14 * len(rows), max(-value for _, value in rows)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" font-family="sans-serif" font-size="11">',
             f'<rect width="640" height="{height}" fill="white"/><text x="20" y="26" font-size="16">{text(title)}</text>']
    for k, (name, value) in enumerate(rows):
        y, length = 44 + 14 * k, -value / most * 420
        lines.append(f'<text x="150" y="{y + 9}" text-anchor="end">{text(name)}</text><rect x="156" y="{y}" width="{length:.1f}" height="10" fill="{BLUE}"/><text x="{160 + length:.1f}" y="{y + 9}">{value:.2f}</text>')
    pathlib.Path(target).write_text("\n".join(lines) + "\n</svg>\n", encoding="utf-8")


def ligand(file):
    """Returns the atoms (element, position) and the bonds between heavy atoms (pairs of indices) of the first molecule of an SDF file."""
    lines = pathlib.Path(file).read_text().splitlines()
    n, m = int(lines[3][:3]), int(lines[3][3:6])
    atoms = [(line[31:34].strip(), tuple(float(line[k:k + 10]) for k in (0, 10, 20))) for line in lines[4:4 + n]]
    bonds = [(int(line[:3]) - 1, int(line[3:6]) - 1) for line in lines[4 + n:4 + n + m]]
    return atoms, [(i, j) for i, j in bonds if "H" not in (atoms[i][0], atoms[j][0])]


def pose(receptor, pose, target, title):
    """Draws a ligand and the residues within 4.5 Å of it, viewed from outside the receptor."""
    atoms, bonds = ligand(pose)
    heavy = [p for e, p in atoms if e != "H"]
    chain = [(line[76:78].strip(), tuple(float(line[k:k + 8]) for k in (30, 38, 46)), line[17:20].title() + line[22:27].strip())
             for line in pathlib.Path(receptor).read_text().splitlines() if line.startswith("ATOM") and line[76:78].strip() != "H"]
    near = {a[2] for a in chain if any(math.dist(a[1], p) < 4.5 for p in heavy)}
    site = [a for a in chain if a[2] in near]
    middle = [sum(p[k] for p in heavy) / len(heavy) for k in range(3)]
    z = unit([middle[k] - sum(a[1][k] for a in chain) / len(chain) for k in range(3)])
    x = unit(cross([0, 1, 0] if abs(z[1]) < 0.9 else [1, 0, 0], z))
    y = cross(z, x)

    def seen(p):
        d = [p[k] - middle[k] for k in range(3)]
        return 320 + 24 * dot(d, x), 240 - 24 * dot(d, y), dot(d, z)

    parts = []
    for i, a in enumerate(site):
        for b in site[i + 1:]:
            if math.dist(a[1], b[1]) < 1.9:
                (x1, y1, z1), (x2, y2, z2) = seen(a[1]), seen(b[1])
                shade = round(max(110, min(225, 165 - 6 * (z1 + z2))))
                parts.append(((z1 + z2) / 2, f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="rgb({shade},{shade},{shade})" stroke-width="2.5"/>'))
    for i, j in bonds:
        (x1, y1, z1), (x2, y2, z2) = seen(atoms[i][1]), seen(atoms[j][1])
        for (xa, ya), element in (((x1, y1), atoms[i][0]), ((x2, y2), atoms[j][0])):  # each half in the color of its atom
            parts.append(((z1 + z2) / 2 + 100, f'<line x1="{xa:.1f}" y1="{ya:.1f}" x2="{(x1 + x2) / 2:.1f}" y2="{(y1 + y2) / 2:.1f}" stroke="{COLOURS.get(element, "#8250df")}" stroke-width="6" stroke-linecap="round"/>'))
    for name in sorted(near):
        x1, y1, z1 = seen(next((a[1] for a in reversed(site) if a[2] == name)))
        parts.append((200 + z1, f'<text x="{x1:.1f}" y="{y1 - 5:.1f}" text-anchor="middle" stroke="white" stroke-width="3" paint-order="stroke">{text(name)}</text>'))
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 480" font-family="sans-serif" font-size="12">',
             f'<rect width="640" height="480" fill="white"/><text x="20" y="26" font-size="16">{text(title)}</text>', *(line for _, line in sorted(parts))]
    pathlib.Path(target).write_text("\n".join(lines) + "\n</svg>\n", encoding="utf-8")


def dot(a, b):
    return sum(p * q for p, q in zip(a, b))


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def unit(a):
    length = math.hypot(*a) or 1
    return [v / length for v in a]
