package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/config"
	"molrun/app/executor/local"
	"molrun/app/executor/slurm"
	"molrun/app/placement"
	"molrun/app/retention"
	"molrun/app/runner"
	"molrun/blobs"
	"molrun/blobs/link"
	"molrun/storage"
	"molrun/web"
)

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Start the service",
		Long: `Start the service: the API, and the runner that starts jobs. SIGINT or SIGTERM
stops it; jobs that run go on, and the next start takes them over.

A flag stands over a variable (MOLRUN_LISTEN, MOLRUN_RUNNER_CPUS and so on), that
over the configuration file.`,
		Example: `  molrun serve
  molrun serve --data /srv/molrun --listen :8080 --public-url https://molrun.lab.example`,
		Args: cobra.NoArgs,
	}
	flags := addConfigFlags(c, true)
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := flags.load()
		if err != nil {
			return err
		}
		return serve(c.Context(), config, newLogger(config, os.Stderr), nil)
	}
	return c
}

// service is all parts of molrun on one data directory, joined.
type service struct {
	config    config.Config
	log       zerolog.Logger
	store     *storage.Store
	files     *blobs.Dir
	executor  *local.Executor
	slurm     *slurm.Executor // nil where no jobs run, or no cluster is configured
	catalogue *algorithm.Catalogue
	app       *app.Service
	keeper    *retention.Keeper
	audit     *auditLog
	isolation web.Isolation // zero where no jobs run
	program   string        // path of this binary
}

// openService builds the parts bottom up. It takes the data directory for
// itself until close.
func openService(c config.Config, log zerolog.Logger) (s *service, err error) {
	s = &service{config: c, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
			s = nil
		}
	}()
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return s, err
	}
	if err := ownDirectory(data, log); err != nil {
		return s, err
	}
	s.config.Data = data
	// The database first: its lock makes the directory ours.
	s.store, err = storage.Open(filepath.Join(data, databaseName), storageOptions(c, log))
	if err != nil {
		return s, err
	}
	secret, err := link.LoadSecret(data)
	if err != nil {
		return s, err
	}
	if err := s.fit(); err != nil {
		return s, err
	}
	limits := s.config.Limits
	s.files, err = blobs.Open(data, blobs.Options{
		Now: time.Now, Secret: secret, Log: log,
		Reserve: int64(s.config.Disk.Reserve),
		Streams: limits.Streams, StreamsPerHolder: limits.StreamsPerKey, Idle: time.Duration(limits.TransferIdle),
	})
	if err != nil {
		return s, err
	}
	s.audit, err = openAudit(data, c.Audit, log)
	if err != nil {
		return s, err
	}
	return s, s.join(secret)
}

// join makes executor and use cases of what is open.
func (s *service) join(secret *link.Secret) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	s.program = program
	capacity, err := s.capacity()
	if err != nil {
		s.log.Warn().Err(err).Msg("not all of the machine could be detected")
	}
	s.executor = local.New(local.Options{
		Program: program, CPUs: capacity.CPUs, MemoryBytes: capacity.MemoryBytes, GPUs: capacity.GPUs,
		SandboxOf: s.sandboxOf,
	})
	s.catalogue, err = loadCatalogue(s.config.Algorithms, func(m algorithm.Mistake) {
		s.log.Error().Str("file", m.File).Int("line", m.Line).Msg("algorithm file left out: " + m.Msg)
	})
	if err != nil {
		return err
	}
	machine := placement.Machine{CPUs: capacity.CPUs, MemoryBytes: capacity.MemoryBytes, GPUs: len(capacity.GPUs), Local: true}
	machines := map[string]placement.Machine{placement.Local: machine}
	if s.config.Slurm.On() {
		machines[placement.Slurm] = placement.Machine{} // its nodes are of any size
	}
	s.app, err = app.NewService(s.store, s.files, s.catalogue, app.Options{
		Now:       time.Now,
		CursorKey: secret.Derive("cursors"),
		UploadTTL: time.Duration(s.config.Links.Upload),
		Routing:   s.routing(machines),
		Program:   program,
		Confine:   s.executor.Confine,
		Quota:     s.config.QuotaOf,
	})
	if err != nil {
		return err
	}
	s.keeper = retention.New(s.store, s.files, s.app.Jobs, retention.Options{
		Now: time.Now, Rules: s.config.RulesOf, Quota: s.config.QuotaOf,
	})
	return nil
}

// capacity is what jobs may use: as configured, else as detected.
func (s *service) capacity() (app.Capacity, error) {
	c, err := local.Detect("")
	r := s.config.Runner
	if r.CPUs > 0 {
		c.CPUs = r.CPUs
	}
	if r.Memory > 0 {
		c.MemoryBytes = int64(r.Memory)
	}
	if !r.GPUs.Auto() {
		c.GPUs = r.GPUs
	}
	return c, err
}

