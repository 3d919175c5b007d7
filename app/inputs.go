package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/base/strictjson"
)

// ResolveInputs resolves those inputs of a claimed job that other jobs have produced
// since it was submitted. It validates the settings that depend on them, as Submit does
// for existing files. It returns a failure if the job can't run with them.
func (s *Runs) ResolveInputs(ctx context.Context, j *Job) (*Failure, error) {
	if !slices.ContainsFunc(j.Private.References, func(r Reference) bool { return r.Pending }) {
		return nil, nil
	}
	a, err := s.algorithmOf(ctx, j)
	if err != nil {
		return nil, err
	}
	var inputs []Input
	var references []Reference
	for i, ref := range j.Private.References {
		files := []resolvedFile{{j.Inputs[i], ref}}
		if ref.Pending {
			var failure *Failure
			if files, failure, err = s.findInputs(ctx, a, j.Inputs[i], ref); failure != nil || err != nil {
				return failure, err
			}
		}
		for _, f := range files {
			inputs, references = append(inputs, f.input), append(references, f.ref)
		}
	}
	known, failure, err := s.validateInputs(ctx, j, a, inputs, references)
	if failure != nil || err != nil {
		return failure, err
	}
	before := j.Private.Needs
	note := func(j *Job) {
		j.Inputs, j.Private.References, j.Private.Facts, j.Private.Size, j.Private.Needs = inputs, references, known.Facts, known.Size, before.Max(known.Needs)
	}
	if err = s.attempt(ctx, j.ID, j.Attempts, note); err != nil {
		return nil, err
	}
	if note(j); j.Private.Needs != before {
		return &Failure{Code: FailedCannotStart, Message: "With the files that other jobs have created, the job needs more resources than were reserved for it: " + j.Private.Needs.Text() + ". Retry it to reserve them."}, nil
	}
	return nil, nil
}

// findInputs returns the files that a reference to a finished job names: one file, or the
// files of an output.
func (s *Runs) findInputs(ctx context.Context, a *algorithm.File, input Input, ref Reference) (files []resolvedFile, failure *Failure, err error) {
	manifest, err := s.blobs.Manifest(ref.Job)
	switch {
	case errors.Is(err, fault.NotFound):
		return nil, &Failure{Code: FailedInput, Message: fmt.Sprintf("The result of job %q, which setting %q needs, is no longer stored. Submit both jobs again.", input.Job, input.Setting)}, nil
	case err != nil:
		return nil, nil, fmt.Errorf("result of job %s: %w", ref.Job, err)
	}
	r := naming.Reference{OfJob: true, Job: input.Job, Path: input.Path, Output: ref.Output}
	if r.Output == "" {
		files, err = resultFile(ref.Job, r, manifest)
	} else {
		files, err = s.outputOf(ctx, ref.Job, r, manifest)
	}
	if err == nil {
		files, err = acceptedFiles(a.Parameters.Named(input.Setting), files)
	}
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Code == fault.Invalid {
		return nil, &Failure{Code: FailedInput, Message: fmt.Sprintf("There is no file for setting %q: %s. Submit this job again with an existing file.", input.Setting, refused.Message)}, nil
	}
	return files, nil, err
}

// outputOf returns the files of an output of a finished job.
func (s *Runs) outputOf(ctx context.Context, id JobID, r naming.Reference, m *Manifest) (files []resolvedFile, err error) {
	err = s.store.View(ctx, func(tx Tx) error {
		maker, err := tx.Job(id)
		if err != nil {
			return err
		}
		a, err := s.algorithmIn(tx, maker)
		if err == nil {
			files, err = outputFiles(id, r, a, m)
		}
		return err
	})
	return files, err
}

// validateInputs runs the algorithm's validator, which could not read all files at
// submission, and returns the fields that depend on their content.
func (s *Runs) validateInputs(ctx context.Context, j *Job, a *algorithm.File, inputs []Input, references []Reference) (known Private, failure *Failure, err error) {
	sent, err := strictjson.Parse(j.Settings)
	if err != nil {
		return known, nil, fmt.Errorf("read the settings of job %s: %w", j.ID, err)
	}
	settings, err := strictjson.Parse(j.Private.Normalized)
	if err != nil {
		return known, nil, fmt.Errorf("read the checked settings of job %s: %w", j.ID, err)
	}
	p := &plan{core: s.core, by: Caller{Organization: j.Organization, Email: j.Email}, algorithm: a}
	facts := factsOf(references)
	rows := []row{{sent: sent, settings: settings, inputs: inputs, references: references, facts: facts, faults: a.Parameters.CountFaults(facts)}}
	for _, in := range inputs {
		rows[0].named = append(rows[0].named, algorithm.FileReference{Loc: []any{in.Setting}}.File(in.Output, in.Path))
	}
	if err := p.validate(ctx, rows); err != nil {
		return known, nil, err
	}
	faults := rows[0].faults
	if len(faults) == 0 {
		known.Facts, known.Size = a.StoredFacts(facts), a.Size(settings, facts)
		if known.Needs, faults = a.Needs(settings, facts); len(faults) == 0 {
			return known, nil, nil
		}
	}
	var text []string
	for _, f := range faults {
		text = append(text, fmt.Sprintf("%s: %s", strings.Trim(fmt.Sprint(f.Loc), "[]"), f.Msg))
	}
	return known, &Failure{Code: FailedInvalid, Message: "The settings are not valid for the files that other jobs have created. " + strings.Join(text, "; ")}, nil
}
