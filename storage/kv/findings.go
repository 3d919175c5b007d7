package kv

import (
	"fmt"
	"strings"
)

// Problem is an issue reported by a check.
type Problem struct {
	Text string `json:"text"`

	// Derivable problems can be repaired from intact records.
	Derivable bool `json:"derivable"`
}

// maxProblems limits the list: a damaged index alone can cause one problem per record.
const maxProblems = 200

// ProblemList collects the problems of a check. It counts all of them but keeps only the
// first maxProblems.
type ProblemList struct {
	Count     int // number of problems
	Derivable int // number of problems that Repair fixes
	Problems  []Problem
}

// Addf adds a problem that only restoring a backup fixes.
func (f *ProblemList) Addf(format string, args ...any) { f.addFinding(false, format, args) }

// AddDerivablef adds a problem with data derived from records.
func (f *ProblemList) AddDerivablef(format string, args ...any) { f.addFinding(true, format, args) }

func (f *ProblemList) addFinding(derivable bool, format string, args []any) {
	f.Count++
	if derivable {
		f.Derivable++
	}
	if len(f.Problems) < maxProblems {
		f.Problems = append(f.Problems, Problem{fmt.Sprintf(format, args...), derivable})
	}
}

// Err returns the first problems as an error, or nil if there are none.
func (f *ProblemList) Err() error {
	if f.Count == 0 {
		return nil
	}
	var lines []string
	for _, one := range f.Problems[:min(20, len(f.Problems))] {
		lines = append(lines, one.Text)
	}
	return fmt.Errorf("the database has %d inconsistencies; restore a backup:\n%s",
		f.Count, strings.Join(lines, "\n"))
}
