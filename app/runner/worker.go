package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/eta"
	"molrun/app/runner/schedule"
	"molrun/app/task"
)

// A worker is a process that runs short jobs of one batch one after another in
// one slot. The job that gets the slot claims further ones. Like every job, each has its
// own attempt; they only share the lease and the process. The worker's goroutine hands
// jobs to the process, polls their status, and claims more while no other user waits for
// the slot. If the process is lost, its jobs that had not begun go to a new one.
//
// On a cluster each process is a separate cluster job with its own directory, so that the
// cluster's status of an earlier process can't be mistaken for that of the next.
const (
	// maxShortSeconds is the maximum expected run time, in seconds, of jobs that share a
	// process.
	maxShortSeconds = 2
	// chunkSeconds and chunkRows bound the jobs of a worker that have not started, and so
	// how long others wait for the slot. On a cluster a process costs more, so it gets
	// more jobs.
	chunkSeconds    = 4
	chunkRows       = 64
	remoteChunkRows = 256
	// workerTime is how long a worker takes further jobs. After that, its slot is
	// assigned by fair share.
	workerTime = time.Minute
	// pollEvery is how often the jobs of a worker are polled. On a cluster the pause grows
	// to maxRemotePoll while no job ends.
	pollEvery       = 20 * time.Millisecond
	gatherTime      = pollEvery / 4
	firstRemotePoll = 100 * time.Millisecond
	maxRemotePoll   = time.Second
	// startedAfter is how long a job runs before its start is recorded: most jobs have
	// ended by then, and the record of their end includes the start.
	startedAfter = 250 * time.Millisecond
	// pollAhead is how many jobs are polled after those that have ended.
	pollAhead = 2
	// maxLaunches is how many processes in succession can be lost without any job
	// ending.
	maxLaunches = 3
	// handOverRetry is the delay before handing over jobs is retried after a failure.
	handOverRetry       = pollEvery
	remoteHandOverRetry = 5 * time.Second
	// shutdownTimeout bounds the wait for an idle process to exit. A cluster reports
	// exits late.
	shutdownTimeout       = 20 * time.Second
	remoteShutdownTimeout = 10 * time.Minute
)

type worker struct {
	*core
	executor *executor
	workers  app.Workers
	id       string
	first    *app.Job
	lease    schedule.Lease
	limit    app.ClaimLimit
	begin    time.Time // when a process was first seen running; before that, when the worker was created

	hasSlot   bool        // owned by the loop
	exclusive atomic.Bool // no other user waits for the slot; set by the loop

	gpuFault atomic.Pointer[app.FaultyGPU] // a faulty GPU of its lease; set by the loop

	launches atomic.Int32 // since a job last ended
	cancels  atomic.Int32 // processes canceled on the cluster by hand
	woken    chan struct{}

	// Owned by the worker's goroutine.
	alive         bool // the process was started and is not known to have exited
	runs          bool // the process was seen running
	chunks        int  // number handed to the process
	last          int  // number of jobs in the last claimed chunk
	exhausted     bool // there were no more jobs to claim
	returnAsked   bool // the process was asked to return jobs that have not started
	pause         time.Duration
	handOverAfter time.Time // after a failure, no jobs are handed over before this
	order         []string  // job directories of a process that an earlier runner started

	mu       sync.Mutex
	launch   int               // number of the process, on a cluster
	needed   map[*attempt]bool // jobs not known to have ended
	open     int               // number of unfinished attempts
	prepared []*workerJob      // jobs to hand to the process
	handed   []*workerJob      // jobs that the process may have, in its order
}

// workerJob is a job in a worker.
type workerJob struct {
	*attempt
	news  chan statusUpdate
	last  *statusUpdate
	since time.Time // when it was first seen running
}

// newWorker returns the worker for its first job.
func (c *core) newWorker(e *executor, first *app.Job, lease schedule.Lease, id string) *worker {
	workers, _ := e.Executor.(app.Workers)
	return &worker{
		core: c, executor: e, workers: workers, id: id, limit: e.workerLimit(id),
		first: first, lease: lease, begin: time.Now(), woken: make(chan struct{}, 1), needed: map[*attempt]bool{},
	}
}

