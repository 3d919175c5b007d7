package cgidp

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

// residueLetters are the twenty amino acids in the order of residues.csv, which
// is that of the alphabet. The place of a letter is the type of its bead.
const residueLetters = "ACDEFGHIKLMNPQRSTVWY"

// residue holds the parameters of one amino acid.
type residue struct {
	three  string  // three-letter name
	mass   float64 // g/mol, as part of a chain
	lambda float64 // stickiness, 0 to 1
	sigma  float64 // diameter, nm
	charge float64 // elementary charges; histidine's depends on pH
}

//go:embed residues.csv
var residuesCSV string

// residues is the table of CALVADOS 2, in the order of residueLetters.
var residues = mustReadResidues(residuesCSV)

func mustReadResidues(text string) [len(residueLetters)]residue {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != len(residueLetters)+1 {
		panic(fmt.Sprintf("residues.csv: %d rows, %v", len(rows), err))
	}
	var table [len(residueLetters)]residue
	for i, row := range rows[1:] {
		if row[0] != residueLetters[i:i+1] {
			panic("residues.csv: unexpected order at " + row[0])
		}
		var number [4]float64
		for k := range number {
			if number[k], err = strconv.ParseFloat(row[2+k], 64); err != nil {
				panic("residues.csv: " + err.Error())
			}
		}
		table[i] = residue{row[1], number[0], number[1], number[2], number[3]}
	}
	return table
}

// hydropathy is the scale of Kyte and Doolittle (J. Mol. Biol. 1982, 157, 105)
// in the order of residueLetters.
var hydropathy = [len(residueLetters)]float64{
	1.8, 2.5, -3.5, -3.5, 2.8, -0.4, -3.2, 4.5, -3.9, 3.8,
	1.9, -3.5, -1.6, -3.5, -4.5, -0.8, -0.7, 4.2, -0.9, -1.3,
}
