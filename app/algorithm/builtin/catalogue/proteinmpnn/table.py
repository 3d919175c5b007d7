"""Tabulates the output of ProteinMPNN: designs.csv and designs.fasta for designs, whose headers hold
the scores; scores.csv for scored sequences; and metrics.json."""
import csv
import json
import math
import pathlib
import re
import sys

source, out, candidates = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]


def write(name, rows, figures):
    if not all(math.isfinite(row[1]) for row in rows[1:]):
        sys.exit("molrun: ProteinMPNN reported no score for these residues.")
    with open(out / name, "w", newline="", encoding="utf-8") as f:
        csv.writer(f).writerows(rows)
    (out / "metrics.json").write_text(json.dumps(figures))


def designs():
    text = source.read_text(encoding="utf-8")
    given = float(re.search(r"^>[^\n]*?\bscore=(\S+?),", text)[1])
    chains = re.findall(r"'(.)'", re.search(r"designed_chains=\[(.*?)\]", text)[1])
    rows = []
    for head, sequence in re.findall(r"^>(T=[^\n]*)\n([^\n]*)", text, re.MULTILINE):
        value = dict(re.findall(r"(\w+)=([^,\s]+)", head))
        rows.append([int(value["sample"]), float(value["score"]), float(value["global_score"]), float(value["seq_recovery"]), sequence.strip()])
    if not rows:
        sys.exit("molrun: ProteinMPNN proposed no sequence.")
    rows.sort(key=lambda row: row[1])
    with open(out / "designs.fasta", "w", encoding="utf-8") as f:
        for sample, score, _, _, sequence in rows:
            for chain, letters in zip(chains, sequence.split("/")):
                f.write(f">design_{sample}" + (f"_{chain}" if len(chains) > 1 else "") + f" score={score}\n{letters}\n")
    write("designs.csv", [["sample", "score", "global_score", "recovery", "sequence"], *rows], {
        "score": rows[0][1], "given_score": given, "recovery": round(sum(row[3] for row in rows) / len(rows), 4),
        "designs": len(rows), "different": len({row[4] for row in rows}),
    })


def scores():
    names = ["given"]
    if candidates:
        with open(candidates[0], encoding="utf-8") as lines:
            names += [line[1:].strip() for line in lines if line.startswith(">")]
    said = r"^Score for \S+ from (?:PDB|FASTA), mean: (\S+), std: (\S+), sample size: (\d+),\s+global score, mean: ([^,\s]+)"
    rows = [[float(mean), float(deviation), float(whole), int(samples)] for mean, deviation, samples, whole in re.findall(said, source.read_text(encoding="utf-8"), re.MULTILINE)]
    if len(rows) != len(names):
        sys.exit(f"molrun: ProteinMPNN scored only {len(rows)} of {len(names)} sequences.")
    rows = [[name, *row] for name, row in zip(names, rows)]
    best = min(rows[1:] or rows, key=lambda row: row[1])
    write("scores.csv", [["name", "score", "deviation", "global_score", "samples"], *sorted(rows, key=lambda row: row[1])],
          {"score": best[1], "given_score": rows[0][1]})


designs() if source.suffix == ".fa" else scores()