// workerLimit returns how many jobs a worker claims at a time.
func (e *executor) workerLimit(id string) app.ClaimLimit {
	p := app.ClaimLimit{Worker: id, Rows: chunkRows, Seconds: chunkSeconds, MaxRowSeconds: maxShortSeconds}
	if e.remote != nil {
		p.Rows = remoteChunkRows
	}
	return p
}

// canWorker reports whether jobs can share processes on the executor.
func (c *core) canWorker(e *executor) bool {
	_, able := e.Executor.(app.Workers)
	return able && c.options.WorkersDir != ""
}

// workersDir returns the parent directory of the executor's workers.
func (c *core) workersDir(e *executor) string {
	if e.remote != nil {
		return filepath.Join(filepath.Dir(e.remote.AttemptsDir()), remoteWorkersDir)
	}
	return c.options.WorkersDir
}

// dir returns the directory of the current process, or of the next one.
func (p *worker) dir() string {
	name := p.id
	if p.executor.remote != nil {
		p.mu.Lock()
		name = launchName(p.id, p.launch)
		p.mu.Unlock()
	}
	return filepath.Join(p.workersDir(p.executor), name)
}

func launchName(id string, launch int) string { return fmt.Sprintf("%s-%d", id, launch) }

// lastLaunch returns the number of a worker's last process on a cluster, 0 if there was
// none.
func (p *worker) lastLaunch() int {
	for n := 1; ; n++ {
		if _, err := os.Lstat(filepath.Join(p.workersDir(p.executor), launchName(p.id, n))); err != nil {
			return n - 1
		}
	}
}

// kind returns the kind of worker that could run the job with lease l.
func (e *executor) kind(l schedule.Lease) workerKind {
	return workerKind{Executor: e.Name(), User: l.User, Class: l.Work.Class}
}

// claimLimit returns the limit for the further jobs of the attempt's claim: zero if its
// job is not known to be short. It returns false if the job is better left to the workers
// already waiting for the cluster.
func (a *attempt) claimLimit(ctx context.Context) (app.ClaimLimit, bool) {
	if !a.canWorker(a.executor) || !a.isShort(ctx) {
		return app.ClaimLimit{}, true
	}
	p := a.executor.workerLimit(rand.Text())
	if a.executor.remote == nil {
		a.workerCounts.Add(p.Worker, a.executor.kind(a.lease)) // before any claim names it
		return p, true
	}
	return p, a.workerCounts.Enter(p.Worker, a.executor.kind(a.lease))
}

// isShort reports whether the job is known to be short enough to share a process.
func (a *attempt) isShort(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	h, err := a.jobs.History(ctx, a.lease.Work.Class)
	if err != nil {
		return false
	}
	e := h.Estimate(a.lease.Work.Size)
	return e.Known() && e.Seconds() <= maxShortSeconds
}

// startWorker creates the worker of a claimed job, or returns nil if the job has none.
func (a *attempt) startWorker(t app.ClaimLimit, rows []*app.Job) *worker {
	if len(rows) == 0 && a.job.Private.Worker != t.Worker || t.Worker == "" {
		a.workerCounts.Remove(t.Worker)
		return nil
	}
	p := a.newWorker(a.executor, a.job, a.lease, t.Worker)
	p.last = len(rows)
	return p
}

func (p *worker) claimFurther(ctx context.Context) ([]*app.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	further := p.limit
	further.MaxRowSeconds = 0 // the first job was short, and may have ended
	rows, err := p.jobs.ClaimRows(ctx, p.first, further)
	p.last = len(rows)
	return rows, err
}

// join adds an attempt to the worker. Many jobs of a worker end at about the same time, so
// their results are made durable together.
func (p *worker) join(a *attempt) {
	a.worker = p
	if a.remote != nil && p.disk != nil {
		a.remote.Boot = p.boot
	}
	p.mu.Lock()
	p.needed[a] = true
	p.open++
	p.mu.Unlock()
}

