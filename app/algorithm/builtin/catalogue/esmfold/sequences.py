"""Writes the FASTA file that esm-fold reads, and names.csv, which says what each of its names stands
for. esm-fold takes small letters for unknown residues, and the whole header for the name of a file."""
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
        while name.lower() in used:  # also where files of names that differ in case are one
            name, n = f"{short}_{n}", n + 1
        used.add(name.lower())
        unknown = sum(c not in "ACDEFGHIKLMNPQRSTVWY" for c in letters)
        if unknown == len(letters):
            sys.exit(f"molrun: The sequence {header or k} has none of the 20 amino acids.")
        if unknown:
            print(f"Of {name}, {unknown} residues are none of the 20 amino acids: ESMFold takes them for unknown ones (X).", flush=True)
        if name != header:
            print(f"{header or k} is called {name}.", flush=True)
        out.write(f">{name}\n{letters}\n")
        rows.append([name, header, len(letters), unknown])
with open(names, "w", newline="", encoding="utf-8") as out:
    csv.writer(out).writerows(rows)
