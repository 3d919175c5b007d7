"""Makes tables of the designs of ProteinMPNN, whose headers hold their scores: designs.csv,
designs.fasta and metrics.json. The first record is the given sequence."""
import csv
import json
import pathlib
import re
import sys

source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
rows, head = [], None
for line in source.read_text(encoding="utf-8").splitlines():
    if line.startswith(">"):
        head = dict(re.findall(r"(\w+)=([^,\s]+)", line))
    elif head is not None and "sample" in head:
        rows.append([int(head["sample"]), float(head["score"]), float(head["global_score"]), float(head["seq_recovery"]), line.strip()])
if not rows:
    sys.exit("molrun: ProteinMPNN has proposed no sequence.")
rows.sort(key=lambda row: row[1])
with open(out / "designs.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows([["sample", "score", "global_score", "recovery", "sequence"], *rows])
with open(out / "designs.fasta", "w", encoding="utf-8") as f:
    for sample, score, _, _, sequence in rows:
        for k, chain in enumerate(sequence.split("/")):
            f.write(f">design_{sample}" + (f"_{k + 1}" if "/" in sequence else "") + f" score={score}\n{chain}\n")
(out / "metrics.json").write_text(json.dumps({
    "score": rows[0][1], "recovery": round(sum(row[3] for row in rows) / len(rows), 4), "designs": len(rows), "different": len({row[4] for row in rows}),
}))
