"""Runs THESEUS on all structures of a folder if they have the same residues.

Writes superposed.pdb, variances.csv and theseus.txt. THESEUS exits with status 0 even when
it fails, so its report is checked."""
import csv
import pathlib
import re
import subprocess
import sys

source, out = map(pathlib.Path, sys.argv[1:])
files = sorted(source.glob("*.pdb"))


def residues(file):
    return [(line[22:27].strip(), line[17:20]) for line in file.read_text().splitlines() if line.startswith("ATOM") and line[12:16] == " CA "]


def whole(file):
    """Whether a structure has more than alpha carbons; THESEUS counts wrongly if it is given both kinds of structures."""
    return any(line.startswith("ATOM") and line[12:16] != " CA " for line in file.read_text().splitlines())


first = residues(files[0])
for file in files:
    these = residues(file)
    if not these:
        sys.exit(f"molrun: The structure {file.stem} has no alpha carbons.")
    if len(these) != len(first):
        sys.exit(f"molrun: The structures {files[0].stem} and {file.stem} have {len(first)} and {len(these)} residues: THESEUS only superposes structures with the same residues. Use mustang or tm-align.")
    if whole(file) != whole(files[0]):
        sys.exit(f"molrun: Either {files[0].stem} or {file.stem} has only alpha carbons; THESEUS can't superpose these on complete residues.")
    different = [(a, b) for a, b in zip(first, these) if a[1] != b[1]]
    if different:
        (number, name), (other, letters) = different[0]
        sys.exit(f"molrun: The structures {files[0].stem} and {file.stem} differ in sequence, first at {name} {number} and {letters} {other}. Use mustang or tm-align.")
done = subprocess.run(["theseus", "-r", str(out / "theseus"), *map(str, files)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", cwd=source, check=False)
text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
(out / "theseus.txt").write_text(text, encoding="utf-8")
found = re.search(r"ERROR[^:\n]*: *([^\n]+)", text)
result = out / "theseus_sup.pdb"
if "Jacobi iterations did not reach" in text:
    sys.exit("molrun: The structures are identical or nearly so: there is nothing to superpose.")
if done.returncode or found or not result.exists():
    sys.exit("molrun: THESEUS could not superpose the structures" + (f": {found[1].strip()}" if found else "") + ".")
result.rename(out / "superposed.pdb")

rows = []
for line in (out / "theseus_variances.txt").read_text(errors="replace").splitlines():
    words = line.split()
    if words and words[0].startswith("RES") and len(words) >= 7:
        rows.append(words)
with open(out / "variances.csv", "w", newline="", encoding="utf-8") as f:
    table = csv.writer(f)
    table.writerow(["index", "residue", "number", "rmsd_A"])
    table.writerows([k, words[2], words[3], words[6]] for k, words in enumerate(rows, 1))
