"""Searches the site's databases with the steps and parameters of colabfold_search (ColabFold 1.6, the search of
its paper), and writes the alignments as A3M. It is used in three ways:

  search.py check FOLDER FASTA                  as [validate]: reads settings from standard input
  search.py probe FOLDER                        reports problems with the databases
  search.py search FOLDER FASTA SETTINGS CPUS WORK OUT"""
import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys

from alignment import Alignment
from databases import Fault, release, site
from fasta import records

SEARCH = ["--num-iterations", "3", "-a", "-e", "0.1", "--max-seqs", "10000", "-s", "8", "--db-load-mode", "2"]
EXPAND = ["--expansion-mode", "0", "-e", "inf", "--db-load-mode", "2"]
REALIGN = ["-e", "10", "--alt-ali", "10", "-a", "--db-load-mode", "2"]
RESULT = ["--qid", "0", "--diff", "0", "--max-seq-id", "1.0", "--filter-min-enable", "100", "--db-load-mode", "2"]
MSA = ["--msa-format-mode", "6", "--filter-min-enable", "1000", "--diff", "3000", "--qid", "0.0,0.2,0.4,0.6,0.8,1.0", "--qsc", "0", "--max-seq-id", "0.95", "--db-load-mode", "2"]
PAIR = ["-e", "0.001", "--max-accept", "1000000", "-a", "--db-load-mode", "2"]
COLUMNS = "query,target,taxid,bits,qstart,qaln,taln"
FEW = 30  # effective sequences; with fewer, AlphaFold2 gets worse (Jumper et al. 2021, figure 5a)


def chains(path):
    """Header and sequence of each chain."""
    return [(head, sequence.upper().removesuffix("*")) for head, sequence in records(path, bare=True)]


def check(settings, databases):
    """Errors in the settings."""
    if settings["pair"] == "none":
        return []
    if not databases["main"].pairs:
        return [{"loc": ["pair"], "msg": f"can't be done on this server: its database {databases['main'].name} has no species for its sequences", "type": "value"}]
    return []


class Search:
    """A search with all queries, in a separate folder. Result databases are named as in colabfold_search."""

    def __init__(self, settings, databases, cpus, work):
        self.settings, self.databases, self.cpus = settings, databases, cpus
        self.work, self.commands, self.of = pathlib.Path(work), [], 0
        self.folders = re.compile("|".join(re.escape(f"{path}/") for path in (self.work, databases["main"].folder)))

    def mmseqs(self, module, *args, threads=True):
        """Runs a module of MMseqs2 and reports progress."""
        command = ["mmseqs", module, *map(str, args), *(["--threads", self.cpus] if threads else [])]
        self.commands.append(self.folders.sub("", " ".join(map(str, command))))
        share = sum(8 if line.startswith("mmseqs search") else 1 for line in self.commands[:-1])
        print(f"molrun:progress {min(0.95, 0.95 * share / self.of):.3f} mmseqs {module}", flush=True)
        if status := subprocess.run(command, check=False).returncode:
            sys.exit(f"mmseqs {module} ended with exit status {status}")

    def run(self, queries):
        """Searches all requested databases and returns the rows of each query, by role."""
        (self.work / "queries.fasta").write_text("".join(f">{number}\n{sequence}\n" for number, sequence in queries.items()))
        roles = [role for role in self.databases if role == "main" or self.settings["env"]]
        self.of = 3 + 13 * len(roles) + 3 * (self.settings["pair"] != "none")
        self.mmseqs("createdb", self.work / "queries.fasta", self.work / "qdb", "--shuffle", "0", "--dbtype", "1", threads=False)
        return {role: self.search(role, self.databases[role], queries) for role in roles}

    def search(self, role, db, queries):
        """The steps of mmseqs_search_monomer. The environmental database is searched with the profiles from the main one."""
        query, profile, strict = self.work / ("qdb" if role == "main" else "prof_res"), self.work / "prof_res", self.settings["filter"]
        at = self.work / role
        at.mkdir()
        memory = f"{int(600 * self.settings['memory'])}M"
        self.mmseqs("search", query, db.path, at / "res", at / "tmp", *SEARCH, "--split-memory-limit", memory)
        if role == "main":
            self.mmseqs("mvdb", at / "tmp/latest/profile_1", profile, threads=False)
            self.mmseqs("lndb", self.work / "qdb_h", self.work / "prof_res_h", threads=False)
        found = at / "res"
        if db.expands:
            self.mmseqs("expandaln", query, db.sequences, found, db.part("_aln"), at / "exp", *EXPAND, *(["--expand-filter-clusters", "1", "--max-seq-id", "0.95"] if strict and role == "main" else []))
            found = at / "exp"
        self.mmseqs("align", profile if role == "main" else at / "tmp/latest/profile_1", db.sequences, found, at / "realign", *REALIGN, "--max-accept", "100000" if strict else "1000000")
        self.mmseqs("filterresult", self.work / "qdb", db.sequences, at / "realign", at / "filtered", *RESULT, "--qsc", "0.8" if strict else "-20")
        self.mmseqs("result2msa", self.work / "qdb", db.sequences, at / "filtered", at / "a3m", *MSA, "--filter-msa", "1" if strict else "0")
        self.mmseqs("unpackdb", at / "a3m", at / "rows", "--unpack-name-mode", "0", "--unpack-suffix", ".a3m")
        found = {number: records(at / "rows" / f"{key}.a3m")[1:] for key, number in enumerate(queries)}
        if role == "main" and self.settings["pair"] != "none":
            self.hits_of_species(db, at)
        shutil.rmtree(at)
        return found

    def hits_of_species(self, db, at):
        """The steps of mmseqs_search_pair before pairing, which keep only certain hits."""
        found = at / "res"
        if db.expands:
            self.mmseqs("expandaln", self.work / "qdb", db.sequences, found, db.part("_aln"), at / "all", *EXPAND, "--expand-filter-clusters", "0", "--max-seq-id", "0.95")
            found = at / "all"
        self.mmseqs("align", self.work / "prof_res", db.sequences, found, at / "certain", *PAIR)
        for path in db.path.parent.glob(db.sequences.name + "*"):
            (at / f"species{path.name[len(db.sequences.name):]}").symlink_to(path)
        for part in ("_mapping", "_taxonomy"):
            (at / f"species{part}").unlink(missing_ok=True)
            (at / f"species{part}").symlink_to(db.part(part))
        self.mmseqs("convertalis", self.work / "qdb", at / "species", at / "certain", self.work / "species.tsv", "--format-output", COLUMNS, "--db-load-mode", "2")


