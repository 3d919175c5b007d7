package simulation

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/base/fault"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/job/delivery"
	"molrun/app/job/follow"
	"molrun/app/job/listing"
	"molrun/app/job/notice"
	"molrun/app/job/retention"
	"molrun/app/job/upload"
	"molrun/app/runner"
	"molrun/blobs"
	"molrun/blobs/link"
	"molrun/storage"
)

// process is one run of the service, from its start to its exit or crash.
type process struct {
	*app.Service
	Lists     *listing.Lists
	Retention *retention.Keeper
	Follower  *follow.Follower
	Files     *upload.Files
	Links     *blobs.Links
	Notices   *delivery.Webhooks
	door      *door
	store     *storage.Store
	files     *blobs.Dir
	cancel    context.CancelFunc
	wake      chan struct{} // the runner's wake channel, with a capacity of one
	ended     chan struct{} // closed when the runner has returned

	requests sync.WaitGroup
}

// site is the state that survives a process: its directory, the machine and the clock.
type site struct {
	dir          string
	catalogue    *algorithm.Catalogue
	secret       *link.Secret
	machine      *machine
	limits       limits
	receivers    *receivers
	messages     messages
	signs        map[string]string // secrets for messages requested by submissions, by organization
	looked       atomic.Int64      // wall-clock time of the sender's last check for messages, in milliseconds
	keys         map[string]string // IDs of API keys, by e-mail address of their users
	order        atomic.Int64
	reserveAfter time.Duration // time after which a job that was passed over gets a reservation
	wall         func() time.Time
	full         func() bool // reports whether the disk is full
	names        names
	stall        func() // sleeps in real time, to imitate a slow machine
	faultf       func(format string, args ...any)
}

// names maps job IDs, which differ between runs of a seed, to names.
type names struct{ known sync.Map }

func (n *names) learn(j *app.Job) { n.known.Store(j.ID, j.Organization+"/"+j.Name) }

func (n *names) of(id app.JobID) string {
	name, ok := n.known.Load(id)
	if !ok {
		return "a job without a name"
	}
	return name.(string)
}

