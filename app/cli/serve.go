package cli

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"molrun/app"
	"molrun/app/executor/local"
	"molrun/app/runner"
	"molrun/blobs"
	"molrun/storage"
	"molrun/web"
)

// drainTime is how long running requests may take after a stop was asked for.
const drainTime = 20 * time.Second

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
	config    app.Config
	log       zerolog.Logger
	store     *storage.Store
	files     *blobs.Dir
	executor  *local.Executor
	catalogue *app.Catalogue
	app       *app.Service
	program   string // path of this binary
}

// openService builds the parts bottom up. It takes the data directory for
// itself until close.
func openService(c app.Config, log zerolog.Logger) (s *service, err error) {
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
	if err := os.MkdirAll(data, 0o700); err != nil {
		return s, fmt.Errorf("make the data directory: %w", err)
	}
	s.config.Data = data
	// The database first: its lock makes the directory ours.
	s.store, err = storage.Open(filepath.Join(data, "jobs.db"), storage.Options{Fatal: func(err error) {
		log.Error().Err(err).Msg("the database failed; restart the service, nothing that was confirmed is lost")
		os.Exit(exitStorage)
	}})
	if err != nil {
		return s, err
	}
	secret, err := blobs.LoadSecret(data)
	if err != nil {
		return s, err
	}
	s.files, err = blobs.Open(data, blobs.Options{Now: time.Now, Secret: secret, Log: log})
	if err != nil {
		return s, err
	}
	return s, s.join(secret)
}

// join makes executor and use cases of what is open.
func (s *service) join(secret *blobs.Secret) error {
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
	})
	s.catalogue, err = loadCatalogue(s.config.Algorithms, func(m app.Mistake) {
		s.log.Error().Str("file", m.File).Int("line", m.Line).Msg("algorithm file left out: " + m.Msg)
	})
	if err != nil {
		return err
	}
	machine := app.Machine{CPUs: capacity.CPUs, MemoryBytes: capacity.MemoryBytes, GPUs: len(capacity.GPUs), Local: true}
	s.app, err = app.NewService(s.store, s.files, s.catalogue, app.Options{
		Now:       time.Now,
		CursorKey: secret.Derive("cursors"),
		UploadTTL: time.Duration(s.config.Links.Upload),
		Executor:  s.config.Runner.Executor,
		Machines:  map[string]app.Machine{s.executor.Name(): machine},
		Program:   program,
	})
	return err
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
	if s.executor != nil {
		errs = append(errs, s.executor.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.files != nil {
		errs = append(errs, s.files.Close())
	}
	return errors.Join(errs...)
}

// serve runs the service until ctx ends. started, where not nil, is told the
// base URL once requests are answered.
func serve(ctx context.Context, c app.Config, log zerolog.Logger, started func(base string)) (err error) {
	s, err := openService(c, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
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
	api := web.Server(s.handler(stopping))
	operator := web.Server(web.Control(s.app, s.log))
	api.ErrorLog, operator.ErrorLog = s.errorLog(), s.errorLog()
	servers.run("api", func() error { return api.Serve(listener) })
	servers.run("control socket", func() error { return operator.Serve(control) })
	servers.run("runner", func() error { return s.runner().Run(stopping) })
	servers.run("sweep", func() error { return s.sweep(stopping) })

	base := "http://" + listener.Addr().String()
	log.Info().Str("listen", listener.Addr().String()).Str("data", s.config.Data).Str("version", versionText()).Msg("started")
	if started != nil {
		started(base)
	}
	<-stopping.Done()
	log.Info().Msg("stopping; running jobs go on")
	return errors.Join(shutdown(api), shutdown(operator), servers.wait())
}

// errorLog takes what net/http has to say, such as failed accepts.
func (s *service) errorLog() *stdlog.Logger { return stdlog.New(s.log, "", 0) }

// handler joins the API and the links to files.
func (s *service) handler(stopping context.Context) http.Handler {
	api := web.New(s.app, web.Options{
		Log:          s.log,
		PublicURL:    s.config.PublicURL,
		Version:      versionText(),
		MaxBody:      int64(s.config.Limits.Body),
		MaxBatchBody: int64(s.config.Limits.BatchBody),
		Registry:     prometheus.NewRegistry(),
		Ready:        s.ready,
		Stopping:     stopping,
	})
	return web.Outer(api, blobs.Handler(s.files, s.app, web.WriteError), s.log)
}

// ready tells whether requests can be answered. Anybody may ask, so it names
// no program or path.
func (s *service) ready(ctx context.Context) (checks map[string]any, ok bool) {
	ready, lacking := 0, 0
	for _, a := range s.app.Algorithms(app.Caller{}) {
		if a.Ready {
			ready++
		} else {
			lacking++
		}
	}
	checks = map[string]any{"database": "ok", "algorithmsReady": ready, "algorithmsNotReady": lacking}
	if _, err := s.app.Keys(ctx); err != nil {
		checks["database"] = "can't be read"
		return checks, false
	}
	return checks, true
}

func (s *service) runner() *runner.Runner {
	r := s.config.Runner
	return runner.New(s.app, s.files, []app.Executor{s.executor}, runner.Options{
		Now:          time.Now,
		Log:          s.log,
		LogBytes:     int64(r.LogLimit),
		Grace:        time.Duration(r.Grace),
		ReserveAfter: time.Duration(r.ReserveAfter),
		KeepFailed:   time.Duration(r.KeepFailed),
		KeptDir:      filepath.Join(s.config.Data, "kept"),
		Program:      s.program,
	})
}

const sweepEvery = 24 * time.Hour

// sweep removes now and daily what no record names.
func (s *service) sweep(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		s.sweepOnce(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *service) sweepOnce(ctx context.Context) {
	upload := func(id app.UploadID, generation int) bool {
		u, err := s.app.Upload(ctx, id)
		return err == nil && u.Generation == generation || err != nil && !errors.Is(err, app.NotFound)
	}
	job := func(id app.JobID) bool {
		err := s.store.View(ctx, func(tx app.Tx) error {
			_, err := tx.Job(id)
			return err
		})
		return !errors.Is(err, app.NotFound)
	}
	removed, err := s.files.Sweep(ctx, upload, job)
	if err != nil && ctx.Err() == nil {
		s.log.Warn().Err(err).Msg("not all leftovers could be removed")
	}
	if removed > 0 {
		s.log.Info().Int("removed", removed).Msg("removed leftovers of earlier runs")
	}
}

// shutdown lets running requests end, then cuts the rest.
func shutdown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return server.Close()
	}
	return nil
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