def row_of(length, start, query, target):
    """An A3M row from a pair of aligned segments."""
    row = "".join(t if q != "-" else t.lower() for q, t in zip(query, target))
    behind = length - (start - 1) - sum(c != "-" for c in query)
    return "-" * (start - 1) + row + "-" * behind


def paired(path, queries, complete):
    """Rows of each query, paired by index: the best hits of one species for all queries or (greedy) for at
    least two. Before release 15, pairaln of MMseqs2 has only one of these modes."""
    best = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            query, target, taxon, bits, start, aligned, hit = line.rstrip("\n").split("\t")
            if taxon != "0":
                best.setdefault(taxon, {}).setdefault(query, (float(bits), target, int(start), aligned, hit))
    least = len(queries) if complete else min(2, len(queries))
    together = sorted(((taxon, hits) for taxon, hits in best.items() if len(hits) >= least), key=lambda pair: -sum(hit[0] for hit in pair[1].values()))
    rows = {number: [] for number in queries}
    for taxon, hits in together:
        for number, sequence in queries.items():
            if number in hits:
                _, target, start, aligned, hit = hits[number]
                rows[number].append((f"{target}\t{taxon}", row_of(len(sequence), start, aligned, hit)))
            else:
                rows[number].append((f"none\t{taxon}", "-" * len(sequence)))
    return rows


def complex_of(queries, copies, alignments, pairs):
    """ColabFold's format for the alignments of a complex: the first line has the lengths and copy numbers of the
    distinct chains; then come the paired rows, with chains concatenated, and the rows of each chain padded with gaps."""
    lengths = [len(sequence) for sequence in queries.values()]
    rows = []
    if pairs and len(queries) > 1:
        query = [[(f"{101 + k}", sequence), *pairs[number]] for k, (number, sequence) in enumerate(queries.items())]
        rows += [("\t".join(head for head, _ in row), "".join(text for _, text in row)) for row in zip(*query)]
    for k, number in enumerate(queries):
        before, behind = "-" * sum(lengths[:k]), "-" * sum(lengths[k + 1:])
        rows += [(str(101 + k) if n == 0 else head, before + row + behind) for n, (head, row) in enumerate(alignments[number])]
    return f"#{','.join(map(str, lengths))}\t{','.join(map(str, copies))}\n", rows


def write(path, rows, first=""):
    path.parent.mkdir(exist_ok=True)
    path.write_text(first + "".join(f">{head}\n{row}\n" for head, row in rows), encoding="utf-8")


def warn(text):
    print(f"molrun:warning {text}", flush=True)


def names(table):
    """Some chains, by number and header."""
    shown = ", ".join(f"{row['chain']} ({row['name'][:40]})" if row["name"] else row["chain"] for row in table[:5])
    return shown + (f" and {len(table) - 5} more" if len(table) > 5 else "")


