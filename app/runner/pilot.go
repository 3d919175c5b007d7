package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"molrun/app"
	"molrun/app/eta"
	"molrun/app/fault"
	"molrun/app/runner/turns"
	"molrun/app/task"
)

// A pilot is a process that runs short rows of one batch one after the other, in one slot.
// The row that gets the slot claims further ones, each of which has its own attempt, as
// every job: they only share the lease and the process. The pilot has a goroutine that
// hands rows to the process, asks how they stand, and claims more while nobody else waits
// for the slot. If the process is lost, those rows that had not begun go to another one.
const (
	// shortRow is up to how many seconds rows take that share a process.
	shortRow = 2
	// portionSeconds and portionRows bound what a pilot has before it: others wait for the
	// slot no longer than that.
	portionSeconds = 4
	portionRows    = 64
	// mostOpen bounds the rows of a pilot whose end is not recorded yet.
	mostOpen = 2 * portionRows
	// pilotTime is how long a pilot takes further rows. Then it is somebody's next turn.
	pilotTime = time.Minute
	// lookEvery is how often the rows of a pilot are looked at.
	lookEvery = 20 * time.Millisecond
	// startedAfter is how long a row runs before its record says so: most have ended by then,
	// and the end says when they started.
	startedAfter = 250 * time.Millisecond
	// lookBeyond is how many rows are looked at beyond those that have ended.
	lookBeyond = 2
	// mostLaunches is how often processes may be lost one after the other that ended no row.
	mostLaunches = 3
	// landTimeout bounds the wait for a process that has nothing to do.
	landTimeout = 20 * time.Second
)

type pilot struct {
	*core
	executor *executor
	pilots   app.Pilots
	id, dir  string
	first    *app.Job
	lease    turns.Lease
	begin    time.Time

	hasSlot bool        // of the loop
	alone   atomic.Bool // the loop says that nobody else waits for the slot

	launches atomic.Int32 // since a row has ended
	nudge    chan struct{}

	// Of the pilot's goroutine.
	alive    bool // the process was started and not seen gone
	portions int  // that it was given
	last     int  // rows of the last portion claimed
	dry      bool // there were no more
	asked    bool // the process was asked to return what has not begun

	mu       sync.Mutex
	needed   map[*attempt]bool // rows that are not known to have ended
	open     int               // attempts that are not finished
	prepared []*flying         // rows to be handed to the process
	flying   []*flying         // rows that the process may have, in its order
}

// flying is a row in a pilot.
type flying struct {
	*attempt
	news chan news
	last *news
}

// newPilot makes the pilot of a first row.
func (c *core) newPilot(e *executor, first *app.Job, lease turns.Lease, id string) *pilot {
	pilots, _ := e.Executor.(app.Pilots)
	return &pilot{
		core: c, executor: e, pilots: pilots, id: id, dir: filepath.Join(c.options.PilotsDir, id),
		first: first, lease: lease, begin: time.Now(), nudge: make(chan struct{}, 1), needed: map[*attempt]bool{},
	}
}

// canPilot reports whether rows may share processes on the executor.
func (c *core) canPilot(e *executor) bool {
	_, able := e.Executor.(app.Pilots)
	return able && c.options.PilotsDir != ""
}

// takeOff makes a claimed row the first of a pilot, if there are others like it and all are
// short. It returns them with the pilot.
func (a *attempt) takeOff(ctx context.Context) (*pilot, []*app.Job) {
	if !a.canPilot(a.executor) || a.job.Private.Batch == "" || a.number > 1 || !a.isShort(ctx) {
		return nil, nil
	}
	p := a.newPilot(a.executor, a.job, a.lease, rand.Text())
	a.flights.add(p) // before there are claims that name it
	rows, err := p.claim(ctx)
	if err == nil && len(rows) > 0 {
		return p, rows
	}
	if err != nil {
		// In doubt the record says whether it was changed.
		a.log.Warn().Err(err).Msg("no further rows can be claimed")
		for b := serviceBackoff(); ctx.Err() == nil; b.wait(ctx) {
			j, err := a.findClaim(ctx)
			if err == nil && j.Private.Pilot == p.id {
				return p, nil
			}
			if err == nil || errors.Is(err, fault.NotFound) {
				break
			}
		}
	}
	a.flights.remove(p)
	return nil, nil
}

