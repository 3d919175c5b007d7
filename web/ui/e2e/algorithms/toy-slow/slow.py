"""Writes partial files, waits for another file, then completes them and exits."""

import os
import sys
import time

gate, out = sys.argv[1:]
columns = ["group_PDB", "id", "type_symbol", "label_atom_id", "label_comp_id", "label_asym_id", "label_entity_id", "label_seq_id", "Cartn_x", "Cartn_y", "Cartn_z"]
atoms = "".join(f"ATOM {i} C CA ALA A 1 {i} {3.8 * i} 0 0\n" for i in range(1, 9))
svg = '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{0}"><style>rect {{ fill: #0072b2 }}</style><rect width="{0}" height="{0}"/></svg>'
# The initial and the final content of each file.
files = {
    "model.cif": ("data_model\nloop_\n_atom_si", "data_model\nloop_\n" + "".join(f"_atom_site.{c}\n" for c in columns) + atoms),
    "empty.fasta": ("", ">first\nMKTAYIAKQR\n>second\nMKTAYIAKQR\n"),
    "aligned.fasta": (">first\nMKTA", ">first\nMKTAYIAKQR\n>second\nMKTAYIAKQR\n"),
    "series.csv": ("time,ener", "time,energy\n" + "".join(f"{i},{i * i % 7}\n" for i in range(20))),
    "table.csv": ("", "name,score\na,1\nb,2\n"),
    "matrix.json": ('{"pae": [[0, 1], [', '{"pae": [[0, 1], [1, 0]]}'),
    "tree.nwk": ("((a:1,b:1", "((a:1,b:1):1,c:2);\n"),
    "image.SVG": (svg.format(10), svg.format(50)),
    "half.svg": (svg.format(50)[:60], svg.format(50)),
    "text.txt": ("the first line\n", "the first line\nthe last line\n"),
}


def write(part):
    for name, parts in files.items():
        with open(f"{out}/{name}", "w") as f:
            f.write(parts[part])


write(0)
while not os.path.exists(gate):
    time.sleep(0.05)
write(1)
with open(out + "/metrics.json", "w") as f:
    f.write('{"score": 7.5}')