def report(out, settings, databases, all_chains, queries, found, pairs):
    """Writes alignments, tables and metrics, and warns about doubtful results."""
    table, alignments, numbers = [], {}, {sequence: number for number, sequence in queries.items()}
    (out / "predictors").mkdir()
    for k, (head, sequence) in enumerate(all_chains):
        chain, searched = f"{k + 1:03}", numbers[sequence]
        query, rows = [(head or chain, sequence)], {role: of[searched] for role, of in found.items()}
        write(out / "alignments" / f"{chain}.uniref.a3m", query + rows["main"])
        if "environmental" in rows:
            write(out / "alignments" / f"{chain}.env.a3m", query + rows["environmental"])
        alignment = Alignment(query + [row for of in rows.values() for row in of])
        write(out / "alignments" / f"{chain}.a3m", alignment.rows)
        if chain == searched:
            alignments[chain] = alignment.rows
            (out / "predictors" / f"{chain}.a3m").symlink_to(f"../alignments/{chain}.a3m")
        if pairs:
            write(out / "paired" / f"{chain}.a3m", query + pairs[searched])
        (out / "coverage").mkdir(exist_ok=True)
        positions = ["position,sequences,effective", *(f"{p + 1},{n},{e:.1f}" for p, (n, e) in enumerate(zip(alignment.counts, alignment.effective)))]
        (out / "coverage" / f"{chain}.csv").write_text("\n".join(positions) + "\n")
        table.append({
            "chain": chain, "name": head, "residues": len(sequence), "sequences": len(alignment.rows),
            "effective": round(alignment.depth, 1), "effective_of": alignment.weighed, "coverage": round(100 * alignment.coverage, 1),
            **{f"{role}_rows": len(rows[role]) for role in databases if role in rows}, **({"pairs": len(pairs[searched])} if pairs else {}),
        })
    if pairs or len(queries) == 1:
        first, rows = complex_of(queries, [sum(sequence == text for _, text in all_chains) for sequence in queries.values()], alignments, pairs)
        write(out / "complex.a3m", rows, first)
    with open(out / "chains.csv", "w", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, table[0], lineterminator="\n")
        lines.writeheader()
        lines.writerows(table)
    alone = [row for row in table if row["sequences"] == 1]
    if alone:
        warn(f"No related sequences were found for {names(alone)}: the alignment contains only the chain itself.")
    few = [row for row in table if row["sequences"] > 1 and row["effective"] < FEW]
    if few:
        warn(f"Fewer than {FEW} effective sequences: {names(few)}. Structures predicted from such a shallow alignment are often wrong.")
    if pairs and not table[0]["pairs"]:
        warn("No species has a sequence for " + ("all chains" if settings["pair"] == "complete" else "two chains") + ": no rows are paired.")
    related = [row["coverage"] for row in table if row["sequences"] > 1]
    metrics = {"sequences": min(row["sequences"] for row in table), "effective": min(row["effective"] for row in table), "databases": ", ".join(" ".join(filter(None, [databases[role].name, databases[role].about.get("release")])) for role in found)}
    if related:
        metrics["coverage"] = min(related)
    if pairs:
        metrics["pairs"] = table[0]["pairs"]
    (out / "metrics.json").write_text(json.dumps(metrics))


def main(mode, folder, fasta=None, settings=None, cpus=None, work=None, out=None):
    if mode == "check" and not pathlib.Path(folder).is_dir():  # only the cluster nodes have it, and the job will check
        print("[]")
        return
    try:
        databases = site(folder)
    except Fault as fault:
        if mode != "check":
            sys.exit(f"molrun: {str(fault)[0].upper()}{str(fault)[1:]}. Tell the administrator.")
        print(json.dumps([{"loc": ["sequences"], "msg": f"can't be searched for: {fault}. Tell the administrator", "type": "value"}]))
        return
    if mode == "probe":
        return
    all_chains = chains(fasta)
    with sys.stdin if mode == "check" else open(settings, encoding="utf-8") as source:
        settings = json.load(source)
    if len(all_chains) < 2:
        settings["pair"] = "none"  # a single chain has no partner to pair with
    faults = check(settings, databases)
    if mode == "check":
        print(json.dumps(faults))
        return
    if faults:
        sys.exit(f"molrun: The setting {faults[0]['loc'][0]} {faults[0]['msg']}.")
    queries = {}
    for k, (_, sequence) in enumerate(all_chains):
        if sequence not in queries.values():
            queries[f"{k + 1:03}"] = sequence
    search = Search(settings, databases, cpus, work)
    found = search.run(queries)
    pairs = paired(search.work / "species.tsv", queries, settings["pair"] == "complete") if settings["pair"] != "none" else None
    print("molrun:progress 0.96 alignments", flush=True)
    report(pathlib.Path(out), settings, databases, all_chains, queries, found, pairs)
    pathlib.Path(out, "search.json").write_text(json.dumps({
        "program": f"MMseqs2 {release()[0]}", "databases": [databases[role].record() for role in found],
        "settings": {name: settings[name] for name in ("pair", "env", "filter")}, "commands": search.commands,
    }, indent=1))


main(*sys.argv[1:])