// isShort reports whether the rows are known to be so short that they share a process.
func (a *attempt) isShort(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	h, err := a.jobs.History(ctx, a.job.Private.Class)
	if err != nil {
		return false
	}
	e := h.Estimate(a.job.Private.Size)
	return e.Known() && e.Seconds() <= shortRow
}

// claim claims further rows.
func (p *pilot) claim(ctx context.Context) ([]*app.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	rows, err := p.jobs.ClaimRows(ctx, p.first, app.Portion{Pilot: p.id, Rows: portionRows, Seconds: portionSeconds})
	p.last = len(rows)
	return rows, err
}

// board makes an attempt one of the pilot's.
func (p *pilot) board(a *attempt) {
	a.pilot = p
	p.mu.Lock()
	p.needed[a] = true
	p.open++
	p.mu.Unlock()
}

// attend gives each row an attempt with a goroutine, after the loop was told of it.
func (p *pilot) attend(ctx context.Context, rows []*app.Job) {
	for _, j := range rows {
		a := &attempt{core: p.core, executor: p.executor, id: j.ID, lease: p.lease, claimed: true, stop: make(chan struct{})}
		a.setJob(j)
		p.board(a)
		a.tell(ctx, event{kind: evJoined})
		p.attempts.Go(func() {
			a.run(ctx, situation{})
			a.leave()
			p.done()
			a.tell(ctx, event{kind: evDone})
		})
	}
}

// run is the pilot's goroutine. It ends when no row needs the pilot, or with ctx.
func (p *pilot) run(ctx context.Context) {
	defer p.tell(ctx)
	for ctx.Err() == nil {
		p.look(ctx)
		p.giveBack()
		p.hand(ctx)
		p.pull(ctx)
		if p.unneeded() {
			break
		}
		select {
		case <-p.nudge:
			select { // others come with it
			case <-time.After(lookEvery / 4):
			case <-ctx.Done():
			}
		case <-time.After(lookEvery):
		case <-ctx.Done():
		}
	}
	if ctx.Err() == nil {
		p.landInBackground(ctx)
	}
}

func (p *pilot) tell(ctx context.Context) {
	select {
	case p.events <- event{kind: evLanded, pilot: p}:
	case <-ctx.Done():
	}
}

func (p *pilot) unneeded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.needed) == 0
}

// landInBackground ends the process, which has nothing to do, and removes its directory.
// If that fails, the process ends by itself, and a sweep removes the directory.
func (p *pilot) landInBackground(ctx context.Context) {
	p.attempts.Go(func() {
		if err := task.ClosePilot(p.dir); err != nil {
			return
		}
		for end := time.Now().Add(landTimeout); ctx.Err() == nil && time.Now().Before(end); sleep(ctx, lookEvery) {
			if locked, err := task.Locked(p.dir); !locked && err == nil {
				if err := os.RemoveAll(p.dir); err != nil {
					p.options.Log.Warn().Err(err).Msg("a pilot's directory can't be removed")
				}
				return
			}
		}
	})
}

// pull claims further rows before the process runs dry.
func (p *pilot) pull(ctx context.Context) {
	if p.dry || !p.alone.Load() || time.Since(p.begin) >= pilotTime {
		return
	}
	p.mu.Lock()
	enough := 2*len(p.needed) > max(p.last, 1) || p.open > mostOpen
	p.mu.Unlock()
	if enough {
		return
	}
	rows, err := p.claim(ctx)
	if err != nil {
		if ctx.Err() == nil {
			p.options.Log.Warn().Err(err).Msg("no further rows can be claimed for a pilot")
		}
		p.dry = true
	}
	p.dry = p.dry || len(rows) == 0
	p.attend(ctx, rows)
}

