package trajectory

import (
	"testing"

	"molrun/app/engine/md"
	"molrun/app/test/must"
)

func TestTopologyPDB(t *testing.T) {
	x := []md.Vec{{X: -1.2345, Y: 22.5, Z: 333.3336}, {}, {X: -999.9999, Y: 1234.5678, Z: -2345.678}}
	want := "" +
		"ATOM      1  CA  ASP A   1      -1.234  22.500 333.334  1.00  0.00           C  \n" +
		"ATOM      2  CA  TRP A   2       0.000   0.000   0.000  1.00  0.00           C  \n" +
		"ATOM      3  CA  GLY A   3    -1000.001234.568-2345.68  1.00  0.00           C  \n" +
		"CONECT    1    2\n" +
		"CONECT    2    1    3\n" +
		"CONECT    3    2\n" +
		"END\n"
	must.Equal(t, "topology", string(PDB([]string{"DWG"}, x)), want)
}

func TestEnsemblePDB(t *testing.T) {
	x := []md.Vec{{X: 1, Y: 2, Z: 3}, {X: 4, Y: 5, Z: 6}}
	want := "" +
		"MODEL        1\n" +
		"ATOM      1  CA  ALA A   1       1.000   2.000   3.000  1.00  0.00           C  \n" +
		"ATOM      2  CA  CYS A   2       4.000   5.000   6.000  1.00  0.00           C  \n" +
		"ENDMDL\n" +
		"MODEL        2\n" +
		"ATOM      1  CA  ALA A   1       1.000   2.000   3.000  1.00  0.00           C  \n" +
		"ATOM      2  CA  CYS A   2       4.000   5.000   6.000  1.00  0.00           C  \n" +
		"ENDMDL\n" +
		"CONECT    1    2\n" +
		"CONECT    2    1\n" +
		"END\n"
	must.Equal(t, "ensemble", string(ModelsPDB([]string{"AC"}, [][]md.Vec{x, x})), want)
}