// startAttempts creates an attempt with a goroutine for each job, after the loop has
// received its event.
func (p *worker) startAttempts(ctx context.Context, rows []*app.Job) {
	for _, j := range rows {
		a := &attempt{core: p.core, executor: p.executor, id: j.ID, lease: p.lease, claimed: true, stop: make(chan struct{}), gpuLost: make(chan struct{})}
		if p.executor.remote != nil {
			a.reason = p.executor.waiting("it is being submitted to the cluster")
		}
		a.setJob(j)
		p.join(a)
		a.sendEvent(ctx, event{kind: evJoined})
		p.attempts.Go(func() {
			a.runFrom(ctx, situation{})
			a.leave()
			p.attemptDone()
			a.sendEvent(ctx, event{kind: evDone})
		})
	}
}

// run is the worker's goroutine. It returns when no job needs the worker, or ctx ends.
func (p *worker) run(ctx context.Context) {
	defer p.reportEnd(ctx)
	for ctx.Err() == nil {
		if p.pollJobs(ctx) {
			sleep(ctx, gatherTime) // let ended jobs leave, so that they no longer count
		}
		p.returnJobs()
		p.returnUnbegun()
		p.handOver(ctx)
		p.claimMore(ctx)
		if p.unneeded() {
			break
		}
		select {
		case <-p.woken:
			p.gather(ctx)
		case <-time.After(p.pause):
		case <-ctx.Done():
		}
	}
	if ctx.Err() == nil {
		p.shutdownInBackground(ctx)
	}
}

// gather waits briefly for further events, which often arrive together.
func (p *worker) gather(ctx context.Context) {
	sleep(ctx, gatherTime)
	select {
	case <-p.woken:
	default:
	}
}

func (p *worker) reportEnd(ctx context.Context) {
	select {
	case p.events <- event{kind: evWorkerEnded, worker: p}:
	case <-ctx.Done():
	}
}

func (p *worker) unneeded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.needed) == 0
}

// shutdownInBackground ends the idle process and removes its directory. If that fails,
// the process exits on its own, and a cleanup removes the directory.
func (p *worker) shutdownInBackground(ctx context.Context) {
	dir, pause, most := p.dir(), pollEvery, shutdownTimeout
	if p.executor.remote != nil {
		pause, most = maxRemotePoll, remoteShutdownTimeout
	}
	p.attempts.Go(func() {
		for end := time.Now().Add(most); ctx.Err() == nil && time.Now().Before(end); sleep(ctx, pause) {
			if gone, err := p.workers.ShutdownWorker(ctx, dir); gone && err == nil {
				if err := os.RemoveAll(dir); err != nil {
					p.options.Log.Warn().Err(err).Msg("could not remove a worker's directory")
				}
				return
			}
		}
	})
}

// claimMore claims further jobs before the process runs out of them.
func (p *worker) claimMore(ctx context.Context) {
	if p.exhausted || !p.exclusive.Load() || time.Since(p.begin) >= workerTime {
		return
	}
	p.mu.Lock()
	enough := 2*len(p.needed) > max(p.last, 1) || p.open > 2*p.limit.Rows
	p.mu.Unlock()
	if enough {
		return
	}
	rows, err := p.claimFurther(ctx)
	if err != nil {
		if ctx.Err() == nil {
			p.options.Log.Warn().Err(err).Msg("could not claim more jobs for a worker")
		}
		p.exhausted = true
	}
	p.exhausted = p.exhausted || len(rows) == 0
	p.startAttempts(ctx, rows)
}

// addPrepared queues the attempt's job to be handed to the process.
func (p *worker) addPrepared(a *attempt) {
	p.mu.Lock()
	p.prepared = append(p.prepared, newWorkerRow(a))
	p.mu.Unlock()
	p.wake()
}

func newWorkerRow(a *attempt) *workerJob {
	return &workerJob{attempt: a, news: make(chan statusUpdate, 1)}
}