// feed has the pilot hand the row to its process.
func (p *pilot) feed(a *attempt) {
	p.mu.Lock()
	p.prepared = append(p.prepared, newFlying(a))
	p.mu.Unlock()
	p.wake()
}

func newFlying(a *attempt) *flying { return &flying{attempt: a, news: make(chan news, 1)} }

func (p *pilot) wake() {
	select {
	case p.nudge <- struct{}{}:
	default:
	}
}

// hand gives the process the rows that were prepared, and starts one if none lives. Rows
// of a process that is gone come to another one only once all of them were told so: until
// then they could be taken for those of the next.
func (p *pilot) hand(ctx context.Context) {
	p.mu.Lock()
	rows := slices.DeleteFunc(slices.Clone(p.prepared), (*flying).gone)
	if len(rows) == 0 || !p.alive && slices.ContainsFunc(p.flying, func(f *flying) bool { return !f.gone() }) {
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	err := p.give(ctx, rows)
	if err != nil && ctx.Err() == nil {
		p.options.Log.Warn().Err(err).Str("pilot", p.id).Int("rows", len(rows)).Msg("rows can't be handed to their process; will try again")
	}
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range rows {
		if i := slices.Index(p.prepared, f); i >= 0 { // else its attempt has ended meanwhile
			p.prepared = slices.Delete(p.prepared, i, i+1)
			p.flying = append(p.flying, f)
		}
	}
}

// give hands over one portion.
func (p *pilot) give(ctx context.Context, rows []*flying) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	dirs := make([]string, len(rows))
	for i, a := range rows {
		dirs[i] = a.dir
		if err := task.ShareLock(p.dir, a.dir); err != nil {
			return err
		}
	}
	if p.alive {
		if err := task.FeedPilot(p.dir, p.portions+1, dirs); err != nil {
			return err
		}
		p.portions++
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.executor.timeout)
	defer cancel()
	if err := p.pilots.StartPilot(ctx, p.dir, rows[0].task(), dirs); err != nil {
		return err
	}
	p.alive, p.portions, p.asked = true, 1, false
	p.launches.Add(1)
	return nil
}

// follow returns the channel of a row's news. A row that was not fed, as after a restart,
// may be in the process nevertheless.
func (p *pilot) follow(a *attempt) <-chan news {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range slices.Concat(p.prepared, p.flying) {
		if f.attempt == a {
			return f.news
		}
	}
	f := newFlying(a)
	p.flying = append(p.flying, f)
	p.wake()
	return f.news
}

// drop forgets a row whose news were taken.
func (p *pilot) drop(a *attempt) {
	p.mu.Lock()
	p.flying = slices.DeleteFunc(p.flying, func(f *flying) bool { return f.attempt == a })
	p.mu.Unlock()
}

// gone reports whether the row was told that it has ended or was lost.
func (f *flying) gone() bool {
	return f.last != nil && (f.last.State == app.TaskEnded || f.last.State == app.TaskLost)
}

// look asks how the rows stand: those at the front, until some have not ended, and those
// that are to be stopped.
func (p *pilot) look(ctx context.Context) {
	p.mu.Lock()
	rows := slices.DeleteFunc(slices.Clone(p.flying), (*flying).gone)
	p.mu.Unlock()
	for len(rows) > 0 && ctx.Err() == nil {
		n := min(len(rows), lookBeyond)
		some := slices.Clone(rows[:n])
		for _, f := range rows[n:] {
			if f.stopAsked() || !p.alive {
				some = append(some, f)
			}
		}
		ended, lost := p.ask(ctx, some)
		if lost {
			p.alive = false
		}
		if ended == 0 {
			return
		}
		p.launches.Store(0)
		rows = slices.DeleteFunc(rows, (*flying).gone)
	}
}

