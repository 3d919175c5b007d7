"""Reads what the site says of its databases, in databases.json of the folder that [site.paths] calls msa:

  {"main": {"path": "uniref30_2302_db", "name": "UniRef30", "release": "2023_02", "date": "2023-05-11"},
   "environmental": {"path": "colabfold_envdb_202108_db", "name": "ColabFold environmental", "release": "2021_08"}}

main is needed, and of each entry its path, which is below the folder."""
import hashlib
import json
import pathlib
import shutil
import struct
import subprocess

ROLES = ("main", "environmental")
PROTEINS, PROFILES = 0, 2  # types of databases, of the low half of .dbtype


class Fault(Exception):
    """Why the databases can't be searched, as a sentence without its point."""


class Database:
    def __init__(self, folder, role, entry):
        known = {"path", "name", "release", "date"}
        if not (isinstance(entry, dict) and entry.get("path") and set(entry) <= known and all(isinstance(text, str) for text in entry.values())):
            raise Fault(f"databases.json of this server needs texts for {role}: path, and name, release and date where they are known")
        self.folder, self.role, self.about = pathlib.Path(folder), role, entry
        self.name = entry.get("name") or entry["path"]
        self.path = self.folder / entry["path"]
        if ".." in self.path.parts or pathlib.Path(entry["path"]).is_absolute():
            raise Fault(f"the path of {self.name} in databases.json of this server must be one below its folder")

    def part(self, suffix):
        """The path of a part of the database, such as _seq."""
        return self.path.with_name(self.path.name + suffix)

    def has(self, *suffixes):
        return all(self.part(suffix).is_file() for suffix in suffixes)

    @property
    def expands(self):
        """Whether a hit stands for a cluster of sequences."""
        return self.has("_seq.dbtype", "_aln.dbtype")

    @property
    def sequences(self):
        return self.part("_seq") if self.expands else self.path

    @property
    def pairs(self):
        """Whether it tells of which species its sequences are."""
        return self.has("_mapping", "_taxonomy")

    def check(self, release):
        """Looks for what this release of MMseqs2 can't search."""
        if not self.has(".dbtype", ".index"):
            raise Fault(f"the database {self.name} is not on this server, or not all of it: its folder has no {self.path.name}.dbtype and .index")
        for suffix in ("", "_seq") if self.expands else ("",):
            self.check_type(self.part(f"{suffix}.dbtype"), release)
        if self.part(".index").stat().st_size == 0:
            raise Fault(f"the database {self.name} has no sequences")

    def check_type(self, file, release):
        kind, extended = struct.unpack("<HH", file.read_bytes()[:4].ljust(4, b"\xff"))
        if kind == 1:
            raise Fault(f"the database {self.name} is one of nucleotides, and alignments are of proteins")
        if kind not in (PROTEINS, PROFILES):
            raise Fault(f"the database {self.name} is no database of sequences that MMseqs2 {release} knows")
        # The high half has flags; the last bit says that it is compressed. Up to release 15 there are
        # no others than the three lowest; 8 is that of databases that are laid out for GPUs.
        if extended & 0x7FF8 and release.isdigit() and int(release) <= 15:
            raise Fault(f"the database {self.name} was made by a newer MMseqs2 than this server's {release}, which would misread it: it needs release 16 or later, or databases that are not laid out for GPUs")

    def record(self):
        """What a result says of it. The digest is that of the names and sizes of all its files, and of its index."""
        digest, entries = hashlib.sha256(), 0
        for path in sorted(self.path.parent.iterdir()):
            if path.name == self.path.name or path.name.startswith((self.path.name + ".", self.path.name + "_")):
                digest.update(f"{path.name} {path.stat().st_size}\n".encode())
        with open(self.part(".index"), "rb") as index:
            while block := index.read(1 << 20):
                digest.update(block)
                entries += block.count(b"\n")
        return {"role": self.role, **self.about, "name": self.name, "entries": entries, "expands": self.expands, "taxonomy": self.pairs, "digest": digest.hexdigest()}


def release():
    """Version and number of the release of MMseqs2, such as 14-7e284 and 14; empty where the nodes of a cluster alone have it."""
    if not shutil.which("mmseqs"):
        return "", ""
    version = subprocess.run(["mmseqs", "version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return version, version.split("-")[0]


def site(folder):
    """The databases by their roles."""
    try:
        entries = json.loads(pathlib.Path(folder, "databases.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Fault("the folder msa of this server has no databases.json, which names its databases") from None
    except ValueError as err:
        raise Fault(f"databases.json of this server is no JSON: {err}") from None
    if not isinstance(entries, dict) or "main" not in entries or set(entries) - set(ROLES):
        raise Fault("databases.json of this server must have main, and may have environmental, and nothing else")
    found = {role: Database(folder, role, entries[role]) for role in ROLES if role in entries}
    number = release()[1]
    for database in found.values():
        database.check(number)
    return found
