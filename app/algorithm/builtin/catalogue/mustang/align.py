"""Runs MUSTANG on all structures of a folder: aligned.pdb, aligned.afasta, rmsd.csv and
metrics.json."""
import csv
import json
import pathlib
import re
import subprocess
import sys

source, out = map(pathlib.Path, sys.argv[1:])
files = sorted(source.glob("*.pdb"))
done = subprocess.run(["mustang", "-p", f"{source}/", "-i", *(file.name for file in files), "-o", str(out / "aligned"), "-F", "fasta", "-r", "ON"],
                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
print(re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)[-20_000:])
if done.returncode or not (out / "aligned.afasta").exists():
    sys.exit(done.returncode or 1)

sequences, name = {}, None
for line in (out / "aligned.afasta").read_text(errors="replace").splitlines():
    if line.startswith(">"):
        name = line[1:].removesuffix(".pdb")
        sequences[name] = ""
    elif name is not None:
        sequences[name] += line.strip()
(out / "aligned.afasta").write_text("".join(f">{name}\n{letters}\n" for name, letters in sequences.items()))
columns = list(zip(*sequences.values()))
core = [column for column in columns if "-" not in column]
if not core:
    sys.exit("molrun: No residue position is common to all structures: their folds have nothing in common.")

matrix = []
for line in (out / "aligned.rms_rot").read_text(errors="replace").splitlines():
    found = re.match(r"\s*\d+\|(.*)", line)
    if found:
        matrix.append([0.0 if word == "---" else float(word) for word in found[1].split()])
with open(out / "rmsd.csv", "w", newline="", encoding="utf-8") as f:
    csv.writer(f).writerows(matrix)
pairs = [matrix[i][j] for i in range(len(matrix)) for j in range(i)]
metrics = {"structures": len(sequences), "core": len(core), "identity_percent": round(100 * sum(len(set(column)) == 1 for column in core) / len(core), 2)}
if pairs:
    metrics["rmsd_A"] = round(sum(pairs) / len(pairs), 3)
(out / "metrics.json").write_text(json.dumps(metrics))
