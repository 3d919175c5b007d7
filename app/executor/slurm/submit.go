package slurm

import (
	"context"
	"errors"
	"fmt"

	"molrun/app"
	"molrun/app/base/fault"
)

// defaultPath is the PATH of programs on nodes without Options.NodePath.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// submitter submits tasks to Slurm.
type submitter struct {
	options     Options
	client      *client
	lists       *lists
	program     *program
	submissions *submissions
	nodes       *nodes
}

// submit submits tasks with the same request, in parts if Slurm rejects their number, and
// returns the handles of the accepted tasks. An error means that none of the others is or
// will be in Slurm. If that is unknown there is no error, and Status finds out.
func (s *submitter) submit(ctx context.Context, r request, tasks []app.Task) (handles []app.Handle, err error) {
	for size := len(tasks); len(tasks) > 0; {
		part := tasks[:min(size, len(tasks))]
		some, err := s.submitPart(ctx, r, part)
		large, ok := errors.AsType[*sizeError](err)
		switch {
		case ok && len(part) > 1:
			size = s.smaller(ctx, len(part), large)
		case err != nil:
			return handles, err
		default:
			handles, tasks = append(handles, some...), tasks[len(part):]
		}
	}
	return handles, nil
}

// smaller returns how many tasks to try after n were rejected.
func (s *submitter) smaller(ctx context.Context, n int, e *sizeError) int {
	if e.long {
		s.client.ForgetSettings()
		if most := s.client.ArraySize(ctx); most < n {
			return most
		}
	}
	return n / 2
}

func (s *submitter) submitPart(ctx context.Context, r request, tasks []app.Task) ([]app.Handle, error) {
	if _, err := s.program.install(ctx); err != nil {
		return nil, err
	}
	name := s.lists.single(tasks[0].Token).Name
	if len(tasks) > 1 {
		name = s.lists.newArray()
	}
	rows, err := s.lists.writeList(name, r.label(tasks), tasks)
	if err != nil {
		return nil, err
	}
	id, err := s.sbatch(ctx, r, name, len(tasks))
	if _, no := errors.AsType[*fault.Error](err); no {
		return nil, errors.Join(err, s.lists.remove(name))
	}
	handles := make([]app.Handle, len(rows))
	for i, row := range rows {
		handles[i] = numbered(row, id).encode()
	}
	return handles, nil
}

// sbatch submits a name whose list is written, for the first time or again. A fault.Error
// means that Slurm rejects it; any other error means that the result is unknown, which is
// recorded and logged here.
func (s *submitter) sbatch(ctx context.Context, r request, name string, tasks int) (id string, err error) {
	program, err := s.program.install(ctx)
	if err != nil {
		return "", err
	}
	script := wrapper{
		list: s.lists.path(name), program: program, isolation: r.isolation,
		path: s.options.NodePath, gpus: r.needs.GPUs > 0, worker: r.worker,
	}
	if script.path == "" {
		script.path = defaultPath
	}
	label := s.lists.label(name)
	s.submissions.recordSubmission(name, "")
	id, err = s.client.Submit(ctx, script.String(), s.args(r, name, label, tasks)...)
	s.submissions.recordSubmission(name, "")
	if err != nil {
		return "", s.unsure(name, err)
	}
	if err := s.lists.accepted(name, id); err != nil {
		s.options.Log("could not record a Slurm job ID; the job is found by its name", "name", name, "err", err)
	}
	s.options.Log("submitted", "name", labelled(name, s.options.Prefix, label), "slurm", id, "tasks", tasks, "organization", r.owner.Organization)
	return id, nil
}

// unsure classifies failures of sbatch: a rejection by Slurm is a fault.Error, any other
// failure may have taken effect.
func (s *submitter) unsure(name string, err error) error {
	f, ok := errors.AsType[*commandFailure](err)
	said := ""
	if ok && f.Exited {
		said = f.Said
	}
	switch limit := submitLimitHit(said); {
	case ok && errors.Is(f.Err, errNoCommand):
		return fault.Errorf(fault.Unavailable, "The cluster's command sbatch is not installed on the server.")
	case limit != "":
		const why = "this account has reached its limit of jobs on the cluster"
		s.submissions.recordSubmission(name, why)
		return &sizeError{refusal: fault.Errorf(fault.Unavailable, "%s (%s)", why, limit)}
	case unreached(said):
		const why = "the cluster's controller does not respond"
		s.submissions.recordSubmission(name, why)
		return fault.Errorf(fault.Unavailable, why)
	case tooLong(said):
		return &sizeError{refusal: fault.Errorf(fault.Invalid, "The cluster does not accept job arrays. Ask an administrator to raise MaxArraySize."), long: true}
	case accountRefused(said):
		why := fmt.Sprintf("the cluster rejected the job's account (%s); ask an administrator to check slurm.account and the account's associations", rejectionOf(said))
		s.submissions.recordSubmission(name, why)
		return fault.Errorf(fault.Unavailable, "%s", why)
	case refused(said):
		return fault.Errorf(fault.Invalid, "The cluster rejected the job: %s. Ask an administrator to check molrun's Slurm settings.", rejectionOf(said))
	}
	s.submissions.recordSubmission(name, "the cluster did not confirm the submission")
	s.options.Log("sbatch failed; checking whether Slurm has the job", "name", name, "err", err)
	return err
}

// again submits a name again. It returns why Slurm rejects it, or "" if it does not. A
// name with too many tasks is split into several, which are submitted later.
func (s *submitter) again(ctx context.Context, name string, t app.Task) (refused string) {
	tasks, err := s.lists.readList(name)
	if err != nil {
		return ""
	}
	r, err := s.requestOf(ctx, t)
	if err == nil {
		_, err = s.sbatch(ctx, r, name, len(tasks))
	}
	if large, ok := errors.AsType[*sizeError](err); ok && len(tasks) > 1 {
		err = s.lists.split(name, tasks, s.smaller(ctx, len(tasks), large))
		s.options.Log("job array exceeds MaxArraySize; submitting it in parts", "name", name, "tasks", len(tasks), "err", err)
		return ""
	}
	if no, ok := errors.AsType[*fault.Error](err); ok && no.Code == fault.Invalid {
		return no.Message
	}
	return ""
}
