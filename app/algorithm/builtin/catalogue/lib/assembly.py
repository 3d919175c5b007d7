"""The components of a complex, for structure predictors: reads settings and files, and rejects
input that the programs would silently misread or ignore.

A script calls run with the function that writes its program's input. It is used in two ways:

  SCRIPT check          [--KIND FILE...]   as [validate]: reads settings from standard input
  SCRIPT SETTINGS OUT   [--KIND FILE...]   as a step: an error ends the job

where --KIND names the parameter of the files that follow."""
import json
import pathlib
import re
import sys

from fasta import records

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SMILES = re.compile(r"\[[^\[\]]+\]|Br|Cl|[BCNOPSFIbcnops*]|[-=#$:/\\.~()]|%[0-9]{2}|[0-9]")
ATOM = re.compile(r"\[\d*(?!H[+\]])[^\[\]]+\]|Br|Cl|[BCNOPSFIbcnops*]")


def name(k):
    """Letters of chain number k, as programs name chains: A to Z, AA, AB and so on."""
    return LETTERS[k] if k < 26 else LETTERS[k // 26 - 1] + LETTERS[k % 26]


def smiles_fault(text):
    """The syntax error of a SMILES, or None if none is found."""
    at, rings, open_ = 0, {}, 0
    while at < len(text):
        token = SMILES.match(text, at)
        if token is None:
            return f"is not a valid SMILES: unexpected {text[at:at + 2]!r} at character {at + 1}"
        token = token.group()
        if token.startswith("%") or token.isdigit():
            rings[token] = not rings.get(token, False)
        open_ += (token == "(") - (token == ")")
        if open_ < 0:
            return f"is not a valid SMILES: the bracket at character {at + 1} has no opening bracket"
        at += len(token)
    if open_:
        return "is not a valid SMILES: a bracket is not closed"
    left = sorted(ring for ring, is_open in rings.items() if is_open)
    if left:
        return f"is not a valid SMILES: ring {left[0]} is not closed"
    return None if ATOM.search(text) else "is not a valid SMILES: it has no atom"


def heavy(smiles):
    """The number of heavy atoms."""
    return len(ATOM.findall(smiles))


class Assembly:
    """chains holds (letter, kind, sequence), ordered as proteins, DNA, RNA, SMILES, CCD."""

    def __init__(self, settings, files):
        self.settings, self.files, self.faults = settings, files, []
        self.chains = []
        for _, sequence in records(files["proteins"][0], bare=True) if files.get("proteins") else []:
            self.add("protein", sequence.upper().removesuffix("*"))
        for kind, setting in (("dna", "dna"), ("rna", "rna"), ("smiles", "ligands"), ("ccd", "ccd")):
            for text in settings.get(setting) or []:
                self.add(kind, text if kind == "smiles" else text.upper())
        for k, text in enumerate(settings.get("ligands") or []):
            if fault := smiles_fault(text):
                self.fault(fault, "ligands", k)
        self.modifications = self.read_modifications()
        self.alignments = self.read_alignments()

    def add(self, kind, text):
        self.chains.append((name(len(self.chains)), kind, text))

    def fault(self, msg, *loc):
        self.faults.append({"loc": list(loc), "msg": msg, "type": "value"})

    def of(self, *kinds):
        return [chain for chain in self.chains if chain[1] in kinds]

    def residue(self, text, *loc):
        """Chain and number of a residue named by a setting, such as A:12; None if it does not exist."""
        letter, _, number = text.partition(":")
        for chain, kind, sequence in self.of("protein", "dna", "rna"):
            if chain == letter and int(number) <= len(sequence):
                return chain, int(number)
        lengths = ", ".join(f"{chain} ({len(sequence)} residues)" for chain, _, sequence in self.of("protein", "dna", "rna"))
        self.fault(f"names residue {text}, which does not exist: the chains, in the order proteins, DNA, RNA, are {lengths}", *loc)
        return None

    def bonds(self):
        """The two atoms of each bond, as (chain, number, name); at least one belongs to a ligand given by CCD code."""
        found, ccd = [], [letter for letter, _, _ in self.of("ccd")]
        for k, text in enumerate(self.settings.get("bonds") or []):
            ends = [(chain, int(number), atom) for chain, number, atom in (end.split(":") for end in text.split("-"))]
            for chain, number, _ in ends:
                if chain not in ccd:
                    self.residue(f"{chain}:{number}", "bonds", k)
                elif number != 1:
                    self.fault(f"names {chain}:{number}, but the residue number of a ligand is 1", "bonds", k)
            if not any(chain in ccd for chain, _, _ in ends):
                self.fault("must include a ligand given by CCD code" + (f": {', '.join(ccd)}" if ccd else ""), "bonds", k)
            found.append(ends)
        return found

    def read_modifications(self):
        """Maps each chain letter to residue numbers and their codes."""
        found = {}
        for k, text in enumerate(self.settings.get("modifications") or []):
            where, code = text.rsplit(":", 1)
            if place := self.residue(where, "modifications", k):
                found.setdefault(place[0], {})[place[1]] = code
        return found

    def read_alignments(self):
        """Maps each protein sequence to the (header, sequence) records of its alignment."""
        found, chains = {}, [sequence for _, _, sequence in self.of("protein")]
        for k, path in enumerate(self.files.get("alignments", [])):
            rows = [(head, sequence.replace(".", "")) for head, sequence in records(path)]
            widths = [sum(not c.islower() for c in sequence) for _, sequence in rows]
            odd = next((n for n, width in enumerate(widths) if width != widths[0]), None)
            if not rows:
                self.fault("is not an A3M file: it has no record", "alignments", k)
            elif rows[0][1].upper() not in chains:
                self.fault("starts with a sequence that is not one of the protein chains: the first record must be the whole chain, without gaps", "alignments", k)
            elif odd is not None:
                self.fault(f"is not an A3M file: record {odd + 1} has {widths[odd]} columns and the chain has {widths[0]}; insertions must be lowercase", "alignments", k)
            elif bad := next((c for _, sequence in rows for c in sequence if not (c.isascii() and c.isalpha() or c == "-")), None):
                self.fault(f"is not a protein A3M file: a sequence contains {bad!r}", "alignments", k)
            elif rows[0][1].upper() in found:
                self.fault("is a second alignment for the same chain", "alignments", k)
            else:
                found[rows[0][1].upper()] = [(rows[0][0], rows[0][1].upper()), *rows[1:]]
        return found

    def a3m(self, sequence):
        """The alignment of a chain, one line per sequence."""
        return "".join(f">{head}\n{row}\n" for head, row in self.alignments[sequence])


def strange_letters(a, program):
    """Reports letters that the program would silently read as an unknown residue."""
    for letter, _, sequence in a.of("protein"):
        odd = next((k for k, c in enumerate(sequence) if c not in "ACDEFGHIKLMNPQRSTVWYX"), None)
        if odd is not None:
            a.fault(f"has {sequence[odd]} at {letter}:{odd + 1}, which {program} reads as an unknown residue: write X if intended, or the parent amino acid with the CCD code as a modification", "proteins")


def run(check, write):
    """check(assembly) adds program-specific errors; write(assembly, path) writes the program's input."""
    mode, *rest = sys.argv[1:]
    files, kind = {}, None
    target = None if mode == "check" else pathlib.Path(rest.pop(0))
    for word in rest:
        if word.startswith("--"):
            kind = files.setdefault(word[2:], [])
        else:
            kind.append(word)
    with sys.stdin if mode == "check" else open(mode, encoding="utf-8") as source:
        settings = json.load(source)
    assembly = Assembly(settings, files)
    if not assembly.faults:
        check(assembly)
    if mode == "check":
        print(json.dumps(assembly.faults))
    elif assembly.faults:
        setting, *number = assembly.faults[0]["loc"]
        sys.exit(f"molrun: The setting {setting}{''.join(f', number {k + 1},' for k in number)} {assembly.faults[0]['msg']}.")
    else:
        write(assembly, target)
