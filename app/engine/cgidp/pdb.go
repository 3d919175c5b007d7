package cgidp

import "fmt"

// appendAtoms writes one ATOM record per bead for positions in Å.
func appendAtoms(b []byte, types []uint8, x []vec) []byte {
	for i, t := range types {
		b = fmt.Appendf(b, "ATOM  %5d  CA  %3s A%4d    %s%s%s%6.2f%6.2f          %2s  \n",
			i+1, residues[t].three, i+1, column(x[i].X), column(x[i].Y), column(x[i].Z), 1.0, 0.0, "C")
	}
	return b
}

// column is a coordinate of eight characters, with as many decimals as fit: three
// but for chains stretched over more than 100 nm.
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

// topologyPDB is one structure with its bonds.
func topologyPDB(types []uint8, x []vec) []byte {
	b := appendAtoms(nil, types, x)
	b = appendBonds(b, len(types))
	return append(b, "END\n"...)
}

// ensemblePDB holds several structures as models.
func ensemblePDB(types []uint8, models [][]vec) []byte {
	var b []byte
	for k, x := range models {
		b = fmt.Appendf(b, "MODEL     %4d\n", k+1)
		b = appendAtoms(b, types, x)
		b = append(b, "ENDMDL\n"...)
	}
	b = appendBonds(b, len(types))
	return append(b, "END\n"...)
}
