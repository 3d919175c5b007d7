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

// A pilot is a process that runs short rows of one batch one after the other, in one slot.
// The row that gets the slot claims further ones, each of which has its own attempt, as
// every job: they only share the lease and the process. The pilot has a goroutine that
// hands rows to the process, polls their status, and claims more while no other user waits
// for the slot. If the process is lost, those rows that had not begun go to another one.
//
// On a cluster each process is a job of its own there, with a directory of its own: what
// the cluster says of an earlier one can't be taken for news of the next.
const (
	// shortRow is up to how many seconds rows take that share a process.
	shortRow = 2
	// chunkSeconds and chunkRows bound the rows of a pilot that have not started: others wait
	// for the slot no longer than that. On a cluster a process costs more, and gets more rows.
	chunkSeconds    = 4
	chunkRows       = 64
	remoteChunkRows = 256
	// pilotTime is how long a pilot takes further rows. Then the slot goes by fair share.
	pilotTime = time.Minute
	// pollEvery is how often the rows of a pilot are polled. On a cluster the pause grows
	// to maxRemotePoll while nothing ends.
	pollEvery       = 20 * time.Millisecond
	gatherTime      = pollEvery / 4
	firstRemotePoll = 100 * time.Millisecond
	maxRemotePoll   = time.Second
	// startedAfter is how long a row runs before its record says so: most have ended by then,
	// and the end says when they started.
	startedAfter = 250 * time.Millisecond
	// pollAhead is how many rows are polled beyond those that have ended.
	pollAhead = 2
	// mostLaunches is how often processes may be lost one after the other that ended no row.
	mostLaunches = 3
	// handOverRetry is how long after a failure rows are handed over again.
	handOverRetry       = pollEvery
	remoteHandOverRetry = 5 * time.Second
	// shutdownTimeout bounds the wait for a process that has nothing to do. A cluster forgets
	// slowly.
	shutdownTimeout       = 20 * time.Second
	remoteShutdownTimeout = 10 * time.Minute
)

type pilot struct {
	*core
	executor *executor
	pilots   app.Pilots
	id       string
	first    *app.Job
	lease    schedule.Lease
	limit    app.ClaimLimit
	begin    time.Time // when a process was first seen to run, before that when it was made

	hasSlot bool        // of the loop
	alone   atomic.Bool // no other user waits for the slot; set by the loop

	gpuFault atomic.Pointer[app.FaultyGPU] // of a GPU that it has; set by the loop

	launches atomic.Int32 // since a row has ended
	cancels  atomic.Int32 // processes that were cancelled on the cluster by hand
	woken    chan struct{}

	// Of the pilot's goroutine.
	alive         bool // the process was started and not seen gone
	runs          bool // it was seen running
	chunks        int  // handed to the process
	last          int  // rows of the last chunk claimed
	exhausted     bool // there were no more
	returnAsked   bool // the process was asked to return rows that have not started
	pause         time.Duration
	handOverAfter time.Time // rows are handed over no earlier, after a failure
	order         []string  // directories of the rows of a process that an earlier runner has started

	mu       sync.Mutex
	launch   int               // the number of the process, on a cluster
	needed   map[*attempt]bool // rows that are not known to have ended
	open     int               // attempts that are not finished
	prepared []*pilotRow       // rows to be handed to the process
	handed   []*pilotRow       // rows that the process may have, in its order
}

// pilotRow is a row in a pilot.
type pilotRow struct {
	*attempt
	news  chan news
	last  *news
	since time.Time // when it was first seen running
}

// newPilot makes the pilot of a first row.
func (c *core) newPilot(e *executor, first *app.Job, lease schedule.Lease, id string) *pilot {
	pilots, _ := e.Executor.(app.Pilots)
	return &pilot{
		core: c, executor: e, pilots: pilots, id: id, limit: e.pilotLimit(id),
		first: first, lease: lease, begin: time.Now(), woken: make(chan struct{}, 1), needed: map[*attempt]bool{},
	}
}