// giveBack gives rows back to the queue that stand behind one that takes long. Until the
// process says so, they may begin there.
func (p *pilot) giveBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	long := slices.ContainsFunc(p.flying, func(f *flying) bool {
		return f.last != nil && f.last.State == app.TaskRunning && time.Since(f.last.StartedAt) >= p.options.LongRow
	})
	if !p.alive || len(p.prepared)+len(p.flying) < 2 || !p.asked && !long {
		return
	}
	if !p.asked {
		p.asked, p.dry = task.AskReturn(p.dir) == nil, true
	}
	if !task.Returned(p.dir) {
		return
	}
	for _, f := range slices.Concat(p.prepared, p.flying) {
		if !f.gone() && !task.Exists(f.dir, task.RunFile) && !task.Exists(f.dir, task.OutcomeFile) {
			f.returned.Store(true)
			f.deliver(news{TaskStatus: app.TaskStatus{State: app.TaskLost, Reason: "the row before it takes long"}})
		}
	}
}

// ask asks the executor for rows, tells them, and returns how many have ended, and whether
// any was lost.
func (p *pilot) ask(ctx context.Context, rows []*flying) (ended int, lost bool) {
	tasks := make([]app.Task, len(rows))
	for i, f := range rows {
		tasks[i] = f.task()
	}
	ctx, cancel := context.WithTimeout(ctx, p.executor.timeout)
	defer cancel()
	statuses, err := p.executor.Status(ctx, tasks)
	if err != nil || len(statuses) != len(rows) {
		if ctx.Err() == nil {
			p.options.Log.Warn().Err(err).Str("pilot", p.id).Msg("the executor can't tell how the rows of a pilot stand; will ask again")
		}
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range rows {
		ended += count(statuses[i].State == app.TaskEnded)
		lost = lost || statuses[i].State == app.TaskLost
		f.deliver(news{TaskStatus: statuses[i]})
	}
	return ended, lost
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// deliver hands on what is new.
func (f *flying) deliver(n news) {
	if n.State == app.TaskRunning && time.Since(n.StartedAt) < startedAfter || f.last != nil && reflect.DeepEqual(*f.last, n) {
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
	p.prepared = slices.DeleteFunc(p.prepared, func(f *flying) bool { return f.attempt == a })
	p.mu.Unlock()
	p.drop(a)
	p.wake()
}

// flights are the pilots of a runner, by name.
type flights struct {
	mu  sync.Mutex
	all map[string]*pilot
}

func (f *flights) add(p *pilot) {
	f.mu.Lock()
	f.all[p.id] = p
	f.mu.Unlock()
}

func (f *flights) remove(p *pilot) {
	f.mu.Lock()
	delete(f.all, p.id)
	f.mu.Unlock()
}

// has reports whether a pilot is one of this runner's.
func (f *flights) has(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[id] != nil
}

// done says that an attempt is finished.
func (p *pilot) done() {
	p.mu.Lock()
	p.open--
	p.mu.Unlock()
	p.wake()
}

// front returns the row that runs, as far as it is known.
func (p *pilot) front() app.JobID {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.flying) == 0 {
		return p.first.ID
	}
	return p.flying[0].id
}

// lookAround notes who waits, and tells the pilots whether somebody else does.
func (e *executor) lookAround(waiting []app.Waiting, d turns.Decision) {
	started := map[app.JobID]bool{}
	for _, s := range d.Start {
		started[s.ID] = true
	}
	e.crowd = map[turns.User]int{}
	for _, w := range waiting {
		if u := (turns.User{Organization: w.Organization, Email: w.Email}); !started[w.ID] {
			if most, known := e.crowd[u]; !known || w.Priority > most {
				e.crowd[u] = w.Priority
			}
		}
	}
	e.reserved = e.turns.Reserved(time.Now()) != ""
	for p := range e.pilots {
		p.alone.Store(e.alone(p))
	}
}

// alone reports whether no job waits that would be next if the pilot gave up its slot now:
// one of somebody else, or of a higher priority.
func (e *executor) alone(p *pilot) bool {
	for user, priority := range e.crowd {
		if priority > p.first.Priority || user != p.lease.User && priority == p.first.Priority {
			return false
		}
	}
	return e.blocked == (eta.Reason{}) && !e.reserved
}