func (p *worker) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// handOver hands prepared jobs to the process, and starts one if none is alive. Jobs of a
// lost process are handed to a new one only after all of them were notified: until then
// they could be mistaken for jobs of the new process.
func (p *worker) handOver(ctx context.Context) {
	p.mu.Lock()
	rows := slices.DeleteFunc(slices.Clone(p.prepared), (*workerJob).hasEnded)
	if len(rows) == 0 || p.gpuFault.Load() != nil || !p.alive && slices.ContainsFunc(p.handed, func(f *workerJob) bool { return !f.hasEnded() }) {
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	if time.Now().Before(p.handOverAfter) {
		return
	}
	if err := p.handChunk(ctx, rows); err != nil {
		if ctx.Err() == nil {
			p.handOverFailed(ctx, rows, err)
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range rows {
		if i := slices.Index(p.prepared, f); i >= 0 { // otherwise its attempt has ended in the meantime
			p.prepared = slices.Delete(p.prepared, i, i+1)
			p.handed = append(p.handed, f)
		}
	}
}

// handChunk hands over one chunk of jobs.
func (p *worker) handChunk(ctx context.Context, rows []*workerJob) error {
	if !p.alive && p.executor.remote != nil {
		p.mu.Lock()
		p.launch++
		p.mu.Unlock()
	}
	dir := p.dir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	dirs := make([]string, len(rows))
	for i, a := range rows {
		dirs[i] = a.dir
		if err := task.ShareLock(dir, a.dir); err != nil {
			return err
		}
	}
	if p.alive {
		if err := task.AssignTasks(dir, p.chunks+1, dirs); err != nil {
			return err
		}
		p.chunks++
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.executor.timeout)
	defer cancel()
	if err := p.workers.StartWorker(ctx, dir, rows[0].task(), dirs); err != nil {
		return err
	}
	p.alive, p.chunks, p.returnAsked, p.order = true, 1, false, nil
	p.launches.Add(1)
	return nil
}

// handOverFailed informs the jobs why they were not handed over. They are retried unless
// the executor can never run them.
func (p *worker) handOverFailed(ctx context.Context, rows []*workerJob, err error) {
	no, said := errors.AsType[*fault.Error](err)
	if said && no.Code == fault.Invalid {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range rows {
			o := app.Outcome{Protocol: task.Protocol, Cause: app.CauseCannotStart, Message: no.Message}
			f.deliver(statusUpdate{TaskStatus: app.TaskStatus{State: app.TaskEnded, Outcome: &o}})
		}
		return
	}
	p.options.Log.Warn().Err(err).Str("worker", p.id).Int("rows", len(rows)).Msg("could not assign jobs to a worker; retrying")
	p.handOverAfter = time.Now().Add(handOverRetry)
	if p.executor.remote == nil {
		return
	}
	p.handOverAfter = time.Now().Add(remoteHandOverRetry)
	for _, f := range rows {
		if why := f.whyWaiting(f.asUnavailable(err)); why != (eta.Reason{}) {
			f.sendEvent(ctx, event{kind: evWaiting, reason: why})
		}
	}
}

// follow returns the channel of a job's status updates. A job that was not handed over by
// this runner, as after a restart, may still be in the process.
func (p *worker) follow(a *attempt) <-chan statusUpdate {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range slices.Concat(p.prepared, p.handed) {
		if f.attempt == a {
			return f.news
		}
	}
	f := newWorkerRow(a)
	p.handed = append(p.handed, f)
	p.wake()
	return f.news
}

// forgetJob removes a job whose status updates are no longer needed.
func (p *worker) forgetJob(a *attempt) {
	p.mu.Lock()
	p.handed = slices.DeleteFunc(p.handed, func(f *workerJob) bool { return f.attempt == a })
	p.mu.Unlock()
}

// hasEnded reports whether the attempt was notified that its task has ended or was lost.
func (f *workerJob) hasEnded() bool {
	return f.last != nil && (f.last.State == app.TaskEnded || f.last.State == app.TaskLost)
}

// pollJobs polls the first jobs, and continues in order as long as it finds some that
// have ended. It also polls the jobs to be stopped. It sets the pause until the next
// poll, and reports whether any job has ended or was lost.
func (p *worker) pollJobs(ctx context.Context) (news bool) {
	rows := p.inOrder()
	p.pause = p.nextPause()
	for len(rows) > 0 && ctx.Err() == nil {
		n := min(len(rows), pollAhead)
		some := slices.Clone(rows[:n])
		for _, f := range rows[n:] {
			if f.stopAsked() || !p.alive {
				some = append(some, f)
			}
		}
		ended, lost := p.pollStatus(ctx, some)
		if lost {
			p.alive = false
		}
		p.shareReason(rows)
		news = news || ended > 0 || lost
		if ended == 0 {
			return news
		}
		p.pause = min(p.pause, firstRemotePoll)
		rows = slices.DeleteFunc(rows, (*workerJob).hasEnded)
	}
	return news
}

// inOrder returns the jobs that have not ended, in the order of the process.
func (p *worker) inOrder() []*workerJob {
	p.mu.Lock()
	rows := slices.DeleteFunc(slices.Clone(p.handed), (*workerJob).hasEnded)
	p.mu.Unlock()
	if p.order == nil {
		return rows
	}
	place := make(map[string]int, len(p.order))
	for i, dir := range p.order {
		place[dir] = i - len(p.order) // jobs that the process did not receive come last
	}
	slices.SortFunc(rows, func(a, b *workerJob) int { return cmp.Or(place[a.dir]-place[b.dir], cmp.Compare(a.id, b.id)) })
	return rows
}

func (p *worker) nextPause() time.Duration {
	if p.executor.remote == nil {
		return pollEvery
	}
	return min(max(2*p.pause, firstRemotePoll), maxRemotePoll)
}

// shareReason gives all waiting jobs the reason of the first.
func (p *worker) shareReason(rows []*workerJob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waits := func(f *workerJob) bool { return f.last != nil && f.last.State == app.TaskStarting }
	i := slices.IndexFunc(rows, waits)
	if i < 0 {
		return
	}
	first := *rows[i].last
	for _, f := range rows {
		if waits(f) || f.last == nil && first.Reason != "" {
			f.deliver(first)
		}
	}
}

// returnJobs returns to the queue the jobs behind a long-running one. Until the process
// confirms this, they may still start there.
func (p *worker) returnJobs() {
	dir := p.dir()
	p.mu.Lock()
	defer p.mu.Unlock()
	long := slices.ContainsFunc(p.handed, func(f *workerJob) bool {
		return f.last != nil && f.last.State == app.TaskRunning && f.ran(f.last.StartedAt) >= p.options.LongJob
	})
	faulty := p.gpuFault.Load() != nil
	if !p.alive || len(p.prepared)+len(p.handed) < 2 && !faulty || !p.returnAsked && !long && !faulty {
		return
	}
	if !p.returnAsked {
		p.returnAsked, p.exhausted = task.AskReturn(dir) == nil, true
	}
	if !task.Returned(dir) {
		return
	}
	for _, f := range slices.Concat(p.prepared, p.handed) {
		if !f.hasEnded() && !task.Exists(f.dir, task.RunFile) && !task.Exists(f.dir, task.OutcomeFile) {
			f.markReturned("the previous job runs long, or the GPU is faulty")
		}
	}
}

// markReturned returns to the queue a job that has not begun and never will in this worker.
func (f *workerJob) markReturned(why string) {
	f.returned.Store(true)
	f.deliver(statusUpdate{TaskStatus: app.TaskStatus{State: app.TaskLost, Reason: why}})
}

// pollStatus gets the status of jobs from the executor and delivers it. It returns how
// many have ended, and whether any was lost.
func (p *worker) pollStatus(ctx context.Context, rows []*workerJob) (ended int, lost bool) {
	tasks := make([]app.Task, len(rows))
	for i, f := range rows {
		tasks[i] = f.task()
	}
	ctx, cancel := context.WithTimeout(ctx, p.executor.timeout)
	defer cancel()
	statuses, err := p.executor.Status(ctx, tasks)
	if err != nil || len(statuses) != len(rows) {
		if ctx.Err() == nil {
			p.options.Log.Warn().Err(err).Str("worker", p.id).Msg("could not get the status of a worker's jobs; retrying")
			p.reportSilence(err)
		}
		return 0, false
	}
	for _, s := range statuses {
		ended += count(s.State == app.TaskEnded)
	}
	if ended > 0 {
		p.launches.Store(0) // before losses are delivered, because neverBegan reads it
	}
	if p.alive && slices.ContainsFunc(statuses, cancelled) {
		p.cancels.Add(1)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range rows {
		if !p.runs && !statuses[i].StartedAt.IsZero() {
			p.runs, p.begin = true, time.Now()
			p.workerCounts.Runs(p.id)
		}
		lost = lost || statuses[i].State == app.TaskLost
		f.deliver(statusUpdate{TaskStatus: statuses[i]})
	}
	return ended, lost
}

// reportSilence notifies jobs that do not run yet that the executor does not respond.
func (p *worker) reportSilence(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.handed {
		if f.last == nil || f.last.State == app.TaskStarting {
			f.deliver(statusUpdate{unresponsive: true, why: unavailableSuffix(err)})
		}
	}
}

// cancelled reports whether a job was lost before it started because its process was
// canceled.
func cancelled(s app.TaskStatus) bool { return s.State == app.TaskLost && s.Outcome != nil }

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// ran returns how long the job has run, or has been seen running if the clock was set
// back.
func (f *workerJob) ran(startedAt time.Time) time.Duration {
	return max(f.options.Now().Sub(startedAt), time.Since(f.since))
}

// deliver sends n unless it equals the last update, or the job has only just started.
func (f *workerJob) deliver(n statusUpdate) {
	if n.State == app.TaskRunning && f.since.IsZero() {
		f.since = time.Now()
	}
	if n.State == app.TaskRunning && f.ran(n.StartedAt) < startedAfter || f.last != nil && reflect.DeepEqual(*f.last, n) {
		return
	}
	f.last = &n
	select {
	case <-f.news: // drop an older update
	default:
	}
	f.news <- n
}

// leave removes the attempt from the jobs that need the process.
func (a *attempt) leave() {
	p := a.worker
	if p == nil {
		return
	}
	p.mu.Lock()
	delete(p.needed, a)
	p.prepared = slices.DeleteFunc(p.prepared, func(f *workerJob) bool { return f.attempt == a })
	p.mu.Unlock()
	p.forgetJob(a)
	p.wake()
}

// attemptDone records that an attempt is finished.
func (p *worker) attemptDone() {
	p.mu.Lock()
	p.open--
	p.mu.Unlock()
	p.wake()
}

// front returns the ID of the running job, as far as known.
func (p *worker) front() app.JobID {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.handed) == 0 {
		return p.first.ID
	}
	return p.handed[0].id
}

// noteWaiting records which users have jobs waiting, and whether each worker has the slot
// for itself.
func (e *executor) noteWaiting(waiting []app.Waiting, d schedule.Decision) {
	started := map[app.JobID]bool{}
	for _, s := range d.Start {
		started[s.ID] = true
	}
	e.waitingUsers = map[schedule.User]int{}
	for _, w := range waiting {
		if u := (schedule.User{Organization: w.Organization, Email: w.Email}); !started[w.ID] {
			if most, known := e.waitingUsers[u]; !known || w.Priority > most {
				e.waitingUsers[u] = w.Priority
			}
		}
	}
	e.reserved = e.share.Reserved(time.Now()) != ""
	for p := range e.workers {
		p.exclusive.Store(e.hasNoCompetitor(p))
	}
}

// hasNoCompetitor reports whether no waiting job would get the worker's slot if it were free now:
// neither a job of another user nor one of a higher priority.
func (e *executor) hasNoCompetitor(p *worker) bool {
	for user, priority := range e.waitingUsers {
		if priority > p.first.Priority || user != p.lease.User && priority == p.first.Priority {
			return false
		}
	}
	return e.blocked == (eta.Reason{}) && !e.reserved
}
