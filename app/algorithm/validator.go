package algorithm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"molrun/app/fault"
	"molrun/app/strictjson"
	"molrun/app/tomltree"
)

// What a validator may use.
const (
	validatorTime    = 5 * time.Second  // for 100 rows
	validatorMaxTime = 60 * time.Second // for any number of rows
	validatorOutput  = 8 << 20
	validatorsAtOnce = 2
	maxDetailText    = 2000
)

// readValidator is [validate]: a program that checks what a schema cannot say. It
// reads one JSON document of settings and prints one array of details. With
// many it reads one document a line and prints one array a line, in order, so
// that a batch needs one process. With always it is asked although the schema
// found faults, and reads the settings as sent.
type validator struct {
	command      []argument
	many, always bool
}

// ValidatorRow is what a validator is asked about.
type ValidatorRow struct {
	Normalized json.RawMessage // or as sent, of faulty settings
	Paths      Paths           // only Files and Program
}

func readValidator(r *tomltree.Reader, a *File, root *tomltree.Node) *validator {
	t := r.Table(root, "validate")
	if t == nil {
		return nil
	}
	r.Known(t, "[validate]", []string{"command", "many", "always"})
	return &validator{
		command: readCommand(r, a, t, []string{"settings", "files", "molrun"}),
		many:    r.Flag(t, "many"),
		always:  r.Flag(t, "always"),
	}
}

// HasValidator reports whether settings want RunValidator after CheckSettings.
func (a *File) HasValidator() bool { return a.validator != nil }

// ValidatesFaulty reports whether the validator also reads settings in which the
// schema found faults.
func (a *File) ValidatesFaulty() bool { return a.validator != nil && a.validator.always }

