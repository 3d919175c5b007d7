// Package validator runs the programs that check settings beyond what a schema
// can say. A program reads one JSON document of settings and prints one array of
// details; or it reads a document on each line and prints an array on each line,
// in order, so that a batch needs one process.
package validator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"molrun/app/fault"
	"molrun/app/protocol"
	"molrun/app/strictjson"
)

// What validators may use.
const (
	timeLimit    = 5 * time.Second  // for 100 questions
	maxTimeLimit = 60 * time.Second // for any number of questions
	outputLimit  = 8 << 20
	atOnce       = 2
)

// Program is the validator of an algorithm.
type Program struct {
	Type, Version string // of the algorithm, for messages
	Many          bool   // it answers many questions, a line each
	Sandbox       protocol.Sandbox
	Confine       Confine // nil: it runs with all rights of this process
}

// Question is what a validator is asked about.
type Question struct {
	Argv     []string
	Files    map[string]string // paths that Argv may name
	Settings *strictjson.Value
}

// Ask returns the faults that the program finds, a list for each question; paths
// begin below the settings. An error says that the program could not be asked,
// which is no fault of the settings.
func (p *Program) Ask(ctx context.Context, questions []Question) ([][]fault.Field, error) {
	faults := make([][]fault.Field, len(questions))
	calls := p.calls(questions)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work := make(chan call)
	var first error
	var once sync.Once
	var workers sync.WaitGroup
	for range min(atOnce, len(calls)) {
		workers.Go(func() {
			for call := range work {
				answers, err := p.ask(ctx, call, call.limit())
				if err != nil {
					once.Do(func() { first = err; stop() })
					continue
				}
				for i, question := range call.questions {
					faults[question] = answers[i]
				}
			}
		})
	}
	for _, call := range calls {
		work <- call
	}
	close(work)
	workers.Wait()
	if first != nil {
		return nil, first
	}
	return faults, nil
}

// call is one process: what it runs, what it reads, for which questions.
type call struct {
	argv      []string
	files     []string // whose paths are in argv
	input     []byte
	questions []int
}

// limit is how long a call may take.
func (c *call) limit() time.Duration {
	hundreds := (len(c.questions) + 99) / 100
	return min(timeLimit*time.Duration(hundreds), maxTimeLimit)
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
		c.input = append(strictjson.AppendPlain(c.input, q.Settings), '\n')
	}
	return calls
}

// named returns the files that arguments name.
func named(files map[string]string, argv []string) (paths []string) {
	for _, path := range files {
		if slices.ContainsFunc(argv, func(arg string) bool { return strings.Contains(arg, path) }) {
			paths = append(paths, path)
		}
	}
	return paths
}

// ask runs one call. Its error names the algorithm, as the cause for the log
// and as a sentence for the caller.
func (p *Program) ask(ctx context.Context, c call, limit time.Duration) ([][]fault.Field, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	output, err := p.run(timed, c)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	fail := func(code fault.Code, message string) error {
		return &fault.Error{Code: code, Message: message, Err: fmt.Errorf("validator of %s %s: %w", p.Type, p.Version, err)}
	}
	if timed.Err() != nil {
		err = fmt.Errorf("no answer after %v", limit)
		return nil, fail(fault.Unavailable, fmt.Sprintf("checking the settings of %s took longer than %v; try again later", p.Type, limit))
	}
	answers, parseErr := parseAnswers(output, len(c.questions), p.Many)
	if err != nil && (parseErr != nil || !anyFault(answers)) {
		return nil, fail(fault.Unavailable, fmt.Sprintf("the program that checks the settings of %s failed; ask an administrator", p.Type))
	}
	if err = parseErr; err != nil {
		return nil, fail(fault.Internal, fmt.Sprintf("the program that checks the settings of %s gave no usable answer; ask an administrator", p.Type))
	}
	return answers, nil
}

func anyFault(answers [][]fault.Field) bool {
	return slices.ContainsFunc(answers, func(f []fault.Field) bool { return len(f) > 0 })
}