// pilotLimit returns how many rows a pilot claims at a time.
func (e *executor) pilotLimit(id string) app.ClaimLimit {
	p := app.ClaimLimit{Pilot: id, Rows: chunkRows, Seconds: chunkSeconds, MaxRowSeconds: shortRow}
	if e.remote != nil {
		p.Rows = remoteChunkRows
	}
	return p
}

// canPilot reports whether rows may share processes on the executor.
func (c *core) canPilot(e *executor) bool {
	_, able := e.Executor.(app.Pilots)
	return able && c.options.PilotsDir != ""
}

// pilotsDir is the parent of the directories of the executor's pilots.
func (c *core) pilotsDir(e *executor) string {
	if e.remote != nil {
		return filepath.Join(filepath.Dir(e.remote.AttemptsDir()), remotePilotsDir)
	}
	return c.options.PilotsDir
}

// dir is the directory of the process, or of the next one.
func (p *pilot) dir() string {
	name := p.id
	if p.executor.remote != nil {
		p.mu.Lock()
		name = launchName(p.id, p.launch)
		p.mu.Unlock()
	}
	return filepath.Join(p.pilotsDir(p.executor), name)
}

func launchName(id string, launch int) string { return fmt.Sprintf("%s-%d", id, launch) }

// lastLaunch returns the number of the last process of a pilot on a cluster, 0 if it had
// none.
func (p *pilot) lastLaunch() int {
	for n := 1; ; n++ {
		if _, err := os.Lstat(filepath.Join(p.pilotsDir(p.executor), launchName(p.id, n))); err != nil {
			return n - 1
		}
	}
}

// kind is that of the pilots which a job could have.
func (e *executor) kind(l schedule.Lease) pilotKind {
	return pilotKind{Executor: e.Name(), User: l.User, Class: l.Work.Class}
}

// claimLimit returns the limit of further rows for the attempt's claim: zero if its job is not
// known to be short. It is false if the job is better left to the pilots that already wait
// for the cluster.
func (a *attempt) claimLimit(ctx context.Context) (app.ClaimLimit, bool) {
	if !a.canPilot(a.executor) || !a.isShort(ctx) {
		return app.ClaimLimit{}, true
	}
	p := a.executor.pilotLimit(rand.Text())
	if a.executor.remote == nil {
		a.pilotCounts.Add(p.Pilot, a.executor.kind(a.lease)) // before there are claims that name it
		return p, true
	}
	return p, a.pilotCounts.Enter(p.Pilot, a.executor.kind(a.lease))
}

// isShort reports whether the job is known to be so short that it could share a process.
func (a *attempt) isShort(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	h, err := a.jobs.History(ctx, a.lease.Work.Class)
	if err != nil {
		return false
	}
	e := h.Estimate(a.lease.Work.Size)
	return e.Known() && e.Seconds() <= shortRow
}

// startPilot makes the pilot of a claimed job, nil if it has none.
func (a *attempt) startPilot(t app.ClaimLimit, rows []*app.Job) *pilot {
	if len(rows) == 0 && a.job.Private.Pilot != t.Pilot || t.Pilot == "" {
		a.pilotCounts.Remove(t.Pilot)
		return nil
	}
	p := a.newPilot(a.executor, a.job, a.lease, t.Pilot)
	p.last = len(rows)
	return p
}

// claimFurther claims further rows.
func (p *pilot) claimFurther(ctx context.Context) ([]*app.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	further := p.limit
	further.MaxRowSeconds = 0 // the first has ended perhaps, and was short
	rows, err := p.jobs.ClaimRows(ctx, p.first, further)
	p.last = len(rows)
	return rows, err
}

// join adds an attempt to the pilot. Many rows end at about the same time, so their
// results are made durable together.
func (p *pilot) join(a *attempt) {
	a.pilot = p
	if a.remote != nil && p.disk != nil {
		a.remote.Boot = p.boot
	}
	p.mu.Lock()
	p.needed[a] = true
	p.open++
	p.mu.Unlock()
}

