"""Completes a structure with PDBFixer: writes fixed.pdb, changes.csv and metrics.json.

  fix.py ORIGINAL READ OUT SETTINGS [SEQUENCES]

READ is ORIGINAL as a plain PDB file. The sequences needed to fill gaps come from SEQUENCES, whose
records are named by chain letter, or from ORIGINAL (SEQRES, _pdbx_poly_seq_scheme)."""
import csv
import gzip
import io
import json
import math
import pathlib
import sys

from openmm import app, unit
from openmm.app.internal.pdbx.reader.PdbxReader import PdbxReader
from pdbfixer import PDBFixer
from pdbfixer.pdbfixer import Sequence, proteinResidues, substitutions

from fasta import records

original, read, out, settings, *given = sys.argv[1:]
out, settings = pathlib.Path(out), json.loads(pathlib.Path(settings).read_text(encoding="utf-8"))
THREE = dict(zip("ANCEHLMPTYRDQGIKFSWV", proteinResidues))
MIRRORED = {name for name in substitutions if name.startswith("D")} - {"DHA", "DNP"}
CLOSED = 2.0  # Å, maximum distance between C and N of bonded neighbors


def refuse(sentence):
    sys.exit("molrun: " + sentence)


def sequences_of_file():
    """Residue names by chain, as given in the file."""
    with open(original, "rb") as file:
        raw = file.read()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    chains = {}
    for line in text.split("\n"):
        if line.startswith("SEQRES"):
            chains.setdefault(line[11:12], []).extend(line[19:70].split())
    if chains or "_pdbx_poly_seq_scheme." not in text:
        return chains
    blocks = []
    PdbxReader(io.StringIO(text)).read(blocks)
    scheme = blocks[0].getObj("pdbx_poly_seq_scheme")
    chain, name, number = (scheme.getAttributeIndex(column) for column in ("pdb_strand_id", "mon_id", "seq_id"))
    seen = set()
    for row in scheme.getRowList():
        if -1 not in (chain, name, number) and (row[chain], row[number]) not in seen:  # one of several alternatives
            seen.add((row[chain], row[number]))
            chains.setdefault(row[chain], []).append(row[name])
    return chains


def sequences_given(path):
    chains = {}
    for head, sequence in records(path):
        name = head.split()[0] if head.split() else ""
        unknown = sorted(set(sequence.upper()) - set(THREE))
        if unknown:
            refuse(f"The sequence {name} has {', '.join(unknown)}; only the 20 amino acids can be built.")
        chains[name] = [THREE[letter] for letter in sequence.upper()]
    there = sorted({c.id for c in fixer.topology.chains()})
    for name in chains:
        if name not in there:
            refuse(f"The sequence {name!r} matches no chain: name each record by its chain letter. The chains are {', '.join(there)}.")
    return chains


def title(residue):
    return [residue.chain.id, residue.id + residue.insertionCode.strip(), residue.name]


def place(residue, name):
    """The position of an atom of a residue in Å, or None."""
    return next((fixer.positions[a.index].value_in_unit(unit.angstrom) for a in residue.atoms() if a.name == name), None)


def broken(before, after):
    ends = place(before, "C"), place(after, "N")
    return None not in ends and math.dist(*ends) > CLOSED


def breaks():
    """The pairs of neighbors in a chain that are not bonded."""
    for chain in fixer.topology.chains():
        residues = [r for r in chain.residues() if place(r, "CA") is not None]
        yield from (pair for pair in zip(residues, residues[1:]) if broken(*pair))


def warn(sentence):
    print("molrun:warning " + sentence)


def some(items, most=8):
    items = list(items)
    return ", ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")


fixer = PDBFixer(filename=read)
rows = []

fixer.findNonstandardResidues()
replaced = [(title(r), standard) for r, standard in fixer.nonstandardResidues]
rows += [[*name, "replaced", f"by {standard}"] for name, standard in replaced]
fixer.replaceNonstandardResidues()
mirrored = [" ".join(name) for name, _ in replaced if name[2] in MIRRORED]
if mirrored:
    warn(f"D-amino acids were renamed as L-amino acids but keep their handedness: {some(mirrored)}.")

unknown = [title(r) for r in fixer.topology.residues() if r.name not in fixer.templates and {"N", "CA", "C"} <= {a.name for a in r.atoms()}]
if unknown and settings["keep"] != "all":
    refuse(f"PDBFixer does not know these chain residues: {some(map(' '.join, unknown))}. Replace them with standard amino acids, or keep all ligands.")
