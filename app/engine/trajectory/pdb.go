package trajectory

import (
	"fmt"

	"molrun/app/engine/md"
)

// PDB returns one structure with its bonds, given the residues of each chain and the
// positions of all beads in Å.
func PDB(chains []string, x []md.Vec) []byte {
	b := appendAtoms(nil, chains, x)
	b = appendBonds(b, chains)
	return append(b, "END\n"...)
}

// ModelsPDB returns several structures as models.
func ModelsPDB(chains []string, models [][]md.Vec) []byte {
	var b []byte
	for k, x := range models {
		b = fmt.Appendf(b, "MODEL     %4d\n", k+1)
		b = appendAtoms(b, chains, x)
		b = append(b, "ENDMDL\n"...)
	}
	b = appendBonds(b, chains)
	return append(b, "END\n"...)
}

// chainNames are the chain names, reused from the start after the last.
const chainNames = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// ChainName returns the alphabetic name of a chain, counted from 0: A to Z, AA to ZZ and
// so on.
func ChainName(chain int) string {
	name := string(rune('A' + chain%26))
	if chain < 26 {
		return name
	}
	return ChainName(chain/26-1) + name
}

// appendAtoms writes one ATOM record per bead. If there are several chains, each ends
// with a TER record, which has no serial number, and has a segment identifier to
// distinguish it from chains with the same name.
func appendAtoms(b []byte, chains []string, x []md.Vec) []byte {
	bead := 0
	for c, residues := range chains {
		segment := ""
		if len(chains) > 1 {
			segment = ChainName(c)
		}
		for i := range residues {
			at := x[bead]
			bead++
			b = fmt.Appendf(b, "ATOM  %5d  CA  %3s %c%4d    %s%s%s%6.2f%6.2f      %-4s%2s  \n",
				bead%100_000, md.Code(residues[i]), chainNames[c%len(chainNames)], i+1, column(at.X), column(at.Y), column(at.Z), 1.0, 0.0, segment, "C")
		}
		if len(chains) > 1 {
			b = append(b, "TER\n"...)
		}
	}
	return b
}

// column formats a coordinate in eight characters, with as many decimals as fit: three,
// or fewer for chains that extend over more than 100 nm.
func column(v float64) string {
	for decimals := 3; ; decimals-- {
		if text := fmt.Sprintf("%8.*f", decimals, v); len(text) == 8 || decimals == 0 {
			return text
		}
	}
}

// appendBonds writes the CONECT records of the chains.
func appendBonds(b []byte, chains []string) []byte {
	before := 0
	for _, residues := range chains {
		for i := 1; i <= len(residues); i++ {
			b = fmt.Appendf(b, "CONECT%5d", (before+i)%100_000)
			if i > 1 {
				b = fmt.Appendf(b, "%5d", (before+i-1)%100_000)
			}
			if i < len(residues) {
				b = fmt.Appendf(b, "%5d", (before+i+1)%100_000)
			}
			b = append(b, '\n')
		}
		before += len(residues)
	}
	return b
}
