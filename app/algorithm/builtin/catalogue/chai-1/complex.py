"""Writes the FASTA file of Chai-1, whose headers say what each sequence is."""
import sys

fasta, target, *ligands = sys.argv[1:]
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
with open(target, "w", encoding="utf-8") as out:
    for k, chain in enumerate(chains, 1):
        out.write(f">protein|name=chain_{k}\n{chain}\n")
    for k, smiles in enumerate(ligands, 1):
        out.write(f">ligand|name=ligand_{k}\n{smiles}\n")
