package slurm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/fault"
	"molrun/app/placement"
	"molrun/app/task"
)

// defaultPath is where programs are looked for on nodes if nobody says.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

const (
	// timeRoom is what Slurm lets a task live beyond its own limit and grace,
	// so that it is the task that ends its program and says so.
	timeRoom = time.Minute
	// memoryRoom is what the process that runs the task needs itself.
	memoryRoom = 64 << 20
)

// request is what is the same for all tasks of one sbatch.
type request struct {
	needs     placement.Resources
	limit     time.Duration
	isolation string
	placement string // words of sbatch, with a line's end between
}

func (e *Executor) requestOf(ctx context.Context, t app.Task) (request, error) {
	sandbox, err := e.options.SandboxOf(ctx, t.Job)
	if err != nil {
		return request{}, fmt.Errorf("find out what the algorithm may reach: %w", err)
	}
	isolation := task.Isolation{
		Find: e.options.Sandbox, Sandbox: sandbox,
		Processes: int64(e.options.Processes), FileBytes: e.options.FileBytes,
	}
	return request{
		needs: t.Needs, limit: e.limitOf(t), isolation: isolation.String(),
		placement: strings.Join(placementWords(t.Placement), "\n"),
	}, nil
}

// limitOf gives how long the task may run by its own limit or its partition's,
// whichever is less. Jobs are checked against the partition when they are
// submitted, unless the cluster was away; Slurm would let one that asks for
// more wait for ever.
func (e *Executor) limitOf(t app.Task) time.Duration {
	node, known := e.Largest(t.Placement)
	if !known || node.Seconds == 0 {
		return t.Limit
	}
	most := time.Duration(node.Seconds) * time.Second
	if t.Limit <= 0 {
		return most
	}
	return min(t.Limit, most)
}

// room is what Slurm lets a task live beyond its own limit.
func (e *Executor) room() time.Duration { return e.options.Grace + timeRoom }

// overdue reports whether a task can't live any more, as Slurm would have ended
// it. One without limit may live for ever.
func (e *Executor) overdue(t app.Task, run *task.Started) bool {
	return t.Limit > 0 && e.options.Now().Sub(run.StartedAt) > t.Limit+e.room()
}

// placementWords are the words of sbatch that say where a task goes.
func placementWords(p placement.Placement) []string {
	words := slices.Clone(p.Options)
	for _, o := range []struct{ name, value string }{
		{"partition", p.Partition}, {"account", p.Account}, {"qos", p.QOS}, {"constraint", p.Constraint},
	} {
		if o.value != "" {
			words = append(words, "--"+o.name+"="+o.value)
		}
	}
	return words
}

// words are the arguments of sbatch. Ours come last: of two that contradict
// each other sbatch takes the later.
func (e *Executor) words(r request, name string, tasks int) []string {
	words := strings.FieldsFunc(r.placement, func(c rune) bool { return c == '\n' })
	words = append(words, e.options.ownWords(name, max(1, r.needs.CPUs))...)
	words = append(words, "--dependency=singleton")
	if r.needs.MemoryBytes > 0 {
		words = append(words, fmt.Sprintf("--mem=%dM", (r.needs.MemoryBytes+memoryRoom+1<<20-1)>>20))
	}
	if r.needs.GPUs > 0 {
		words = append(words, "--gres=gpu:"+strconv.Itoa(r.needs.GPUs))
	}
	if r.limit > 0 {
		whole := r.limit + e.room()
		words = append(words, fmt.Sprintf("--time=%d", (whole+time.Minute-1)/time.Minute))
	}
	if e.lists.isArray(name) {
		words = append(words, fmt.Sprintf("--array=1-%d", tasks))
	}
	return words
}

// ownWords are the arguments of every sbatch: a job that is told about by its
// number alone, never runs twice, takes nothing of this process along, and runs
// on CPUs of one node.
func (o Options) ownWords(name string, cpus int) []string {
	return []string{
		"--parsable", "--no-requeue", "--export=NIL",
		"--job-name=" + name, "--output=/dev/null", "--error=/dev/null", "--chdir=" + o.SharedDir,
		"--nodes=1", "--ntasks=1", "--cpus-per-task=" + strconv.Itoa(cpus),
	}
}

// jobNumber reads what sbatch prints: the number of the job, behind which the
// name of the cluster may follow.
func jobNumber(out string) (id string, err error) {
	id, _, _ = strings.Cut(strings.TrimSpace(out), ";")
	if !isNumber(id) {
		return "", fmt.Errorf("sbatch: it printed %.80q, which is no number of a job", out)
	}
	return id, nil
}

