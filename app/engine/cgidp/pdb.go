package cgidp

import (
	"fmt"

	"molrun/app/engine/cgidp/md"
	"molrun/app/engine/cgidp/sequence"
)

// topologyPDB is one structure with its bonds.
func topologyPDB(residues string, x []md.Vec) []byte {
	b := appendAtoms(nil, residues, x)
	b = appendBonds(b, len(residues))
	return append(b, "END\n"...)
}

// ensemblePDB holds several structures as models.
func ensemblePDB(residues string, models [][]md.Vec) []byte {
	var b []byte
	for k, x := range models {
		b = fmt.Appendf(b, "MODEL     %4d\n", k+1)
		b = appendAtoms(b, residues, x)
		b = append(b, "ENDMDL\n"...)
	}
	b = appendBonds(b, len(residues))
	return append(b, "END\n"...)
}

// appendAtoms writes one ATOM record per bead for positions in Å.
func appendAtoms(b []byte, residues string, x []md.Vec) []byte {
	for i := range x {
		b = fmt.Appendf(b, "ATOM  %5d  CA  %3s A%4d    %s%s%s%6.2f%6.2f          %2s  \n",
			i+1, sequence.Code(residues[i]), i+1, column(x[i].X), column(x[i].Y), column(x[i].Z), 1.0, 0.0, "C")
	}
	return b
}

// column writes a coordinate in eight characters, with as many decimals as fit:
// three, or fewer for chains that extend over more than 100 nm.
func column(v float64) string {
	for decimals := 3; ; decimals-- {
		if text := fmt.Sprintf("%8.*f", decimals, v); len(text) == 8 || decimals == 0 {
			return text
		}
	}
}

// appendBonds writes the CONECT records of a chain.
func appendBonds(b []byte, beads int) []byte {
	for i := 1; i <= beads; i++ {
		b = fmt.Appendf(b, "CONECT%5d", i)
		if i > 1 {
			b = fmt.Appendf(b, "%5d", i-1)
		}
		if i < beads {
			b = fmt.Appendf(b, "%5d", i+1)
		}
		b = append(b, '\n')
	}
	return b
}
