package slurm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

const (
	// maxSlowdown is the largest factor by which polling slows down, and downSlowdown the
	// factor while the controller is down, when polling can't burden it.
	maxSlowdown  = 6
	downSlowdown = 2
	// slowAnswer is how long squeue can take before polling slows down.
	slowAnswer = time.Second
	// hurryDivisor divides the pause between polls while jobs are about to change.
	hurryDivisor = 5
	// namesAtOnce is the maximum number of names in one sacct call.
	namesAtOnce = 200
)

// snapshot is Slurm's state as of the last query: one round.
type snapshot struct {
	client  *client
	options Options
	lists   *lists

	round          int
	at             time.Time // time of the query
	pace           time.Duration
	records        map[TaskID][]jobRecord
	names          map[string]bool // names for which Slurm knows a job
	accounted      map[string]bool // names queried with sacct in this round
	noAccounting   bool            // there is no accounting
	accountingDown bool            // there is accounting, but it does not respond
	tried          time.Time       // when squeue was last called
	failure        error           // of that call
	tracked        tracker
}

// refresh lists all our jobs with squeue, once for all tasks, unless it was queried a
// moment ago.
func (v *snapshot) refresh(ctx context.Context, s *submissions, hurried bool) error {
	pause := v.pace
	if hurried {
		pause /= hurryDivisor
	}
	if !v.tried.IsZero() && time.Since(v.tried) < pause {
		return v.failure
	}
	s.resetExpectChange()
	return v.listJobs(ctx)
}

func (v *snapshot) listJobs(ctx context.Context) error {
	begin := time.Now()
	v.tried = begin
	records, err := v.client.Queue(ctx, v.options.Prefix)
	f, _ := errors.AsType[*commandFailure](err)
	switch {
	case f != nil && unreached(f.Said):
		v.pace = downSlowdown * v.options.Poll
	case err != nil || time.Since(begin) > slowAnswer:
		v.pace = min(2*v.pace, maxSlowdown*v.options.Poll)
	default:
		v.pace = v.options.Poll
	}
	v.failure = err
	if err != nil {
		return err
	}
	v.round++
	v.at = begin
	v.names, v.accounted = map[string]bool{}, map[string]bool{}
	v.records = map[TaskID][]jobRecord{}
	for _, r := range records {
		v.records[r.TaskID] = append(v.records[r.TaskID], r)
		v.names[r.Name] = true
	}
	v.tracked.forget(begin)
	return nil
}

// account queries sacct for names that squeue does not list, once per round for each. If
// it does not respond, no conclusion is drawn for them.
func (v *snapshot) account(ctx context.Context, since time.Time, names map[string]bool) {
	if v.noAccounting {
		return
	}
	asked := slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(n string) bool { return v.accounted[n] })
	for piece := range slices.Chunk(asked, namesAtOnce) {
		titles := make([]string, len(piece))
		for i, name := range piece {
			titles[i] = v.lists.title(name)
		}
		records, err := v.client.Account(ctx, v.options.Prefix, since, titles)
		switch {
		case errors.Is(err, errNoAccounting):
			v.withoutAccounting(ctx)
			return
		case err != nil:
			if !v.accountingDown && ctx.Err() == nil {
				v.options.Log("Slurm accounting does not respond; tasks unknown to squeue keep their state", "err", err)
			}
			v.accountingDown = true
			return
		}
		v.accept(records)
		for _, name := range piece {
			v.accounted[name] = true
		}
		v.accountingDown = false
	}
}

// complete reports whether Slurm has reported everything it can about a name.
func (v *snapshot) complete(name string) bool { return v.noAccounting || v.accounted[name] }

// accept adds the output of sacct. Of the jobs that squeue does not list, it adds those
// that are over, because sacct has no end of the others; for jobs that squeue lists, it
// adds who canceled them.
func (v *snapshot) accept(records []jobRecord) {
	for _, r := range records {
		v.names[r.Name] = true
		known := v.records[r.TaskID]
		i := slices.IndexFunc(known, func(k jobRecord) bool { return k.ID == r.ID || k.Target() == r.Target() })
		switch {
		case i >= 0 && known[i].By == "":
			known[i].By = r.By
		case i < 0 && r.Kind().Over():
			v.records[r.TaskID] = append(known, r)
		}
	}
}

// withoutAccounting continues with squeue alone, which soon forgets jobs.
func (v *snapshot) withoutAccounting(ctx context.Context) {
	v.noAccounting = true
	settings, err := v.client.Settings(ctx)
	age, ok := leadingNumber(settings["MinJobAge"])
	enough := minJobAge(v.options.Poll)
	switch {
	case err != nil || !ok:
		v.options.Log("no Slurm accounting: the outcome of a job is known only while Slurm remembers it")
	case time.Duration(age)*time.Second < enough:
		v.options.Log("no Slurm accounting, and finished jobs are forgotten too soon; raise MinJobAge in slurm.conf",
			"seconds", age, "needed", int(enough.Seconds()))
	default:
		v.options.Log("no Slurm accounting; finished jobs are known for a limited time", "seconds", age)
	}
}

// minJobAge is how long Slurm without accounting must remember ended jobs.
func minJobAge(poll time.Duration) time.Duration { return 10 * poll }
