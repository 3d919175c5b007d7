package kv

import (
	"fmt"
	"strings"
)

// Problem is one finding of a check.
type Problem struct {
	Text string `json:"text"`

	// Derivable problems can be repaired from records that are sound.
	Derivable bool `json:"derivable"`
}

// maxProblems bounds the list: a damaged index alone may give one problem per
// record.
const maxProblems = 200

// Findings are the problems of a check, only the first of them in words.
type Findings struct {
	Count     int // all of them
	Derivable int // of these, Repair fixes
	Problems  []Problem
}

// Addf adds a problem that only a backup fixes.
func (f *Findings) Addf(format string, args ...any) { f.addFinding(false, format, args) }

// Derivef adds a problem with something that follows from records.
func (f *Findings) Derivef(format string, args ...any) { f.addFinding(true, format, args) }

func (f *Findings) addFinding(derivable bool, format string, args []any) {
	f.Count++
	if derivable {
		f.Derivable++
	}
	if len(f.Problems) < maxProblems {
		f.Problems = append(f.Problems, Problem{fmt.Sprintf(format, args...), derivable})
	}
}

// Err returns the first problems as an error, nil if there are none.
func (f *Findings) Err() error {
	if f.Count == 0 {
		return nil
	}
	var lines []string
	for _, one := range f.Problems[:min(20, len(f.Problems))] {
		lines = append(lines, one.Text)
	}
	return fmt.Errorf("the database disagrees with itself in %d places; restore a backup:\n%s",
		f.Count, strings.Join(lines, "\n"))
}
