"""Depth of an alignment, by position and overall."""
import statistics

LETTERS = "-ABCDEFGHIKLMNPQRSTUVWXYZOJ*"
PLANES = [str.maketrans({c: str(k >> bit & 1) for k, c in enumerate(LETTERS)}) for bit in range(5)]
RESIDUES = str.maketrans({c: "0" if c == "-" else "1" for c in LETTERS})
MOST = 3_000  # rows compared with each other, which takes some seconds
SMALL = str.maketrans("", "", "abcdefghijklmnopqrstuvwxyz")

count = getattr(int, "bit_count", lambda bits: bin(bits).count("1"))


class Alignment:
    """rows holds the distinct A3M rows, query first; counts the number of sequences at each position.

    effective is the number of effective sequences (Neff) at each position: each row counts as one divided by the
    number of rows, itself included, that are at least 80 % identical to it where either has a residue. depth is
    the median over positions, as in Jumper et al. 2021 (figure 5a). Of many rows, an even selection is weighted."""

    def __init__(self, rows):
        self.rows, seen = [], set()
        length = len(rows[0][1])
        for head, row in rows:
            matched = row.translate(SMALL)
            if len(matched) != length:
                raise SystemExit(f"molrun: MMseqs2 aligned {head.split()[0]} to {len(matched)} positions, but the chain has {length}: the alignment can't be used.")
            if row not in seen:
                seen.add(row)
                self.rows.append((head, row))
        matched = [row.translate(SMALL) for _, row in self.rows]
        self.counts = [0] * length
        for row in matched:
            for k, c in enumerate(row):
                self.counts[k] += c != "-"
        self.coverage = sum(self.counts[k] - 1 for k in range(length)) / (length * (len(matched) - 1)) if len(matched) > 1 else 0
        step = max(1, -(-len(matched) // MOST))
        chosen = matched[::step]
        self.weighed = len(chosen)
        self.effective = [0.0] * length
        for row, weight in zip(chosen, weights(chosen)):
            for k, c in enumerate(row):
                if c != "-":
                    self.effective[k] += weight
        self.depth = statistics.median(self.effective)


def weights(rows):
    """The weight of each row: one divided by the number of similar rows. A residue is encoded as one bit in each
    of five integers, so that two rows are compared with a few operations on long integers."""
    coded = sorted(((row.count("-"), k, [int(row.translate(plane), 2) for plane in PLANES], int(row.translate(RESIDUES), 2)) for k, row in enumerate(rows)), reverse=True)
    sizes = [len(rows[0]) - gaps for gaps, _, _, _ in coded]
    alike, limit = [1] * len(rows), 0.2 * len(rows[0])
    for i, (_, k, (a, b, c, d, e), mine) in enumerate(coded):
        most = sizes[i] / 0.8
        for j in range(i + 1, len(coded)):
            if sizes[j] > most:
                break
            _, other, (v, w, x, y, z), theirs = coded[j]
            if count(a ^ v) <= limit and count((a ^ v) | (b ^ w) | (c ^ x) | (d ^ y) | (e ^ z)) <= 0.2 * count(mine | theirs):
                alike[k] += 1
                alike[other] += 1
    return [1 / n for n in alike]
