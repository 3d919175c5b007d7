// Package validator runs programs that check what a schema cannot express. A program
// reads one JSON document of settings and prints one array of details. Alternatively, it
// reads one document per line and prints one array per line, in the same order, so that a
// batch needs only one process. The package also queries the versions of programs and
// runs self-tests.
package validator

import (
	"slices"
	"strings"
	"time"

	"molrun/app/base/strictjson"
	"molrun/app/task/protocol"
)

// Limits for validators.
const (
	defaultTimeout = 5 * time.Second  // per 100 questions
	maxTimeLimit   = 60 * time.Second // per call; a longer timeout for 100 questions takes precedence
	outputLimit    = 8 << 20
)

// Program is the validator of an algorithm.
type Program struct {
	Type, Version string // algorithm, for messages
	Many          bool   // accepts many questions, one per line
	Sandbox       protocol.Sandbox
}

// Input is one input for a validator.
type Input struct {
	Argv     []string
	Files    map[string][]string // paths that Argv can contain
	Settings *strictjson.Value
}

// call is one run of the program: its arguments, its input, and the questions that it
// covers.
type call struct {
	argv      []string
	files     []string // files whose paths are in argv
	input     []byte
	longest   int // size in bytes of the longest document in input
	questions []int
}

// limit returns the time limit of a call, given the timeout for 100 questions.
func (c *call) limit(timeout time.Duration) time.Duration {
	hundreds := time.Duration(len(c.questions)+99) / 100
	return min(hundreds*timeout, max(timeout, maxTimeLimit))
}

// calls groups questions into calls: one call per question or, if the program accepts
// many, one call for all questions with the same arguments.
func (p *Program) calls(questions []Input) []call {
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

// named returns the files whose paths occur in the arguments.
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
