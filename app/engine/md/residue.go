package md

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

// residueLetters are the twenty amino acids in the order of residues.csv, which
// is alphabetical. The index of a letter is the type of its bead.
const residueLetters = "ACDEFGHIKLMNPQRSTVWY"

// residue holds the parameters of one amino acid.
type residue struct {
	mass   float64 // g/mol, within a chain
	lambda float64 // stickiness, 0 to 1
	sigma  float64 // diameter, nm
	charge float64 // elementary charges; that of histidine depends on pH
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
		table[i] = residue{number[0], number[1], number[2], number[3]}
	}
	return table
}

// CubedDiameters is the sum of the cubed diameters of a chain's beads, in nm³: what places for
// them take up.
func CubedDiameters(sequence string) float64 {
	sum := 0.0
	for _, letter := range sequence {
		sigma := residues[strings.IndexRune(residueLetters, letter)].sigma
		sum += sigma * sigma * sigma
	}
	return sum
}
