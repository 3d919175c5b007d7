package algorithm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/content"
	"molrun/app/algorithm/validator"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
)

// ValidatorRow is the input of a validator for one job.
type ValidatorRow struct {
	Settings *strictjson.Value // checked, or as submitted if the schema found errors
	Paths    Paths             // only Files and Program
	Named    map[string][]NamedFile
	Facts    Facts // file metadata; RunValidator adds metadata from the content
	Right    bool  // the schema found no error
}

// HasValidator reports whether RunValidator must be called after CheckSettings.
func (a *File) HasValidator() bool {
	return a.checker != nil || a.Parameters.readsContent() || a.UsesFacts()
}

// ValidatesInvalid reports whether the validator also reads settings in which the schema
// found errors.
func (a *File) ValidatesInvalid() bool { return a.checker != nil && a.checker.always }

// RunValidator returns a list of errors for each row: files with the wrong content, and
// errors found by the algorithm's own program. Paths are relative to the settings. The
// returned error is not an error in the settings; it means that they could not be
// checked. All users share the pool.
func (a *File) RunValidator(ctx context.Context, pool *validator.Pool, user string, rows []ValidatorRow) ([][]fault.Field, error) {
	faults, err := a.Parameters.checkContent(ctx, pool, user, rows)
	for i := range rows {
		if err == nil && rows[i].Right && len(faults[i]) == 0 {
			faults[i] = a.factRules(rows[i].Settings, rows[i].Facts)
		}
	}
	if a.checker == nil || err != nil {
		return faults, err
	}
	var right []int // rows with valid files
	for i := range rows {
		if len(faults[i]) == 0 {
			right = append(right, i)
		}
	}
	answers, err := a.runProgram(ctx, pool, user, rows, right)
	if err != nil {
		return nil, err
	}
	for k, i := range right {
		faults[i] = answers[k]
	}
	return faults, nil
}

// runProgram runs the algorithm's own program on some rows.
func (a *File) runProgram(ctx context.Context, pool *validator.Pool, user string, rows []ValidatorRow, of []int) ([][]fault.Field, error) {
	questions := make([]validator.Input, len(of))
	home, err := a.Folder.Path()
	if err != nil {
		return nil, fmt.Errorf("validator of %s %s: %w", a.Type, a.Version, err)
	}
	for i, n := range of {
		row := rows[n]
		row.Paths.Folder = home
		values := valuesOf(row.Settings, row.Paths)
		values.Site = a.site
		values.Computed, _ = a.relations.values(values.Settings.Members, row.Facts, nil)
		values.Computed.Files = a.Parameters.paths(row.Paths.Files)
		questions[i] = validator.Input{Files: row.Paths.readable(), Settings: values.Settings}
		questions[i].Argv, err = command.Argv(a.checker.command, values)
		if err != nil {
			return nil, &fault.Error{Code: fault.Internal, Message: "the settings could not be checked", Err: fmt.Errorf("validator of %s %s: %w", a.Type, a.Version, err)}
		}
	}
	program := validator.Program{Type: a.Type, Version: a.Version, Many: a.checker.many, Sandbox: a.AccessibleSandbox()}
	return pool.AskProgram(ctx, user, program, questions)
}

// readable returns the files that the program can read.
func (p Paths) readable() map[string][]string {
	if p.Folder == "" {
		return p.Files
	}
	files := map[string][]string{"": {p.Folder}}
	maps.Copy(files, p.Files)
	return files
}

// checkContent returns a list of errors for each row, for files with the wrong content. A
// file shared by many rows is read once.
func (all Parameters) checkContent(ctx context.Context, pool *validator.Pool, user string, rows []ValidatorRow) ([][]fault.Field, error) {
	faults := make([][]fault.Field, len(rows))
	type reading struct{ parameter, path string }
	known := map[reading]*content.Report{}
	for i, row := range rows {
		for _, p := range all {
			if p.content == nil {
				continue
			}
			for k, path := range row.Paths.Files[p.Name] {
				at := reading{p.Name, path}
				got := known[at]
				if got == nil {
					var err error
					if got, err = p.contentOf(ctx, pool, user, path); err != nil {
						return nil, err
					}
					known[at] = got
				}
				if row.Facts != nil {
					row.Facts.addCounts(p.Name, got.Facts)
				}
				if named := row.Named[p.Name]; k < len(named) {
					named[k].Summary = got.Summary
				}
				faults[i] = append(faults[i], row.named(p.Name, k).faults(got.Mistakes)...)
			}
		}
	}
	return faults, nil
}

func (r *ValidatorRow) named(setting string, k int) NamedFile {
	if all := r.Named[setting]; k < len(all) {
		return all[k]
	}
	return NamedFile{Loc: []any{setting}}
}

func (f NamedFile) faults(mistakes []string) (faults []fault.Field) {
	for _, m := range mistakes {
		if f.Path != "" {
			m = f.Path + " " + m
		}
		faults = append(faults, fault.Field{Loc: f.Loc, Type: "content", Msg: m})
	}
	return faults
}

func (p *Parameter) contentOf(ctx context.Context, pool *validator.Pool, user, path string) (got *content.Report, err error) {
	err = pool.CheckInProcess(ctx, user, func(ctx context.Context) (err error) {
		got, err = content.CheckFile(ctx, path, *p.content)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return &content.Report{Mistakes: []string{"was just deleted; upload it again"}}, nil
	}
	if err != nil && fault.CodeOf(err) == fault.Internal && ctx.Err() == nil {
		return nil, fmt.Errorf("read the file of setting %s: %w", p.Name, err)
	}
	return got, err
}

// MergeFaults appends the validator's errors to those of the schema. If both report a
// setting, only the validator's errors are kept.
func MergeFaults(schema, validator []fault.Field) []fault.Field {
	reported := map[any]bool{}
	for _, f := range validator {
		if len(f.Loc) > 0 {
			reported[f.Loc[0]] = true
		}
	}
	kept := slices.DeleteFunc(slices.Clone(schema), func(f fault.Field) bool { return len(f.Loc) > 0 && reported[f.Loc[0]] })
	return append(kept, validator...)
}