// submit submits tasks that ask for the same. It gives their handles; an error
// says that none of them is in Slurm or will be. Where that is not known there
// is no error, and Status finds out.
func (e *Executor) submit(ctx context.Context, r request, tasks []app.Task) ([]app.Handle, error) {
	if _, err := e.Program(ctx); err != nil {
		return nil, err
	}
	name := e.lists.single(tasks[0].Token).Name
	if len(tasks) > 1 {
		name = e.lists.prefix + arrayMark + rand.Text()
	}
	rows, err := e.lists.write(name, tasks)
	if err != nil {
		return nil, err
	}
	id, err := e.sbatch(ctx, r, name, len(tasks))
	if _, no := errors.AsType[*fault.Error](err); no {
		return nil, errors.Join(err, e.lists.remove(name))
	}
	handles := make([]app.Handle, len(rows))
	for i, row := range rows {
		handles[i] = row.numbered(id).encode()
	}
	return handles, nil
}

// sbatch submits a name whose list is written, be it for the first time. An
// app.Error says that Slurm refuses it; any other, that it is not known what
// came of it, which is noted and logged here.
func (e *Executor) sbatch(ctx context.Context, r request, name string, tasks int) (id string, err error) {
	program, err := e.program.install(ctx)
	if err != nil {
		return "", err
	}
	script := wrapper{
		list: e.lists.path(name), program: program, isolation: r.isolation,
		path: e.options.NodePath, gpus: r.needs.GPUs > 0,
	}
	if script.path == "" {
		script.path = defaultPath
	}
	e.note(name, "")
	out, err := e.slurm.run(ctx, script.String(), "sbatch", e.words(r, name, tasks)...)
	e.note(name, "")
	if err != nil {
		return "", e.unsure(name, err)
	}
	if id, err = jobNumber(out); err != nil {
		return "", e.unsure(name, err)
	}
	if err := e.lists.accepted(name, id); err != nil {
		e.log("a job's number can't be noted; it is found by its name", "name", name, "err", err)
	}
	e.log("submitted", "name", name, "slurm", id, "tasks", tasks)
	return id, nil
}

// note remembers when a name was submitted, and why it may have failed.
func (e *Executor) note(name, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fresh[name], e.hurried = time.Now(), true
	delete(e.refusal, name)
	if why != "" {
		e.refusal[name] = why
	}
}

// unsure sorts the failures of sbatch: what Slurm refuses is an app.Error, the
// rest may have taken effect.
func (e *Executor) unsure(name string, err error) error {
	f, ok := errors.AsType[*failed](err)
	switch {
	case ok && errors.Is(f.err, errNoCommand):
		return fault.Errorf(fault.Unavailable, "The cluster's command sbatch is not installed on the server.")
	case ok && f.exit && full(f.said):
		e.note(name, "the cluster takes no more jobs of this account now")
	case ok && f.exit && refused(f.said):
		return fault.Errorf(fault.Invalid, "The cluster refuses the job: %s. Ask an administrator to look at the cluster's settings of molrun.", refusal(f.said))
	default:
		e.note(name, "the cluster did not say whether it took the job")
	}
	e.log("sbatch failed; Slurm is asked whether there is a job", "name", name, "err", err)
	return err
}

// refusals are what sbatch says of jobs that are not and will not be in Slurm.
var refusals = []string{
	"invalid", "not permitted", "permission denied", "requested node configuration is not available",
	"requested partition configuration not available", "more processors requested than permitted",
	"memory specification can not be satisfied", "unrecognized option", "violates accounting/qos policy",
	"requires an argument", "unable to open file", "no partition specified",
}

// refused reports whether sbatch was told no. A failure to prove who asks is
// none: munge may be back in a moment.
func refused(said string) bool {
	said = strings.ToLower(said)
	if strings.Contains(said, "authentication") || strings.Contains(said, "munge") || strings.Contains(said, "credential") {
		return false
	}
	return slices.ContainsFunc(refusals, func(words string) bool { return strings.Contains(said, words) })
}

// refusal gives what sbatch was told, which may be in several lines: the first
// often says what the last one calls invalid.
func refusal(said string) string {
	var parts []string
	for line := range strings.Lines(said) {
		part := strings.TrimPrefix(lastLine(line), "Batch job submission failed: ")
		if part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// full reports whether a limit on the number of submitted jobs was in the way.
func full(said string) bool { return strings.Contains(said, "MaxSubmit") }
