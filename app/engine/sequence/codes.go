package sequence

import "strings"

// Letters are the twenty amino acids in one-letter code.
const Letters = "ACDEFGHIKLMNPQRSTVWY"

// codes are the three-letter codes in the order of Letters.
var codes = [len(Letters)]string{
	"ALA", "CYS", "ASP", "GLU", "PHE", "GLY", "HIS", "ILE", "LYS", "LEU",
	"MET", "ASN", "PRO", "GLN", "ARG", "SER", "THR", "VAL", "TRP", "TYR",
}

// Code returns the three-letter code of one of Letters.
func Code(letter byte) string { return codes[strings.IndexByte(Letters, letter)] }

// leastCodes is how many three-letter codes in a row are no accident: all of
// their letters stand for amino acids, too.
const leastCodes = 4

// fromCodes translates a sequence of three-letter codes, as in Asp-Ser-His; ""
// for any other.
func fromCodes(letters string) string {
	letters = strings.ReplaceAll(letters, "-", "")
	if len(letters)%3 != 0 || len(letters) < 3*leastCodes {
		return ""
	}
	var short strings.Builder
	for k := 0; k < len(letters); k += 3 {
		t := withCode(letters[k : k+3])
		if t < 0 {
			return ""
		}
		short.WriteByte(Letters[t])
	}
	return short.String()
}

// withCode is the index of the amino acid with a three-letter code, or -1.
func withCode(code string) int {
	for t := range codes {
		if strings.EqualFold(codes[t], code) {
			return t
		}
	}
	return -1
}
