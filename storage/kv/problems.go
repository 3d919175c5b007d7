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

// Problems are the findings of a check, only the first of them in words.
type Problems struct {
	Count     int // all of them
	Derivable int // of these, Repair fixes
	First     []Problem
}

// Addf adds a problem that only a backup fixes.
func (p *Problems) Addf(format string, args ...any) { p.add(false, format, args) }

// Derivef adds a problem with something that follows from records.
func (p *Problems) Derivef(format string, args ...any) { p.add(true, format, args) }

func (p *Problems) add(derivable bool, format string, args []any) {
	p.Count++
	if derivable {
		p.Derivable++
	}
	if len(p.First) < maxProblems {
		p.First = append(p.First, Problem{fmt.Sprintf(format, args...), derivable})
	}
}

// Err returns the first problems as an error, nil if there are none.
func (p *Problems) Err() error {
	if p.Count == 0 {
		return nil
	}
	var lines []string
	for _, one := range p.First[:min(20, len(p.First))] {
		lines = append(lines, one.Text)
	}
	return fmt.Errorf("the database disagrees with itself in %d places; restore a backup:\n%s",
		p.Count, strings.Join(lines, "\n"))
}
