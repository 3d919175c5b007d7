package md

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Letters holds the one-letter codes of the twenty amino acids, in the order of
// residues.csv, which is alphabetical. The index of a letter is the type of its bead.
const Letters = "ACDEFGHIKLMNPQRSTVWY"

// residue holds the parameters of one amino acid.
type residue struct {
	code   string  // three-letter code
	mass   float64 // g/mol, within a chain
	lambda float64 // stickiness, 0 to 1
	sigma  float64 // diameter, nm
	charge float64 // elementary charges; pH-dependent for histidine
}

//go:embed residues.csv
var residuesCSV string

// residues is the CALVADOS 2 table, in the order of Letters.
var residues = mustReadResidues(residuesCSV)

func mustReadResidues(text string) [len(Letters)]residue {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != len(Letters)+1 {
		panic(fmt.Sprintf("residues.csv: %d rows, %v", len(rows), err))
	}
	var table [len(Letters)]residue
	for i, row := range rows[1:] {
		if row[0] != Letters[i:i+1] {
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

// Code returns the three-letter code of a letter in Letters.
func Code(letter byte) string { return residues[strings.IndexByte(Letters, letter)].code }

// LetterOf returns the letter of a three-letter code in upper case; ok is false if there
// is none.
func LetterOf(code string) (letter byte, ok bool) {
	t := slices.IndexFunc(residues[:], func(r residue) bool { return r.code == code })
	if t < 0 {
		return 0, false
	}
	return Letters[t], true
}

// CubedDiameters returns the sum of the cubed bead diameters of a chain, in nm³, a
// measure of the volume that its beads occupy.
func CubedDiameters(sequence string) float64 {
	sum := 0.0
	for _, letter := range sequence {
		sigma := residues[strings.IndexRune(Letters, letter)].sigma
		sum += sigma * sigma * sigma
	}
	return sum
}