// close gives the data directory back, in reverse order.
func (s *service) close() error {
	var errs []error
	if s.slurm != nil {
		errs = append(errs, s.slurm.Close())
	}
	if s.executor != nil {
		errs = append(errs, s.executor.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.files != nil {
		errs = append(errs, s.files.Close())
	}
	if s.audit != nil {
		errs = append(errs, s.audit.close())
	}
	return errors.Join(errs...)
}

// spareHeap is memory that is asked for and never touched, so that it costs
// none: but the collector, which runs each time the heap has doubled, then lets
// some tens of MiB of garbage gather instead of four. It would otherwise take a
// seventh of the CPU time of many small requests.
const spareHeap = 16 << 20

// leastProcs is how many goroutines run at once at least, also with fewer
// CPUs: the kernel then shares these out. Go asks the network for new requests
// only when what was ready has run, and a commit makes dozens ready; with two at
// once a listing waited half as long again for its turn.
const leastProcs = 4

// serve runs the service until ctx ends. started, where not nil, is told the
// base URL once requests are answered.
func serve(ctx context.Context, c config.Config, log zerolog.Logger, started func(base string)) (err error) {
	spare := make([]byte, spareHeap)
	defer runtime.KeepAlive(spare)
	s, err := openService(c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if runtime.GOMAXPROCS(0) < leastProcs && os.Getenv("GOMAXPROCS") == "" {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(leastProcs)) // what there is for jobs is known by now
	}
	if err := s.isolate(ctx); err != nil {
		return err
	}
	if err := s.openCluster(); err != nil {
		return err
	}
	own, err := openCertificate(s.config, log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.config.Listen, err)
	}
	control, err := listenControl(s.config.Data, socketName)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	servers := group{stop: stop}
	running := &requests{}
	api := s.server(running.counted(s.handler(stopping)))
	listener = web.BoundConnections(api, listener, s.config.Limits.Connections)
	operator := web.Server(running.counted(s.operator(stopping)))
	api.ErrorLog, operator.ErrorLog = s.errorLog(), s.errorLog()
	servers.run("api", func() error { return serveAPI(api, listener, own) })
	servers.run("control socket", func() error { return operator.Serve(control) })
	servers.run("runner", func() error { return s.runner().Run(stopping) })
	servers.run("sweep", func() error { return s.sweep(stopping) })
	servers.run("retention", func() error { return s.retain(stopping) })
	servers.run("key uses", func() error { s.recordKeyUses(stopping); return nil })
	servers.run("hangup", func() error { reloadOnHangup(stopping, own); return nil })

	base, line := "http://", log.Info()
	if own != nil {
		base, line = "https://", line.Str("fingerprint", own.fingerprint())
	}
	base += listener.Addr().String()
	line.Str("listen", listener.Addr().String()).Str("data", s.config.Data).Str("version", versionText()).Msg("started")
	if started != nil {
		started(base)
	}
	supervisor := newSupervisor(os.Environ(), log)
	supervisor.tell("READY=1")
	servers.run("watchdog", func() error { return supervisor.watch(stopping, s.alive) })
	<-stopping.Done()
	supervisor.tell("STOPPING=1")
	log.Info().Msg("stopping; running jobs go on")
	err = errors.Join(running.drain(time.Duration(s.config.Stop.Requests), api, operator), servers.wait())
	return errors.Join(err, s.saveKeyUses())
}

func (s *service) runner() *runner.Runner {
	r := s.config.Runner
	return runner.New(s.app.Runs, s.files, s.executors(), runner.Options{
		Now:          time.Now,
		Log:          s.log,
		LogBytes:     int64(r.LogLimit),
		Grace:        time.Duration(r.Grace),
		ReserveAfter: time.Duration(r.ReserveAfter),
		KeepFailed:   time.Duration(r.KeepFailed),
		RetainedDir:  filepath.Join(s.config.Data, "kept"),
		DiskShortage: s.app.Runs.DiskShortage,
		Program:      s.program,
	})
}

// group runs the parts of the service; the end of one stops all.
type group struct {
	stop    func()
	results []chan error
}

func (g *group) run(name string, part func() error) {
	result := make(chan error, 1)
	g.results = append(g.results, result)
	go func() {
		defer g.stop()
		err := part()
		if errors.Is(err, http.ErrServerClosed) || errors.Is(err, context.Canceled) {
			err = nil
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		result <- err
	}()
}

// wait collects how the parts ended.
func (g *group) wait() error {
	var errs []error
	for _, result := range g.results {
		errs = append(errs, <-result)
	}
	return errors.Join(errs...)
}

// recordKeyUses writes now and then when keys were used last.
func (s *service) recordKeyUses(ctx context.Context) {
	s.app.Accounts.RecordKeyUses(ctx, func(err error) {
		s.log.Warn().Err(err).Msg("when keys were used last could not be written; it is tried again")
	})
}

// saveKeyUses does so when no more requests come.
func (s *service) saveKeyUses() error {
	ctx, cancel := context.WithTimeout(context.Background(), abandonAfter)
	defer cancel()
	if err := s.app.Accounts.SaveKeyUses(ctx); err != nil {
		s.log.Warn().Err(err).Msg("when keys were used last could not be written")
	}
	return nil
}
