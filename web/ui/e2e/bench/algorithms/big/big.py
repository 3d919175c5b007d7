"""Writes a large file of a given kind, or prints many lines."""

import math
import random
import sys
import time

kind, size, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
random.seed(1)
backbone = (("N", 1.55, -0.49, -0.9), ("CA", 2.28, 0, 0), ("C", 1.66, 0.46, 1.1), ("O", 1.9, 0.72, 2.3), ("CB", 3.3, 0.1, -0.4))


def helix(i, bend=0.0):
    """Yields the atoms of residue i of a bent helix, split into adjacent segments of 100 residues."""
    coil, k = divmod(i, 100)
    for name, radius, turn, rise in backbone:
        a = math.radians(100) * k + turn
        z = 1.5 * k + rise
        yield name, radius * math.cos(a) + 11 * (coil % 30) + bend * z * z / 900, radius * math.sin(a) + 11 * (coil // 30), z


def pdb(f, residues, bend=0.0):
    n = 0
    for i in range(residues):
        for name, x, y, z in helix(i, bend):
            n += 1
            f.write(f"ATOM  {n:5d}  {name:<3s} ALA A{i + 1:4d}    {x:8.3f}{y:8.3f}{z:8.3f}  1.00{50 + i % 50:6.2f}          {name[0]:>2s}\n")


def cif(f, residues):
    """Writes mmCIF, since PDB is limited to 99,999 atoms, with chains of 500 residues."""
    f.write("data_big\nloop_\n" + "".join(f"_atom_site.{c}\n" for c in ("group_PDB", "id", "type_symbol", "label_atom_id", "label_comp_id", "label_asym_id", "label_entity_id", "label_seq_id", "Cartn_x", "Cartn_y", "Cartn_z", "auth_asym_id", "auth_seq_id", "B_iso_or_equiv", "occupancy")))
    n = 0
    for i in range(residues):
        chain, k = divmod(i, 500)
        for name, x, y, z in helix(i):
            n += 1
            f.write(f"ATOM {n} {name[0]} {name} ALA C{chain} 1 {k + 1} {x:.3f} {y:.3f} {z:.3f} C{chain} {k + 1} 50 1\n")


def tree(leaves):
    """Returns a balanced binary tree."""
    if leaves == 1:
        return f"taxon{random.randrange(10**9)}:0.{random.randrange(10**4):04d}"
    half = leaves // 2
    return f"({tree(half)},{tree(leaves - half)}):0.{random.randrange(10**4):04d}"


def lines(number, per_second=0):
    began = time.time()
    for i in range(number):
        print(f"step {i:9d}  E = {-812.4 + i % 97:9.3f} kJ/mol  T = {293 + i % 7} K  the rest of a line as programs print it", flush=per_second > 0 and i % 20 == 0)
        if per_second and i % 20 == 0:
            time.sleep(max(0, began + i / per_second - time.time()))


def write(name, fill):
    with open(f"{out}/{name}", "w") as f:
        fill(f)


if kind == "chain":
    write("model.pdb", lambda f: (pdb(f, size), f.write("END\n")))
elif kind == "assembly":
    write("assembly.cif", lambda f: cif(f, size // len(backbone)))
elif kind == "motion":
    def frames(f):
        for m in range(100):
            f.write(f"MODEL     {m + 1:4d}\n")
            pdb(f, size, math.sin(m / 8))
            f.write("ENDMDL\n")
        f.write("END\n")
    write("motion.pdb", frames)
elif kind == "table":
    write("table.csv", lambda f: (f.write("name,affinity,rmsd,weight,charge,note\n"), f.writelines(f"ligand-{i},{random.gauss(-7, 1):.3f},{random.random():.3f},{random.gauss(350, 60):.1f},{i % 5 - 2},row {i} of many\n" for i in range(size))))
elif kind == "alignment":
    write("alignment.fasta", lambda f: f.writelines(f">sequence{i} of many\n" + "".join(random.choices("ACDEFGHIKLMNPQRSTVWY-", k=1000)) + "\n" for i in range(size)))
elif kind == "tree":
    write("tree.nwk", lambda f: f.write(tree(size) + ";\n"))
elif kind == "matrix":
    write("matrix.csv", lambda f: f.writelines(",".join(str(abs(i - j) % 31) for j in range(size)) + "\n" for i in range(size)))
elif kind == "lines":
    lines(size)
else:
    lines(size, 2000)