if settings["keep"] != "all":
    before = {tuple(title(r)) for r in fixer.topology.residues()}
    fixer.removeHeterogens(keepWater=settings["keep"] == "water")
    rows += [[*name, "left out", ""] for name in sorted(before - {tuple(title(r)) for r in fixer.topology.residues()}) if name[2] != "HOH"]

sequences = {} if settings["build"] == "none" else sequences_given(given[0]) if given else sequences_of_file()
fixer.sequences = [Sequence(chain, [substitutions.get(name, name) for name in names]) for chain, names in sequences.items()]
fixer.findMissingResidues()
polymers = {c.index: c for c in fixer.topology.chains() if any(place(r, "CA") is not None for r in c.residues())}
unmatched, long = [], []
for index, chain in polymers.items():
    n = len(list(chain.residues()))
    missing = {at: names for (c, at), names in fixer.missingResidues.items() if c == index}
    if chain.id in sequences and n + sum(map(len, missing.values())) != len(sequences[chain.id]):
        unmatched.append(chain.id)
    for at, names in missing.items():
        end = at in (0, n)
        if end and settings["build"] == "gaps" or not end and len(names) > settings["longest"]:
            del fixer.missingResidues[index, at]
            if not end:
                long.append(f"{len(names)} residues of chain {chain.id}")
for key in [key for key in fixer.missingResidues if key[0] not in polymers]:
    del fixer.missingResidues[key]
if unmatched and given:
    refuse(f"The sequence of chain {some(unmatched)} does not match its residues and numbering: give the whole sequence, with the same residues at the same spacing.")
if unmatched:
    warn(f"No residues were built in chain {some(unmatched)}, whose numbering does not match the sequence in the file: give the sequence as a file, and check the numbering.")
if long:
    warn(f"Gaps longer than {settings['longest']} residues were not built: {some(long)}.")
strange = sorted({name for names in fixer.missingResidues.values() for name in names if name not in fixer.templates})
if strange:
    refuse(f"Missing residues are of types that can't be built: {some(strange)}. Give a sequence with standard amino acids.")
built = sum(map(len, fixer.missingResidues.values()))

fixer.findMissingAtoms()
added = 0
for atoms in (fixer.missingAtoms, fixer.missingTerminals):
    for residue, missing in atoms.items():
        names = [a if isinstance(a, str) else a.name for a in missing]
        added += len(names)
        rows.append([*title(residue), "atoms added", " ".join(names)])
old = {(r.chain.id, r.id, r.insertionCode) for r in fixer.topology.residues()}
print("molrun:progress 0.2 adding atoms", flush=True)
fixer.addMissingAtoms(seed=settings["seed"])
new = [r for r in fixer.topology.residues() if (r.chain.id, r.id, r.insertionCode) not in old]
rows += [[*title(r), "built", ""] for r in new]

apart = [(a, b) for a, b in breaks()]
torn = [" to ".join(" ".join(title(r)) for r in pair) for pair in apart if set(pair) & set(new)]
gaps = [" to ".join(" ".join(title(r)) for r in pair) for pair in apart if not set(pair) & set(new)]
if torn:
    warn(f"The built residues do not close the chain at {some(torn)}: the gap may be too wide for its residues. Model the loop with another program.")
if new:
    warn(f"{built} missing residues were built. Their positions are a clash-free guess, not a prediction: relax them, or model them with another program.")
if gaps:
    warn(f"The chain is still broken at {some(gaps)}. To build the missing residues, give the sequence of the chain and allow gaps of that length.")

print("molrun:progress 0.7 adding hydrogens", flush=True)
hydrogens = 0
if settings["hydrogens"]:
    before = fixer.topology.getNumAtoms()
    fixer.addMissingHydrogens(pH=settings["pH"])
    hydrogens = fixer.topology.getNumAtoms() - before
    bare = sorted({r.name for r in fixer.topology.residues() if not any(a.element is not None and a.element.symbol == "H" for a in r.atoms()) and len(list(r.atoms())) > 1})
    if bare:
        warn(f"PDBFixer has no hydrogen definitions for these residues: {some(bare)}.")
with open(out / "fixed.pdb", "w", encoding="utf-8") as target:
    app.PDBFile.writeFile(fixer.topology, fixer.positions, target, keepIds=True)
with open(out / "changes.csv", "w", newline="", encoding="utf-8") as target:
    csv.writer(target).writerows([["chain", "number", "residue", "change", "what"], *rows])
(out / "metrics.json").write_text(json.dumps({
    "added_atoms": added, "built": built, "replaced": len(replaced), "hydrogens": hydrogens, "gaps": len(gaps) + len(torn),
    "residues": sum(place(r, "CA") is not None for r in fixer.topology.residues()),
}))
