package slurm

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/task"
)

// request holds what all tasks of one sbatch call have in common.
type request struct {
	needs     placement.Resources
	time      time.Duration // Slurm's time limit for a task; 0 means none
	isolation string
	placement string    // arguments of sbatch, one per line
	worker    bool      // the tasks are processes of workers
	owner     app.Owner // without the job name, which differs between tasks
}

func (s *submitter) requestOf(ctx context.Context, t app.Task) (request, error) {
	sandbox, err := s.options.SandboxOf(ctx, t.Job)
	if err != nil {
		return request{}, fmt.Errorf("determine the algorithm's sandbox: %w", err)
	}
	isolation := task.Isolation{
		Find: s.options.Sandbox, Sandbox: sandbox, Hide: append([]string{s.options.SharedDir}, s.options.Hide...),
		Processes: int64(s.options.Processes), FileBytes: s.options.FileBytes,
		Containers: s.options.Containers, ModulesInit: s.options.ModulesInit,
	}
	return request{
		needs: t.Needs, time: s.timeOf(t), isolation: isolation.String(),
		placement: strings.Join(placementArgs(t.Placement), "\n"), worker: t.Worker != "",
		owner: app.Owner{Organization: t.Owner.Organization, Email: t.Owner.Email, Batch: t.Owner.Batch},
	}, nil
}

// timeOf returns Slurm's time limit for the task: the task's own limit and the margin,
// but no more than its partition allows, because Slurm would let the job wait forever.
// Jobs are checked against the partition when they are submitted, unless the cluster was
// down.
func (s *submitter) timeOf(t app.Task) time.Duration {
	whole := t.Limit + s.options.margin()
	node := s.nodes.joinPartitions(t.Placement.Partition)
	switch {
	case node == nil || node.Seconds == 0:
		if t.Limit <= 0 {
			return 0
		}
		return whole
	case t.Limit <= 0:
		return time.Duration(node.Seconds) * time.Second
	}
	return min(whole, time.Duration(node.Seconds)*time.Second)
}

// args returns the arguments of sbatch. Ours come last, because sbatch uses the later of
// two contradictory arguments.
func (s *submitter) args(r request, name, label string, tasks int) []string {
	args := strings.FieldsFunc(r.placement, func(c rune) bool { return c == '\n' })
	args = append(args, s.options.commonArgs(labelled(name, s.options.Prefix, label), max(1, r.needs.CPUs))...)
	if comment := r.comment(label); comment != "" {
		args = append(args, "--comment="+comment)
	}
	args = append(args, "--dependency=singleton")
	if r.needs.MemoryBytes > 0 {
		args = append(args, fmt.Sprintf("--mem=%dM", (r.needs.MemoryBytes+memoryMargin+1<<20-1)>>20))
	}
	if r.needs.GPUs > 0 {
		args = append(args, "--gres=gpu:"+strconv.Itoa(r.needs.GPUs))
	}
	if r.time > 0 {
		args = append(args, fmt.Sprintf("--time=%d", (r.time+time.Minute-1)/time.Minute))
	}
	if s.lists.isArray(name) {
		args = append(args, fmt.Sprintf("--array=1-%d", tasks))
	}
	return args
}

// commonArgs returns the arguments of every sbatch call: sbatch prints only the job ID,
// and the job is never requeued and runs on the CPUs of one node. It inherits all of
// sbatch's environment, which the client keeps almost empty, so that nothing of this
// process is passed on. With NONE, and before Slurm 23.02 also with NIL or a list, Slurm
// would start a login shell of the user for each job, and hold the job if that fails.
func (o Options) commonArgs(name string, cpus int) []string {
	return []string{
		"--parsable", "--no-requeue", "--export=ALL",
		"--job-name=" + name, "--output=/dev/null", "--error=/dev/null", "--chdir=" + o.SharedDir,
		"--nodes=1", "--ntasks=1", "--cpus-per-task=" + strconv.Itoa(cpus),
	}
}

// placementArgs returns the arguments of sbatch that determine where a task runs.
func placementArgs(p placement.Placement) []string {
	args := slices.Clone(p.Options)
	for _, o := range []struct{ name, value string }{
		{"partition", p.Partition}, {"account", p.Account}, {"qos", p.QOS}, {"constraint", p.Constraint},
	} {
		if o.value != "" {
			args = append(args, "--"+o.name+"="+o.value)
		}
	}
	return args
}
