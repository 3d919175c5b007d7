"""Reads the site's description of its databases: databases.json in the folder msa of [site.paths]:

  {"main": {"path": "uniref30_2302_db", "name": "UniRef30", "release": "2023_02", "date": "2023-05-11"},
   "environmental": {"path": "colabfold_envdb_202108_db", "name": "ColabFold environmental", "release": "2021_08"}}

main is required, and in each entry path, which is relative to the folder."""
import hashlib
import json
import pathlib
import shutil
import struct
import subprocess

ROLES = ("main", "environmental")
PROTEINS, PROFILES = 0, 2  # database types, in the low half of .dbtype


class Fault(Exception):
    """The reason why the databases can't be searched, as a sentence without its period."""


class Database:
    def __init__(self, folder, role, entry):
        known = {"path", "name", "release", "date"}
        if not (isinstance(entry, dict) and entry.get("path") and set(entry) <= known and all(isinstance(text, str) for text in entry.values())):
            raise Fault(f"databases.json on this server needs strings for {role}: path, and name, release and date if known")
        self.folder, self.role, self.about = pathlib.Path(folder), role, entry
        self.name = entry.get("name") or entry["path"]
        self.path = self.folder / entry["path"]
        if ".." in self.path.parts or pathlib.Path(entry["path"]).is_absolute():
            raise Fault(f"the path of {self.name} in databases.json on this server must be inside the folder")

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
        """Whether the species of its sequences are known."""
        return self.has("_mapping", "_taxonomy")

    def check(self, release):
        """Rejects databases that this release of MMseqs2 can't search."""
        if not self.has(".dbtype", ".index"):
            raise Fault(f"the database {self.name} is missing or incomplete on this server: its folder has no {self.path.name}.dbtype and .index")
        for suffix in ("", "_seq") if self.expands else ("",):
            self.check_type(self.part(f"{suffix}.dbtype"), release)
        if self.part(".index").stat().st_size == 0:
            raise Fault(f"the database {self.name} has no sequences")

    def check_type(self, file, release):
        kind, extended = struct.unpack("<HH", file.read_bytes()[:4].ljust(4, b"\xff"))
        if kind == 1:
            raise Fault(f"the database {self.name} contains nucleotides, but alignments need proteins")
        if kind not in (PROTEINS, PROFILES):
            raise Fault(f"the database {self.name} is not a sequence database known to MMseqs2 {release}")
        # The high half holds flags; the last bit means compressed. Up to release 15 only the three
        # lowest exist; 8 means that the database is laid out for GPUs.
        if extended & 0x7FF8 and release.isdigit() and int(release) <= 15:
            raise Fault(f"the database {self.name} was made by a newer MMseqs2 than this server's {release}, which would misread it: install release 16 or later, or databases not laid out for GPUs")

    def record(self):
        """The entry in a result. The digest covers the names and sizes of all files, and the index."""
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
    """Version and release number of MMseqs2, such as 14-7e284 and 14; empty if only the cluster nodes have it."""
    if not shutil.which("mmseqs"):
        return "", ""
    version = subprocess.run(["mmseqs", "version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return version, version.split("-")[0]


def site(folder):
    """The databases by role."""
    try:
        entries = json.loads(pathlib.Path(folder, "databases.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Fault("the folder msa on this server has no databases.json to name the databases") from None
    except ValueError as err:
        raise Fault(f"databases.json on this server is not valid JSON: {err}") from None
    if not isinstance(entries, dict) or "main" not in entries or set(entries) - set(ROLES):
        raise Fault("databases.json on this server must have main, optionally environmental, and nothing else")
    found = {role: Database(folder, role, entries[role]) for role in ROLES if role in entries}
    number = release()[1]
    for database in found.values():
        database.check(number)
    return found
