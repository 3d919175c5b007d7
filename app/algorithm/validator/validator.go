// Package validator runs the programs that check settings beyond what a schema
// can say. A program reads one JSON document of settings and prints one array of
// details; or it reads a document on each line and prints an array on each line,
// in order, so that a batch needs one process. The package also asks programs for
// their versions and tests whether they work.
package validator

import (
	"slices"
	"strings"
	"time"

	"molrun/app/base/strictjson"
	"molrun/app/task/protocol"
)

// What validators may use.
const (
	defaultTimeout = 5 * time.Second  // for 100 questions
	maxTimeLimit   = 60 * time.Second // for any number of questions, unless 100 may take longer
	outputLimit    = 8 << 20
)

// Program is the validator of an algorithm.
type Program struct {
	Type, Version string // of the algorithm, for messages
	Many          bool   // it answers many questions, a line each
	Sandbox       protocol.Sandbox
}

// Question is what a validator is asked about.
type Question struct {
	Argv     []string
	Files    map[string][]string // paths that Argv may name
	Settings *strictjson.Value
}

// call is one run of the program: its arguments, what it reads, for which questions.
type call struct {
	argv      []string
	files     []string // whose paths are in argv
	input     []byte
	longest   int // bytes of a document in input
	questions []int
}

// limit is how long a call may take if 100 questions may take the timeout.
func (c *call) limit(timeout time.Duration) time.Duration {
	hundreds := time.Duration(len(c.questions)+99) / 100
	return min(hundreds*timeout, max(timeout, maxTimeLimit))
}

// calls makes one call of each question, or of all questions that have the same
// arguments.
func (p *Program) calls(questions []Question) []call {
	var calls []call
	sameArguments := map[string]int{}
	for i, q := range questions {
		key := strings.Join(q.Argv, "\x00")
		at, known := sameArguments[key]
		if !known || !p.Many {
			at = len(calls)
			sameArguments[key] = at
			calls = append(calls, call{argv: q.Argv, files: named(q.Files, q.Argv)})
		}
		c := &calls[at]
		c.questions = append(c.questions, i)
		before := len(c.input)
		c.input = append(strictjson.AppendPlain(c.input, q.Settings), '\n')
		c.longest = max(c.longest, len(c.input)-before)
	}
	return calls
}

// named returns the files that arguments name.
func named(files map[string][]string, argv []string) (paths []string) {
	for _, all := range files {
		for _, path := range all {
			if slices.ContainsFunc(argv, func(arg string) bool { return strings.Contains(arg, path) }) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}
