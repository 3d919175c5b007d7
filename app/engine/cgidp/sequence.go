package cgidp

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of sequences and their names.
const (
	maxSequences  = 64
	minResidues   = 5
	maxResidues   = 2000
	maxNameLength = 64

	// shownPositions is how many wrong characters of a sequence get a fault each.
	shownPositions = 5
)

// Sequence is one chain to simulate, with the settings that depend on its length.
type Sequence struct {
	Name       string // unique; the folder of its results
	Residues   string // one-letter code, upper case
	Steps      int64  // per replica, equilibration included
	FrameEvery int64  // steps between frames of the trajectory
	Warnings   []string
}

// source is a record with the place it came from.
type source struct {
	record
	index int // among the sequences as given
	loc   []any
}

// checkLetters returns the faults of one sequence.
func checkLetters(s source, name string) []Fault {
	var faults []Fault
	position, wrong := 0, 0
	for _, c := range s.letters {
		position++
		if c < 128 && strings.IndexByte(residueLetters, byte(c)) >= 0 {
			continue
		}
		if wrong++; wrong <= shownPositions {
			faults = append(faults, faultf(s.loc, faultSequence, "sequence %q, position %d: %q is not an amino acid; %s",
				name, position, c, hint(c)))
		}
	}
	if wrong > shownPositions {
		faults = append(faults, faultf(s.loc, faultSequence, "sequence %q: %d more characters are not amino acids",
			name, wrong-shownPositions))
	}
	return append(faults, checkLength(s, name, position)...)
}

func checkLength(s source, name string, n int) []Fault {
	switch {
	case n == 0:
		return []Fault{faultf(s.loc, faultSequence, "sequence %q is empty; give it at least %d residues", name, minResidues)}
	case n < minResidues:
		return []Fault{faultf(s.loc, faultSequence, "sequence %q has %d residues; it needs at least %d", name, n, minResidues)}
	case n > maxResidues:
		return []Fault{faultf(s.loc, faultSequence, "sequence %q has %d residues; at most %d can be simulated: take its disordered regions one by one",
			name, n, maxResidues)}
	}
	return nil
}

// defaultName is the name of the sequence at an index if nothing else names it.
func defaultName(id string, index int) string {
	if id != "" {
		return id
	}
	return fmt.Sprintf("seq%d", index+1)
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '.' || c == '-'
}

// reservedNames are taken by files beside the folders of the sequences.
var reservedNames = []string{metricsFile, resultsFile, "log"}

// checkName returns what is wrong with a name, or "".
func checkName(name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case len(name) > maxNameLength:
		return fmt.Sprintf("the name is longer than %d characters", maxNameLength)
	case strings.HasPrefix(name, "."):
		return "a name must not begin with a dot"
	case slices.Contains(reservedNames, strings.ToLower(name)):
		return "this name is taken by a result file"
	}
	for _, c := range name {
		if c >= 128 || !isNameByte(byte(c)) {
			return fmt.Sprintf("%q is not allowed; use letters, digits, '_', '.' and '-'", c)
		}
	}
	return ""
}
