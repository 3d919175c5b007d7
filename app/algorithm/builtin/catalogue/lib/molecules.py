"""Reads molecules from SMILES, SDF files, lines of SMILES, or tables."""
import csv
import io
import pathlib
import sys

from rdkit import Chem, RDLogger

RDLogger.DisableLog("rdApp.*")


def refuse(sentence):
    """Ends the program with a sentence for the user."""
    sys.exit("molrun: " + sentence)


def read(kind, value):
    """Yields the name of each molecule with the molecule, or with the reason why it can't be
    read."""
    if kind == "smiles":
        yield "molecule", parsed(value, "")
        return
    extension = pathlib.Path(value).suffix
    if extension in (".sdf", ".mol"):
        supplier = Chem.SDMolSupplier()
        supplier.SetData(text_of(value).read())
        for k, molecule in enumerate(supplier, 1):
            name = molecule.GetProp("_Name").strip() if molecule is not None and molecule.HasProp("_Name") else ""
            yield name or f"molecule_{k}", molecule if molecule is not None else f"RDKit can't read molecule {k} of the file"
        return
    for k, (name, text) in enumerate(rows(text_of(value), extension), 1):
        yield name or f"molecule_{k}", parsed(text, f" in row {k}")


def text_of(file):
    """The lines of a file in UTF-8, UTF-16 with a byte order mark, or Windows-1252, as saved by spreadsheets."""
    raw = pathlib.Path(file).read_bytes()
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return io.StringIO(raw.decode("utf-16", errors="replace"), newline=None)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", errors="replace")
    return io.StringIO(text, newline=None)


def rows(lines, extension):
    """Yields names and SMILES."""
    if extension == ".smi":
        for line in lines:
            words = line.split()
            if words and not words[0].startswith("#"):
                yield " ".join(words[1:]), words[0]
        return
    head = lines.readline()
    if head.lower().startswith("sep="):  # Excel's separator line
        head = lines.readline()
    separators = [s for s in ",;\t" if "smiles" in names(next(csv.reader([head], delimiter=s), []))] or [","]
    table = csv.DictReader(lines, names(next(csv.reader([head], delimiter=separators[0]), [])), delimiter=separators[0])
    if "smiles" not in table.fieldnames:
        refuse(f"The table has no column smiles; its columns are {', '.join(table.fieldnames) or 'none'}.")
    for row in table:
        yield (row.get("name") or "").strip(), (row.get("smiles") or "").strip()


def names(cells):
    return [cell.strip().lower() for cell in cells]


def parsed(smiles, where):
    """The molecule, or the reason why it can't be read. An empty SMILES is an error."""
    molecule = Chem.MolFromSmiles(smiles) if smiles else None
    if molecule is None or molecule.GetNumAtoms() == 0:
        return f"RDKit can't read the SMILES {smiles!r}{where}: look for unclosed rings or brackets, and for atoms with too many bonds"
    return molecule
