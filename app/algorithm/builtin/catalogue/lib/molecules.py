"""Reads molecules as people give them: SMILES, SDF, lines of SMILES, or a table."""
import csv
import pathlib
import sys

from rdkit import Chem, RDLogger

RDLogger.DisableLog("rdApp.*")


def refuse(sentence):
    """Ends the program with a sentence that the user reads."""
    sys.exit("molrun: " + sentence)


def read(kind, value):
    """Yields the name of each molecule with the molecule, or with a sentence that says why
    it can't be read."""
    if kind == "smiles":
        yield "molecule", parsed(value, "")
        return
    extension = pathlib.Path(value).suffix
    if extension in (".sdf", ".mol"):
        supplier = Chem.SDMolSupplier()
        supplier.SetData(pathlib.Path(value).read_text(encoding="utf-8-sig", errors="replace"))
        for k, molecule in enumerate(supplier, 1):
            name = molecule.GetProp("_Name").strip() if molecule is not None and molecule.HasProp("_Name") else ""
            yield name or f"molecule_{k}", molecule if molecule is not None else f"RDKit can't read the molecule {k} of the file"
        return
    with open(value, newline="", encoding="utf-8-sig", errors="replace") as lines:
        for k, (name, text) in enumerate(rows(lines, extension), 1):
            yield name or f"molecule_{k}", parsed(text, f" in row {k}")


def rows(lines, extension):
    """Yields names and SMILES."""
    if extension == ".smi":
        for line in lines:
            words = line.split()
            if words and not words[0].startswith("#"):
                yield " ".join(words[1:]), words[0]
        return
    table = csv.DictReader(lines, delimiter="\t" if extension == ".tsv" else ",")
    table.fieldnames = [(name or "").strip().lower() for name in table.fieldnames or []]
    if "smiles" not in table.fieldnames:
        refuse(f"The table has no column smiles, but {', '.join(table.fieldnames) or 'no columns'}.")
    for row in table:
        yield (row.get("name") or "").strip(), (row.get("smiles") or "").strip()


def parsed(smiles, where):
    """The molecule, or a sentence. An empty SMILES is none."""
    molecule = Chem.MolFromSmiles(smiles) if smiles else None
    if molecule is None or molecule.GetNumAtoms() == 0:
        return f"RDKit can't read the SMILES {smiles!r}{where}: look for unclosed rings or brackets, and for atoms with too many bonds"
    return molecule