// RunValidator gives the faults that the algorithm's own program finds, a
// list for each row; paths begin below the settings. An error says that the
// program could not be asked, which is no fault of the settings. The program runs
// confined; nil is with all rights of this process.
func (a *File) RunValidator(ctx context.Context, confine Confine, rows []ValidatorRow) ([][]fault.Field, error) {
	faults := make([][]fault.Field, len(rows))
	if a.validator == nil || len(rows) == 0 {
		return faults, nil
	}
	calls, err := a.validatorCalls(rows)
	if err != nil {
		return nil, &fault.Error{Code: fault.Internal, Message: "the settings could not be checked", Err: fmt.Errorf("validator of %s %s: %w", a.Type, a.Version, err)}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work := make(chan validatorCall)
	var first error
	var once sync.Once
	var workers sync.WaitGroup
	for range min(validatorsAtOnce, len(calls)) {
		workers.Go(func() {
			for call := range work {
				answers, err := a.ask(ctx, confine, call, call.limit())
				if err != nil {
					once.Do(func() { first = err; stop() })
					continue
				}
				for i, row := range call.rows {
					faults[row] = answers[i]
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

// validatorCall is one process: what it runs, what it reads, for which rows.
type validatorCall struct {
	argv  []string
	files []string // whose paths are in argv
	input []byte
	rows  []int
}

// limit is how long a call may take.
func (c *validatorCall) limit() time.Duration {
	hundreds := (len(c.rows) + 99) / 100
	return min(validatorTime*time.Duration(hundreds), validatorMaxTime)
}

// validatorCalls makes one call of each row, or of all rows that have the
// same arguments.
func (a *File) validatorCalls(rows []ValidatorRow) ([]validatorCall, error) {
	var calls []validatorCall
	sameArguments := map[string]int{}
	for i, row := range rows {
		settings, err := strictjson.Parse(row.Normalized)
		if err != nil {
			return nil, fmt.Errorf("read normalized settings: %w", err)
		}
		e := &expansion{settings: settings, paths: row.Paths}
		argv, err := e.argv(a.validator.command)
		if err != nil {
			return nil, err
		}
		at, known := sameArguments[strings.Join(argv, "\x00")]
		if !known || !a.validator.many {
			at = len(calls)
			sameArguments[strings.Join(argv, "\x00")] = at
			calls = append(calls, validatorCall{argv: argv, files: named(row.Paths.Files, argv)})
		}
		c := &calls[at]
		c.rows = append(c.rows, i)
		c.input = append(strictjson.AppendPlain(c.input, settings), '\n')
	}
	return calls, nil
}

// named gives the files that arguments name.
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
func (a *File) ask(ctx context.Context, confine Confine, call validatorCall, limit time.Duration) ([][]fault.Field, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	output, err := a.runValidator(timed, confine, call)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	fail := func(code fault.Code, message string) error {
		return &fault.Error{Code: code, Message: message, Err: fmt.Errorf("validator of %s %s: %w", a.Type, a.Version, err)}
	}
	if timed.Err() != nil {
		err = fmt.Errorf("no answer after %v", limit)
		return nil, fail(fault.Unavailable, fmt.Sprintf("checking the settings of %s took longer than %v; try again later", a.Type, limit))
	}
	answers, parseErr := parseAnswers(output, len(call.rows), a.validator.many)
	if err != nil && (parseErr != nil || !anyFault(answers)) {
		return nil, fail(fault.Unavailable, fmt.Sprintf("the program that checks the settings of %s failed; ask an administrator", a.Type))
	}
	if err = parseErr; err != nil {
		return nil, fail(fault.Internal, fmt.Sprintf("the program that checks the settings of %s gave no usable answer; ask an administrator", a.Type))
	}
	return answers, nil
}

func anyFault(answers [][]fault.Field) bool {
	return slices.ContainsFunc(answers, func(f []fault.Field) bool { return len(f) > 0 })
}

// parseAnswers reads a validator's output: an array of details, or with many
// one for each row, a line each.
func parseAnswers(output []byte, rows int, many bool) ([][]fault.Field, error) {
	lists := [][]byte{output}
	if many {
		lists = slices.Collect(bytes.Lines(bytes.TrimSpace(output)))
	}
	if len(lists) != rows {
		return nil, fmt.Errorf("%d lines for %d documents", len(lists), rows)
	}
	answers := make([][]fault.Field, rows)
	for i, list := range lists {
		var err error
		if answers[i], err = parseDetails(list); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

func parseDetails(text []byte) ([]fault.Field, error) {
	v, err := strictjson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("output is not JSON: %w", err)
	}
	if v.Kind != strictjson.Array {
		return nil, fmt.Errorf("details must be an array, got %.60q", v.Raw)
	}
	var details []fault.Field
	for _, item := range v.Items {
		f, err := parseDetail(item)
		if err != nil {
			return nil, err
		}
		details = append(details, f)
	}
	return details, nil
}

// parseDetail reads one {"loc":[…],"msg":"…","type":"…"}.
func parseDetail(v *strictjson.Value) (fault.Field, error) {
	loc, msg, typ := v.Member("loc"), v.Member("msg"), v.Member("type")
	if msg == nil || msg.Kind != strictjson.String || msg.Text == "" || loc == nil || loc.Kind != strictjson.Array {
		return fault.Field{}, fmt.Errorf(`a detail needs "loc", a list, and "msg", a text; got %.60q`, v.Raw)
	}
	f := fault.Field{Loc: []any{}, Msg: cleanText([]byte(msg.Text), maxDetailText), Type: "value"}
	if typ != nil && typ.Kind == strictjson.String && typ.Text != "" {
		f.Type = cleanText([]byte(typ.Text), maxFigureText)
	}
	for _, step := range loc.Items {
		n, whole := step.Int()
		switch {
		case step.Kind == strictjson.String:
			f.Loc = append(f.Loc, step.Text)
		case whole:
			f.Loc = append(f.Loc, int(n))
		default:
			return fault.Field{}, fmt.Errorf(`"loc" may hold texts and whole numbers, got %.60q`, step.Raw)
		}
	}
	return f, nil
}
