package slurm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"molrun/app"
)

const (
	// slowest is how many times less often than usual Slurm is asked at least.
	slowest = 6
	// slowAnswer is how long squeue may take before it is asked less often.
	slowAnswer = time.Second
	// soon is which part of the usual pause is kept though something is about
	// to change.
	soon = 5
	// namesAtOnce is how many names one sacct is asked for.
	namesAtOnce = 200
)

// view is what Slurm said when it was asked last: one round. Whoever has the
// token of looking owns it.
type view struct {
	round     int
	at        time.Time // when the question was asked
	pace      time.Duration
	records   map[row][]record
	names     map[string]bool     // of which Slurm knows a job
	accounted map[string]bool     // names that sacct was asked for in this round
	tracked   map[string]*tracked // by token
	without   bool                // there is no accounting
	silent    bool                // there is, and it does not answer
	tried     time.Time           // when squeue was called last
	failure   error               // of that call
}

// look gives this goroutine the view.
func (e *Executor) look(ctx context.Context) error {
	select {
	case <-e.looking:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Executor) lookAway() { e.looking <- struct{}{} }

// refresh asks squeue for all our jobs, unless it was asked a moment ago: once
// for all tasks, however many there are.
func (e *Executor) refresh(ctx context.Context, hurried bool) error {
	v := &e.view
	pause := v.pace
	if hurried {
		pause /= soon
	}
	if since := time.Since(v.tried); v.tried.IsZero() || since >= pause {
		return e.ask(ctx)
	}
	return v.failure
}

func (e *Executor) ask(ctx context.Context) error {
	v := &e.view
	e.mu.Lock()
	e.hurried = false
	e.mu.Unlock()
	begin := time.Now()
	v.tried = begin
	out, err := e.slurm.run(ctx, "", "squeue", "--noheader", "--states=all", "--array",
		"--user="+strconv.Itoa(os.Getuid()), "-O", queueFormat)
	if err != nil || time.Since(begin) > slowAnswer {
		v.pace = min(2*v.pace, slowest*e.options.Poll)
	} else {
		v.pace = e.options.Poll
	}
	v.failure = err
	if err != nil {
		return err
	}
	v.round++
	v.at = begin
	v.names, v.accounted = map[string]bool{}, map[string]bool{}
	v.records = map[row][]record{}
	v.add(parseQueue(out, e.options.Prefix))
	v.forget(begin)
	return nil
}

func (v *view) add(records []record) {
	for _, r := range records {
		v.records[r.row] = append(v.records[r.row], r)
		v.names[r.Name] = true
	}
}

// account asks sacct for names that squeue does not know. It is asked once in a
// round for each. Where it does not answer, nothing follows for them.
func (e *Executor) account(ctx context.Context, since time.Time, names map[string]bool) {
	v := &e.view
	asked := slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(n string) bool { return v.accounted[n] })
	if v.without {
		return
	}
	hours := int(time.Since(since)/time.Hour) + 24
	for piece := range slices.Chunk(asked, namesAtOnce) {
		out, err := e.slurm.run(ctx, "", "sacct", "-X", "-n", "-P",
			"-S", fmt.Sprintf("now-%dhours", hours), "-E", "now+7days", "--name", strings.Join(piece, ","), "-o", accountFormat)
		if noAccounting(err) {
			e.withoutAccounting(ctx)
			return
		}
		if err != nil {
			e.accountingFails(ctx, err)
			return
		}
		v.accept(parseAccount(out, e.options.Prefix))
		for _, name := range piece {
			v.accounted[name] = true
		}
		v.silent = false
	}
}

// accountingFails says once that accounting does not answer.
func (e *Executor) accountingFails(ctx context.Context, err error) {
	if !e.view.silent && ctx.Err() == nil {
		e.log("accounting does not answer; tasks that squeue does not know stay as they were", "err", err)
	}
	e.view.silent = true
}

// complete reports whether all is known of a name that there is to know.
func (v *view) complete(name string) bool { return v.without || v.accounted[name] }

// accept adds what sacct says: of jobs that squeue does not know, those that
// have ended, since of others it has not heard the end; of those that squeue
// knows, who cancelled them.
func (v *view) accept(records []record) {
	for _, r := range records {
		v.names[r.Name] = true
		known := v.records[r.row]
		i := slices.IndexFunc(known, func(k record) bool { return k.id == r.id || k.target() == r.target() })
		switch {
		case i >= 0 && known[i].by == "":
			known[i].by = r.by
		case i < 0 && states[r.state].over():
			v.records[r.row] = append(known, r)
		}
	}
}

func noAccounting(err error) bool {
	f, ok := errors.AsType[*failed](err)
	return ok && f.exit && strings.Contains(f.said, "accounting storage is disabled")
}

// withoutAccounting goes on with squeue alone, which forgets jobs soon.
func (e *Executor) withoutAccounting(ctx context.Context) {
	e.view.without = true
	settings, err := e.cluster.settings(ctx)
	age, ok := leadingNumber(settings["MinJobAge"])
	switch {
	case err != nil || !ok:
		e.log("the cluster has no accounting: how a job ended is known only while Slurm remembers it")
	case time.Duration(age)*time.Second < minJobAge(e.options.Poll):
		e.log("the cluster has no accounting and forgets ended jobs too soon; raise MinJobAge in slurm.conf",
			"seconds", age, "needed", int(minJobAge(e.options.Poll).Seconds()))
	default:
		e.log("the cluster has no accounting; ended jobs are known for a while", "seconds", age)
	}
}

// minJobAge is how long Slurm has to remember ended jobs where it has no
// accounting.
func minJobAge(poll time.Duration) time.Duration { return 10 * poll }

// tracked is what is remembered of a task from one look to the next. Losing it
// loses time, nothing else.
type tracked struct {
	row   row
	found bool // row is set
	asked time.Time

	startedAt time.Time // as run.json says
	missing   int       // rounds in a row in which Slurm did not know the task
	missingAt time.Time // since when
	round     int       // that was counted last
	hopeless  time.Time // since when it waits for what does not come
	overAt    time.Time // since when Slurm says that it has ended
}

// track gives what is remembered of a task.
func (v *view) track(t app.Task, now time.Time) *tracked {
	k := v.tracked[t.Token]
	if k == nil {
		k = &tracked{}
		v.tracked[t.Token] = k
	}
	k.asked = now
	return k
}

// remembered is how long a task is remembered that nobody asks about.
const remembered = time.Hour

func (v *view) forget(now time.Time) {
	maps.DeleteFunc(v.tracked, func(_ string, k *tracked) bool { return now.Sub(k.asked) > remembered })
}