// boot starts the storage, files, service and runner, as the program does.
func (s *site) boot() (*process, error) {
	p := &process{door: newDoor(s.stall), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	var err error
	p.store, err = storage.Open(filepath.Join(s.dir, "jobs.db"), storage.Options{
		Fatal: func(err error) { s.faultf("the store failed: %v", err) },
	})
	if err != nil {
		return nil, err
	}
	p.files, err = blobs.Open(s.dir, blobs.Options{Now: s.wall, Secret: s.secret, Log: zerolog.Nop()})
	if err != nil {
		return nil, errors.Join(err, p.store.Close())
	}
	store := &guardedStore{Store: p.store, door: p.door, site: s}
	files := &guardedFiles{Dir: p.files, door: p.door, site: s}
	p.Service, err = app.NewService(store, files, s.catalogue, app.Options{
		Now: s.wall, PropagationStep: 2, Notices: policy, Quota: s.limits.of,
		Routing: routing.Table{Executor: "local", Machines: map[string]placement.Machine{"local": {CPUs: 4, MemoryBytes: 1 << 30, GPUs: 2, Local: true}}},
	})
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	if p.Lists, err = listing.New(store, p.Service.Jobs, make([]byte, 32)); err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.Retention = retention.New(store, files, p.Service.Jobs, retention.Options{
		Now: s.wall, Rules: func(string) retention.Rules { return rules }, Partial: partialFor,
	})
	accounts := access.New(p.store, files, s.wall)
	p.Notices = delivery.NewNotices(store, policy, s.wall)
	if err := errors.Join(s.issueKeys(accounts), s.makeSigners(delivery.NewNotices(p.store, policy, s.wall))); err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.Files = upload.New(store, files, upload.Options{Now: s.wall, LinkTTL: 1000 * time.Hour, Quota: s.limits.of})
	p.Links = blobs.Handler(p.files, transfers{Files: p.Files}, failTo)
	p.Follower = follow.New(store, p.Service, accounts)
	machine := newGuardedMachine(s, p.door)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	// The poll intervals are not multiples of the runner's other intervals, so that
	// events rarely coincide.
	poll := runner.Poll{Min: 53 * time.Millisecond, Max: 4789 * time.Millisecond}
	r := runner.New(guardedJobs{p.Service.Runs, p, s}, files, []app.Executor{machine}, runner.Options{
		Now: s.wall, Log: zerolog.Nop(), Program: "/bin/molrun", ReserveAfter: s.reserveAfter, Quota: s.limits.of,
		Poll:       poll,
		KeepFailed: time.Hour, RetainedDir: filepath.Join(s.dir, "failed"),
		WorkersDir: s.workersDir(), LongJob: longRow,
	})
	sender := delivery.NewSender(outbox{store}, delivery.SenderOptions{
		Now: s.wall, Schedule: schedule, Poll: 2711 * time.Millisecond,
		Post: func(ctx context.Context, m delivery.Posting) notice.Attempt { return s.post(ctx, p.door, m) },
		Mail: func(ctx context.Context, l delivery.Email) notice.Attempt { return s.mail(ctx, p.door, l) },
		Link: func(string) string { return "" },
	})
	go func() {
		defer close(p.ended)
		var waking sync.WaitGroup
		waking.Go(func() { p.wakeRunner(ctx) })
		waking.Go(func() { _ = sender.Run(ctx) }) // it never returns an error
		if err := r.Run(ctx); err != nil {
			s.faultf("the runner ended with %v", err)
		}
		waking.Wait()
	}()
	return p, nil
}

// issueKeys creates a key for every user on the first start.
func (s *site) issueKeys(accounts *access.Accounts) error {
	if s.keys != nil {
		return nil
	}
	s.keys = map[string]string{}
	for _, by := range users {
		if s.keys[by.Email] != "" {
			continue
		}
		r := access.KeyRequest{Organization: by.Organization, Email: by.Email, Role: apikey.Member}
		if by.Administers() {
			r.Role = apikey.Admin
		}
		_, key, err := accounts.CreateKey(context.Background(), app.Operator(), r)
		if err != nil {
			return err
		}
		s.keys[by.Email] = key.ID
	}
	return nil
}

// wakeRunner forwards the service's wake signals to the runner through the door,
// so that the seed determines when the runner sees them.
func (p *process) wakeRunner(ctx context.Context) {
	for {
		select {
		case <-p.Service.Runs.Wake():
		case <-ctx.Done():
		}
		if ctx.Err() != nil || p.door.knock(&visit{label: label{"wake", "the runner"}}) != nil {
			return
		}
		select {
		case p.wake <- struct{}{}:
		default: // the runner is already awake
		}
	}
}

// die ends the process abruptly. Its pending calls have no effect.
func (p *process) die() error {
	p.cancel()
	p.door.die()
	p.requests.Wait()
	<-p.ended
	return p.close()
}

func (p *process) close() error { return errors.Join(p.store.Close(), p.files.Close()) }

// guardedFiles is the real file store behind a door, with a simulated full disk.
type guardedFiles struct {
	*blobs.Dir
	door *door
	site *site
}

// JobDir only adds a delay, because every goroutine of the runner calls it often.
func (f *guardedFiles) JobDir(id app.JobID) string {
	f.site.stall()
	return f.Dir.JobDir(id)
}

// WriteManifest fails while the simulated disk is full.
func (f *guardedFiles) WriteManifest(id app.JobID, m *app.Manifest) (err error) {
	dead := f.door.around(label{"manifest", f.site.names.of(id)}, func() error {
		if f.site.full() {
			err = &fault.Error{Code: fault.StorageFull, Message: "the simulated disk is full", Err: syscall.ENOSPC}
			return nil
		}
		err = f.Dir.WriteManifest(id, m)
		return nil
	})
	return errors.Join(dead, err)
}

// RemoveJob fails while the simulated disk is full, because renaming needs space.
func (f *guardedFiles) RemoveJob(id app.JobID) (err error) {
	dead := f.door.around(label{"remove", f.site.names.of(id)}, func() error {
		if f.site.full() {
			err = syscall.ENOSPC
			return nil
		}
		err = f.Dir.RemoveJob(id)
		return nil
	})
	return errors.Join(dead, err)
}

// guardedJobs is the service as seen by the runner. It labels the runner's calls.
type guardedJobs struct {
	*app.Runs
	process *process
	site    *site
}

var _ runner.Jobs = guardedJobs{}

func (g guardedJobs) called(ctx context.Context, verb string, id app.JobID) context.Context {
	return called(ctx, label{verb, g.site.names.of(id)})
}

func (g guardedJobs) Wake() <-chan struct{} { return g.process.wake }

func (g guardedJobs) Claims(ctx context.Context) ([]app.Claimed, error) {
	if err := g.process.door.poll("what is claimed"); err != nil {
		return nil, err
	}
	return g.Runs.Claims(ctx)
}

func (g guardedJobs) Active(ctx context.Context) ([]*app.Job, error) {
	if err := g.process.door.poll("the claimed jobs"); err != nil {
		return nil, err
	}
	return g.Runs.Active(ctx)
}

func (g guardedJobs) Claim(ctx context.Context, id app.JobID, leased placement.Devices, p app.ClaimLimit) (*app.Job, []*app.Job, error) {
	return g.Runs.Claim(g.called(ctx, "claim", id), id, leased, p)
}

func (g guardedJobs) ClaimRows(ctx context.Context, first *app.Job, p app.ClaimLimit) ([]*app.Job, error) {
	return g.Runs.ClaimRows(g.called(ctx, "rows", first.ID), first, p)
}

func (g guardedJobs) Return(ctx context.Context, id app.JobID, attempt int) error {
	return g.Runs.Return(g.called(ctx, "return", id), id, attempt)
}

// PlacementOf is called before a task is started or a job is assigned to a worker. The
// visit makes the seed determine the order of these operations.
func (g guardedJobs) PlacementOf(ctx context.Context, j *app.Job) (placement.Placement, error) {
	if err := g.process.door.knock(&visit{label: label{"place", g.site.names.of(j.ID)}}); err != nil {
		return placement.Placement{}, err
	}
	return g.Runs.PlacementOf(ctx, j)
}

// Propagate continues a propagation that a transaction has begun, as any user's request
// does.
func (g guardedJobs) Propagate(ctx context.Context) error {
	return g.Runs.Propagate(called(ctx, label{"settle", "the runner"}))
}

func (g guardedJobs) ResolveInputs(ctx context.Context, j *app.Job) (*app.Failure, error) {
	return g.Runs.ResolveInputs(g.called(ctx, "inputs", j.ID), j)
}

func (g guardedJobs) SetHandle(ctx context.Context, id app.JobID, attempt int, h app.Handle) error {
	return g.Runs.SetHandle(g.called(ctx, "handle", id), id, attempt, h)
}

func (g guardedJobs) Started(ctx context.Context, id app.JobID, attempt int, at time.Time, on app.ClusterJob) error {
	return g.Runs.Started(g.called(ctx, "started", id), id, attempt, at, on)
}

func (g guardedJobs) Finish(ctx context.Context, id app.JobID, attempt int, e app.Ending) error {
	return g.Runs.Finish(g.called(ctx, "finished", id), id, attempt, e)
}

func (g guardedJobs) Reject(ctx context.Context, id app.JobID, message string) error {
	return g.Runs.Reject(g.called(ctx, "impossible", id), id, message)
}
