"""Writes the input of AlphaFold 3, without alignments and templates."""
import json
import sys

fasta, seed, target, *ligands = sys.argv[1:]
NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
chains = []
with open(fasta, encoding="utf-8-sig") as lines:
    for line in lines:
        if line.startswith(">"):
            chains.append("")
        elif line.strip():
            chains[-1] += "".join(line.split()).upper().rstrip("*")
names = [first + NAMES[k] for first in ("", "A") for k in range(26)]
sequences = [{"protein": {"id": names[k], "sequence": chain, "unpairedMsa": "", "pairedMsa": "", "templates": []}} for k, chain in enumerate(chains)]
sequences += [{"ligand": {"id": names[len(chains) + k], "smiles": smiles}} for k, smiles in enumerate(ligands)]
with open(target, "w", encoding="utf-8") as out:
    json.dump({"name": "complex", "modelSeeds": [int(seed)], "sequences": sequences, "dialect": "alphafold3", "version": 1}, out, indent=1)
