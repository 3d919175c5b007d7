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

func checkLength(s source, name string, n int) []Fault {
	switch {
	case n == 0:
		return []Fault{faultf(s.loc, faultSequence, "sequence %q is empty; give it %d to %d residues, or remove it", name, minResidues, maxResidues)}
	case n < minResidues:
		return []Fault{faultf(s.loc, faultSequence, "sequence %q has %s; it needs at least %d", name, plural(n, "residue"), minResidues)}
	case n > maxResidues:
		return []Fault{faultf(s.loc, faultSequence, "sequence %q has %d residues; at most %d can be simulated: give its disordered regions as sequences of their own",
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

// checkName returns what is wrong with a name and what to do, or "".
func checkName(name string) string {
	switch {
	case name == "":
		return "is empty; write at least one letter"
	case len(name) > maxNameLength:
		return fmt.Sprintf("is too long; use at most %d characters", maxNameLength)
	case strings.HasPrefix(name, "."):
		return "begins with a dot; begin it with a letter or digit"
	case slices.Contains(reservedNames, strings.ToLower(name)):
		return "is that of a result file; choose another"
	}
	for _, c := range name {
		if c >= 128 || !isNameByte(byte(c)) {
			return fmt.Sprintf("has the character %q; use only the letters A to Z, digits, '_', '.' and '-'", c)
		}
	}
	return ""
}
