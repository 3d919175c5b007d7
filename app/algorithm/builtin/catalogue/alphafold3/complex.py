"""Writes the input of AlphaFold 3, without alignments and templates."""
import json
import sys

fasta, seed, target, *ligands = sys.argv[1:]
NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
chains = []
with open(fasta, "rb") as head:
    encoding = "utf-16" if head.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
with open(fasta, encoding=encoding, errors="replace") as lines:
    for line in map(str.strip, lines):
        if line.startswith(">") or line and not line.startswith(";") and not chains:
            chains.append("")
        if line and line[0] not in ">;":
            chains[-1] += "".join(line.split()).upper()
chains = [chain.removesuffix("*") for chain in chains]
names = [first + NAMES[k] for first in ("", "A") for k in range(26)]
sequences = [{"protein": {"id": names[k], "sequence": chain, "unpairedMsa": "", "pairedMsa": "", "templates": []}} for k, chain in enumerate(chains)]
sequences += [{"ligand": {"id": names[len(chains) + k], "smiles": smiles}} for k, smiles in enumerate(ligands)]
with open(target, "w", encoding="utf-8") as out:
    json.dump({"name": "complex", "modelSeeds": [int(seed)], "sequences": sequences, "dialect": "alphafold3", "version": 1}, out, indent=1)