// attend gives each row an attempt with a goroutine, after the loop has got its event.
func (p *pilot) attend(ctx context.Context, rows []*app.Job) {
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

// run is the pilot's goroutine. It ends when no row needs the pilot, or with ctx.
func (p *pilot) run(ctx context.Context) {
	defer p.reportEnd(ctx)
	for ctx.Err() == nil {
		if p.pollRows(ctx) {
			sleep(ctx, gatherTime) // those that have ended leave, and count no more
		}
		p.returnRows()
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

// gather waits a moment for further events, which often come together.
func (p *pilot) gather(ctx context.Context) {
	sleep(ctx, gatherTime)
	select {
	case <-p.woken:
	default:
	}
}

func (p *pilot) reportEnd(ctx context.Context) {
	select {
	case p.events <- event{kind: evPilotEnded, pilot: p}:
	case <-ctx.Done():
	}
}

func (p *pilot) unneeded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.needed) == 0
}

// shutdownInBackground ends the idle process and removes its directory.
// If that fails, the process ends by itself, and a cleanup removes the directory.
func (p *pilot) shutdownInBackground(ctx context.Context) {
	dir, pause, most := p.dir(), pollEvery, shutdownTimeout
	if p.executor.remote != nil {
		pause, most = maxRemotePoll, remoteShutdownTimeout
	}
	p.attempts.Go(func() {
		for end := time.Now().Add(most); ctx.Err() == nil && time.Now().Before(end); sleep(ctx, pause) {
			if gone, err := p.pilots.ShutdownPilot(ctx, dir); gone && err == nil {
				if err := os.RemoveAll(dir); err != nil {
					p.options.Log.Warn().Err(err).Msg("could not remove a worker's directory")
				}
				return
			}
		}
	})
}

// claimMore claims further rows before the process runs out of them.
func (p *pilot) claimMore(ctx context.Context) {
	if p.exhausted || !p.alone.Load() || time.Since(p.begin) >= pilotTime {
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
	p.attend(ctx, rows)
}

// addPrepared has the pilot hand the row to its process.
func (p *pilot) addPrepared(a *attempt) {
	p.mu.Lock()
	p.prepared = append(p.prepared, newPilotRow(a))
	p.mu.Unlock()
	p.wake()
}

func newPilotRow(a *attempt) *pilotRow { return &pilotRow{attempt: a, news: make(chan news, 1)} }

func (p *pilot) wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// handOver hands prepared rows to the process, and starts one if none lives. Rows of a lost
// process are handed to another one only after all of them were notified: until then they
// could be mistaken for rows of the next.
func (p *pilot) handOver(ctx context.Context) {
	p.mu.Lock()
	rows := slices.DeleteFunc(slices.Clone(p.prepared), (*pilotRow).over)
	if len(rows) == 0 || p.gpuFault.Load() != nil || !p.alive && slices.ContainsFunc(p.handed, func(f *pilotRow) bool { return !f.over() }) {
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
		if i := slices.Index(p.prepared, f); i >= 0 { // else its attempt has ended in the meantime
			p.prepared = slices.Delete(p.prepared, i, i+1)
			p.handed = append(p.handed, f)
		}
	}
}

// handChunk hands over one chunk.
func (p *pilot) handChunk(ctx context.Context, rows []*pilotRow) error {
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
		if err := task.FeedPilot(dir, p.chunks+1, dirs); err != nil {
			return err
		}
		p.chunks++
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.executor.timeout)
	defer cancel()
	if err := p.pilots.StartPilot(ctx, dir, rows[0].task(), dirs); err != nil {
		return err
	}
	p.alive, p.chunks, p.returnAsked, p.order = true, 1, false, nil
	p.launches.Add(1)
	return nil
}

// handOverFailed notifies the rows why they are not handed over: they will be retried,
// unless the executor can never run them.
func (p *pilot) handOverFailed(ctx context.Context, rows []*pilotRow, err error) {
	no, said := errors.AsType[*fault.Error](err)
	if said && no.Code == fault.Invalid {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range rows {
			o := app.Outcome{Protocol: task.Protocol, Cause: app.CauseCannotStart, Message: no.Message}
			f.deliver(news{TaskStatus: app.TaskStatus{State: app.TaskEnded, Outcome: &o}})
		}
		return
	}
	p.options.Log.Warn().Err(err).Str("pilot", p.id).Int("rows", len(rows)).Msg("could not assign jobs to a worker; retrying")
	p.handOverAfter = time.Now().Add(handOverRetry)
	if p.executor.remote == nil {
		return
	}
	p.handOverAfter = time.Now().Add(remoteHandOverRetry)
	for _, f := range rows {
		if why := f.whyWaiting(f.sharedTrouble(err)); why != (eta.Reason{}) {
			f.sendEvent(ctx, event{kind: evWaiting, reason: why})
		}
	}
}

// follow returns the channel of a row's news. A row that was not fed, as after a restart,
// may be in the process nevertheless.
func (p *pilot) follow(a *attempt) <-chan news {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range slices.Concat(p.prepared, p.handed) {
		if f.attempt == a {
			return f.news
		}
	}
	f := newPilotRow(a)
	p.handed = append(p.handed, f)
	p.wake()
	return f.news
}

// forgetRow forgets a row whose news were received.
func (p *pilot) forgetRow(a *attempt) {
	p.mu.Lock()
	p.handed = slices.DeleteFunc(p.handed, func(f *pilotRow) bool { return f.attempt == a })
	p.mu.Unlock()
}

// over reports whether the row was notified that it has ended or was lost.
func (f *pilotRow) over() bool {
	return f.last != nil && (f.last.State == app.TaskEnded || f.last.State == app.TaskLost)
}

// pollRows polls the status of rows: those at the front, until some have not ended, and those
// that are to be stopped. It sets the pause until the next poll, and reports whether any has
// ended or was lost.
func (p *pilot) pollRows(ctx context.Context) (news bool) {
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
		rows = slices.DeleteFunc(rows, (*pilotRow).over)
	}
	return news
}

