package algorithm

import (
	"context"
	"encoding/json"
	"fmt"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/validator"
	"molrun/app/fault"
)

// ValidatorRow is what a validator is asked about.
type ValidatorRow struct {
	Normalized json.RawMessage // as sent where the schema found faults
	Paths      Paths           // only Files and Program
}

// HasValidator reports whether RunValidator has to follow CheckSettings.
func (a *File) HasValidator() bool { return a.checker != nil }

// ValidatesFaulty reports whether the validator also reads settings in which the
// schema found faults.
func (a *File) ValidatesFaulty() bool { return a.checker != nil && a.checker.always }

// RunValidator returns the faults that the algorithm's own program finds, a list
// for each row; paths begin below the settings. An error says that the program
// could not be asked, which is no fault of the settings. Users share the pool.
func (a *File) RunValidator(ctx context.Context, pool *validator.Pool, user string, rows []ValidatorRow) ([][]fault.Field, error) {
	if a.checker == nil {
		return make([][]fault.Field, len(rows)), nil
	}
	questions := make([]validator.Question, len(rows))
	for i, row := range rows {
		values, err := valuesOf(row.Normalized, row.Paths)
		if err == nil {
			questions[i] = validator.Question{Files: row.Paths.Files, Settings: values.Settings}
			questions[i].Argv, err = command.Argv(a.checker.command, values)
		}
		if err != nil {
			return nil, &fault.Error{Code: fault.Internal, Message: "the settings could not be checked", Err: fmt.Errorf("validator of %s %s: %w", a.Type, a.Version, err)}
		}
	}
	program := validator.Program{Type: a.Type, Version: a.Version, Many: a.checker.many, Sandbox: a.Sandbox}
	return pool.Ask(ctx, user, program, questions)
}
