package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"molrun/app/fault"
	"molrun/app/strictjson"
)

// ResolveInputs finds the files that a claimed job reads and that other jobs have made
// since it was submitted, and has the settings checked that need them, as Submit does
// for files that are there. It returns why the job fails if it can't run with them.
func (s *Runs) ResolveInputs(ctx context.Context, j *Job) (*Failure, error) {
	if !slices.ContainsFunc(j.Private.References, func(r Reference) bool { return r.Pending }) {
		return nil, nil
	}
	inputs, references := slices.Clone(j.Inputs), slices.Clone(j.Private.References)
	for i := range references {
		if !references[i].Pending {
			continue
		}
		if failure, err := s.find(&inputs[i], &references[i]); failure != nil || err != nil {
			return failure, err
		}
	}
	if failure, err := s.judge(ctx, j, references); failure != nil || err != nil {
		return failure, err
	}
	err := s.attempt(ctx, j.ID, j.Attempts, func(stored *Job) { stored.Inputs, stored.Private.References = inputs, references })
	if err == nil {
		j.Inputs, j.Private.References = inputs, references
	}
	return nil, err
}

// find completes a reference to a file of a job that has finished.
func (s *Runs) find(input *Input, ref *Reference) (*Failure, error) {
	manifest, err := s.blobs.Manifest(ref.Job)
	switch {
	case errors.Is(err, fault.NotFound):
		return &Failure{Code: FailedInput, Message: fmt.Sprintf("The result of job %q, which setting %q needs, is no longer stored. Submit both jobs anew.", input.Job, input.Setting)}, nil
	case err != nil:
		return nil, fmt.Errorf("result of job %s: %w", ref.Job, err)
	}
	i := manifest.Find(input.Path)
	if i < 0 {
		return &Failure{Code: FailedInput, Message: fmt.Sprintf("The result of job %q has no file %q, which setting %q needs. Submit this job anew with a file that GET /jobs/{jobName}/files lists.", input.Job, input.Path, input.Setting)}, nil
	}
	f := manifest.Files[i]
	input.SHA256, ref.Path, ref.Size, ref.Pending = f.SHA256, f.Path, f.Size, false
	return nil, nil
}

// judge asks the algorithm's validator, which could not read all files before.
func (s *Runs) judge(ctx context.Context, j *Job, references []Reference) (*Failure, error) {
	a, err := s.algorithmOf(ctx, j)
	if err != nil {
		return nil, err
	}
	sent, err := strictjson.Parse(j.Settings)
	if err != nil {
		return nil, fmt.Errorf("read the settings of job %s: %w", j.ID, err)
	}
	p := &plan{core: s.core, by: Caller{Organization: j.Organization, Email: j.Email}, algorithm: a}
	rows := []row{{sent: sent, normalized: j.Private.Normalized, references: references}}
	if err := p.validate(ctx, rows); err != nil || len(rows[0].faults) == 0 {
		return nil, err
	}
	var text []string
	for _, f := range rows[0].faults {
		text = append(text, fmt.Sprintf("%s: %s", strings.Trim(fmt.Sprint(f.Loc), "[]"), f.Msg))
	}
	return &Failure{Code: FailedInvalid, Message: "The settings can't be used with the files that other jobs have made. " + strings.Join(text, "; ")}, nil
}