// inOrder returns the rows that are not over, in the order of the process.
func (p *pilot) inOrder() []*pilotRow {
	p.mu.Lock()
	rows := slices.DeleteFunc(slices.Clone(p.handed), (*pilotRow).over)
	p.mu.Unlock()
	if p.order == nil {
		return rows
	}
	place := make(map[string]int, len(p.order))
	for i, dir := range p.order {
		place[dir] = i - len(p.order) // rows that it did not receive come last
	}
	slices.SortFunc(rows, func(a, b *pilotRow) int { return cmp.Or(place[a.dir]-place[b.dir], cmp.Compare(a.id, b.id)) })
	return rows
}

func (p *pilot) nextPause() time.Duration {
	if p.executor.remote == nil {
		return pollEvery
	}
	return min(max(2*p.pause, firstRemotePoll), maxRemotePoll)
}

// shareReason gives all waiting rows the reason of the first one.
func (p *pilot) shareReason(rows []*pilotRow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	waits := func(f *pilotRow) bool { return f.last != nil && f.last.State == app.TaskStarting }
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

// returnRows returns to the queue the rows behind one that runs long. Until the process
// confirms this, they may still start there.
func (p *pilot) returnRows() {
	dir := p.dir()
	p.mu.Lock()
	defer p.mu.Unlock()
	long := slices.ContainsFunc(p.handed, func(f *pilotRow) bool {
		return f.last != nil && f.last.State == app.TaskRunning && f.ran(f.last.StartedAt) >= p.options.LongRow
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
		if !f.over() && !task.Exists(f.dir, task.RunFile) && !task.Exists(f.dir, task.OutcomeFile) {
			f.giveBack("the job before it takes long, or its GPU is faulty")
		}
	}
}

// giveBack returns a row to the queue that has not begun and never will.
func (f *pilotRow) giveBack(why string) {
	f.returned.Store(true)
	f.deliver(news{TaskStatus: app.TaskStatus{State: app.TaskLost, Reason: why}})
}

// pollStatus asks the executor for the status of rows, delivers it to them, and returns how
// many have ended, and whether any was lost.
func (p *pilot) pollStatus(ctx context.Context, rows []*pilotRow) (ended int, lost bool) {
	tasks := make([]app.Task, len(rows))
	for i, f := range rows {
		tasks[i] = f.task()
	}
	ctx, cancel := context.WithTimeout(ctx, p.executor.timeout)
	defer cancel()
	statuses, err := p.executor.Status(ctx, tasks)
	if err != nil || len(statuses) != len(rows) {
		if ctx.Err() == nil {
			p.options.Log.Warn().Err(err).Str("pilot", p.id).Msg("could not get the status of a worker's jobs; retrying")
			p.reportSilence(err)
		}
		return 0, false
	}
	for _, s := range statuses {
		ended += count(s.State == app.TaskEnded)
	}
	if ended > 0 {
		p.launches.Store(0) // before the loss of rows is delivered, which depends on it
	}
	if p.alive && slices.ContainsFunc(statuses, cancelled) {
		p.cancels.Add(1)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range rows {
		if !p.runs && !statuses[i].StartedAt.IsZero() {
			p.runs, p.begin = true, time.Now()
			p.pilotCounts.Runs(p.id)
		}
		lost = lost || statuses[i].State == app.TaskLost
		f.deliver(news{TaskStatus: statuses[i]})
	}
	return ended, lost
}

// reportSilence notifies rows that do not run yet that the executor does not answer.
func (p *pilot) reportSilence(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.handed {
		if f.last == nil || f.last.State == app.TaskStarting {
			f.deliver(news{silent: true, why: said(err)})
		}
	}
}

// cancelled reports whether a row was lost before it started because its process was
// cancelled.
func cancelled(s app.TaskStatus) bool { return s.State == app.TaskLost && s.Outcome != nil }

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// ran returns for how long the row has run, or was seen running if the clock was set back.
func (f *pilotRow) ran(startedAt time.Time) time.Duration {
	return max(f.options.Now().Sub(startedAt), time.Since(f.since))
}

// deliver hands on what is new.
func (f *pilotRow) deliver(n news) {
	if n.State == app.TaskRunning && f.since.IsZero() {
		f.since = time.Now()
	}
	if n.State == app.TaskRunning && f.ran(n.StartedAt) < startedAfter || f.last != nil && reflect.DeepEqual(*f.last, n) {
		return
	}
	f.last = &n
	select {
	case <-f.news: // older than this
	default:
	}
	f.news <- n
}

// leave says that the row no longer needs the process.
func (a *attempt) leave() {
	p := a.pilot
	if p == nil {
		return
	}
	p.mu.Lock()
	delete(p.needed, a)
	p.prepared = slices.DeleteFunc(p.prepared, func(f *pilotRow) bool { return f.attempt == a })
	p.mu.Unlock()
	p.forgetRow(a)
	p.wake()
}

// attemptDone says that an attempt is finished.
func (p *pilot) attemptDone() {
	p.mu.Lock()
	p.open--
	p.mu.Unlock()
	p.wake()
}

// front returns the row that runs, as far as it is known.
func (p *pilot) front() app.JobID {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.handed) == 0 {
		return p.first.ID
	}
	return p.handed[0].id
}

// noteWaiting records which users wait, and whether each pilot has the slot for itself.
func (e *executor) noteWaiting(waiting []app.Waiting, d schedule.Decision) {
	started := map[app.JobID]bool{}
	for _, s := range d.Start {
		started[s.ID] = true
	}
	e.crowd = map[schedule.User]int{}
	for _, w := range waiting {
		if u := (schedule.User{Organization: w.Organization, Email: w.Email}); !started[w.ID] {
			if most, known := e.crowd[u]; !known || w.Priority > most {
				e.crowd[u] = w.Priority
			}
		}
	}
	e.reserved = e.share.Reserved(time.Now()) != ""
	for p := range e.pilots {
		p.alone.Store(e.alone(p))
	}
}

// alone reports whether no job waits that would be next if the pilot gave up its slot now:
// one of another user, or of a higher priority.
func (e *executor) alone(p *pilot) bool {
	for user, priority := range e.crowd {
		if priority > p.first.Priority || user != p.lease.User && priority == p.first.Priority {
			return false
		}
	}
	return e.blocked == (eta.Reason{}) && !e.reserved
}
