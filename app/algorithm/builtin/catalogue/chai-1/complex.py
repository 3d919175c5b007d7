"""Writes the FASTA file of Chai-1, whose headers say what each sequence is."""
import sys

fasta, target, *ligands = sys.argv[1:]
chains = []
with open(fasta, encoding="utf-8-sig") as lines:
    for line in lines:
        if line.startswith(">"):
            chains.append("")
        elif line.strip():
            chains[-1] += "".join(line.split()).upper().rstrip("*")
with open(target, "w", encoding="utf-8") as out:
    for k, chain in enumerate(chains, 1):
        out.write(f">protein|name=chain_{k}\n{chain}\n")
    for k, smiles in enumerate(ligands, 1):
        out.write(f">ligand|name=ligand_{k}\n{smiles}\n")
