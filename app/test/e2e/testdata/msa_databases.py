"""Makes databases of MMseqs2 for tests, out of families that evolve by a fixed seed.

  msa_databases.py FOLDER

FOLDER gets clusters, which expand and have a taxonomy; plain, which does not and has none; databases.json, which
names both; ab.fasta, which has a chain of each of two families, that of A twice; and other.fasta, a protein that
none is related to. A is in
the species 0 to 49, B in 10 to 59; the plain database has A alone."""
import json
import pathlib
import random
import subprocess
import sys

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
WEIGHTS = [8, 1, 5, 6, 4, 7, 2, 6, 6, 10, 2, 4, 5, 4, 5, 7, 5, 7, 1, 3]
chance = random.Random(7)
folder = pathlib.Path(sys.argv[1])
folder.mkdir(exist_ok=True)


def protein(length):
    return "".join(chance.choices(LETTERS, WEIGHTS, k=length))


def descendant(sequence, rate):
    """The sequence with a share of its residues changed, and with some indels."""
    letters = []
    for c in sequence:
        change = chance.random()
        if change < rate / 20:
            continue
        letters.append(chance.choices(LETTERS, WEIGHTS)[0] if change < rate else c)
        if change > 1 - rate / 40:
            letters.append(protein(chance.randint(1, 4)))
    return "".join(letters)


def mmseqs(*args):
    subprocess.run(["mmseqs", *map(str, args), "-v", "1"], cwd=folder, check=True)


def fasta(name, records):
    (folder / name).write_text("".join(f">{head}\n{sequence}\n" for head, sequence in records))


a, b, other = protein(120), protein(90), protein(100)
fasta("ab.fasta", [("chain A", a), ("chain B", b), ("copy of A", a)])
fasta("other.fasta", [("other", other)])
records, taxa = [], {}
for species in range(60):
    for family, sequence, absent in (("A", a, species >= 50), ("B", b, species < 10)):
        for copy in range(0 if absent else 1 + (species % 7 == 0)):
            name = f"{family}_{species}_{copy}"
            records.append((name, descendant(sequence, 0.15 + 0.4 * chance.random() + 0.1 * copy)))
            taxa[name] = 1000 + species
records += [(f"random_{k}", protein(chance.randint(60, 200))) for k in range(300)]
fasta("all.fasta", records)
fasta("plain.fasta", [(f"sample_{k}", descendant(a, 0.3 + 0.2 * chance.random())) for k in range(20)] + [(f"noise_{k}", protein(150)) for k in range(50)])
(folder / "taxa.tsv").write_text("".join(f"{name}\t{taxon}\n" for name, taxon in taxa.items()))
(folder / "taxdump").mkdir(exist_ok=True)
nodes = [(1, 1, "no rank", "root")] + [(1000 + s, 1, "species", f"Species {s}") for s in range(60)]
(folder / "taxdump/nodes.dmp").write_text("".join(f"{k}\t|\t{up}\t|\t{rank}\t|\n" for k, up, rank, _ in nodes))
(folder / "taxdump/names.dmp").write_text("".join(f"{k}\t|\t{name}\t|\t\t|\tscientific name\t|\n" for k, _, _, name in nodes))
(folder / "taxdump/merged.dmp").write_text("")
(folder / "taxdump/delnodes.dmp").write_text("")

mmseqs("createdb", "plain.fasta", "plain")
mmseqs("createdb", "all.fasta", "clusters_seq", "--shuffle", "0")
mmseqs("createtaxdb", "clusters_seq", "tmp", "--ncbi-tax-dump", "taxdump", "--tax-mapping-file", "taxa.tsv")
mmseqs("cluster", "clusters_seq", "clu", "tmp", "--min-seq-id", "0.3", "-c", "0.8")
mmseqs("align", "clusters_seq", "clusters_seq", "clu", "clusters_aln", "-a", "-e", "inf")
mmseqs("createsubdb", "clu", "clusters_seq", "clusters")
mmseqs("createsubdb", "clu", "clusters_seq_h", "clusters_h")
for part in ("mapping", "taxonomy"):
    (folder / f"clusters_seq_{part}").rename(folder / f"clusters_{part}")
(folder / "databases.json").write_text(json.dumps({
    "main": {"path": "clusters", "name": "Families", "release": "2026_01", "date": "2026-01-15"},
    "environmental": {"path": "plain", "name": "Soil"},
}))
