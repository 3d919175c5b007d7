"""Writes the FASTA file for esm-fold, and names.csv, which maps its names to the originals. esm-fold
reads lowercase letters as unknown residues, and uses the whole header as a file name."""
import csv
import re
import sys

import fasta

source, target, names = sys.argv[1:]
used, rows = set(), []
with open(target, "w", encoding="utf-8") as out:
    for k, (header, sequence) in enumerate(fasta.records(source, bare=True), 1):
        letters = sequence.upper().rstrip("*")
        short = re.sub(r"[^A-Za-z0-9._-]+", "_", header.split()[0] if header else "").strip("._-")[:80] or f"sequence_{k}"
        name, n = short, 2
        while name.lower() in used:  # also unique on case-insensitive file systems
            name, n = f"{short}_{n}", n + 1
        used.add(name.lower())
        unknown = sum(c not in "ACDEFGHIKLMNPQRSTVWY" for c in letters)
        if unknown == len(letters):
            sys.exit(f"molrun: Sequence {header or k} contains none of the 20 amino acids.")
        if unknown:
            print(f"{unknown} residues of {name} are not among the 20 amino acids: ESMFold reads them as unknown (X).", flush=True)
        if name != header:
            print(f"{header or k} is renamed {name}.", flush=True)
        out.write(f">{name}\n{letters}\n")
        rows.append([name, header, len(letters), unknown])
with open(names, "w", newline="", encoding="utf-8") as out:
    csv.writer(out).writerows(rows)
