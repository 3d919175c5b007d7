// Package server runs the service on a data directory: it connects storage, files,
// executors and the API, serves them over HTTP(S) and the control socket, and performs
// maintenance. Commands use it to work on a data directory without a service.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/algorithm"
	"molrun/app/base/limit"
	"molrun/app/server/config"
	"molrun/app/server/host"
	"molrun/web/edge"
)

// Options holds the parameters of Run other than the configuration.
type Options struct {
	Log        zerolog.Logger
	Version    string               // version of this program
	Started    func(baseURL string) // called once requests are served, unless nil
	Init       bool                 // create the data directory if it does not exist
	Algorithms []*algorithm.File    // on offer instead of the configured ones, unless nil
}

// Run runs the service until ctx is done.
func Run(ctx context.Context, c config.Config, o Options) (err error) {
	defer keepPace()()
	s, err := openWith(c, o)
	if err != nil {
		return addRunningService(ctx, err, c.Data, host.Control(c.Data).Listener)
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if runtime.GOMAXPROCS(0) < minProcs && os.Getenv("GOMAXPROCS") == "" {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(minProcs)) // the capacity for jobs has already been determined
	}
	if err := s.isolate(ctx); err != nil {
		return err
	}
	if err := s.openCluster(); err != nil {
		return err
	}
	e, err := s.listen()
	if err != nil {
		return err
	}
	return s.serve(ctx, e, o)
}

// minProcs is the minimum GOMAXPROCS, even on fewer CPUs, which the kernel then shares.
// Go polls the network only after running all ready goroutines, and a commit makes dozens
// ready. With GOMAXPROCS=2, listings waited 50 % longer to run.
const minProcs = 4

// endpoints holds the listeners of the service.
type endpoints struct {
	api, control net.Listener
	cert         *host.Certificate // nil for plain HTTP
}

func (s *service) listen() (*endpoints, error) {
	cert, err := host.OpenCertificate(s.config, s.log)
	if err != nil {
		return nil, err
	}
	api, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", s.config.Listen, err)
	}
	control, err := listenControl(s.config.Data, host.Socket)
	if err != nil {
		return nil, errors.Join(err, api.Close())
	}
	return &endpoints{api, control, cert}, nil
}

// serve runs the parts of the service until ctx is done, then stops them gracefully.
func (s *service) serve(ctx context.Context, e *endpoints, o Options) error {
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(stopping, s.validators.Close)()
	notices, err := newMessenger(s, s.metrics.Registry)
	if err != nil {
		return errors.Join(err, e.api.Close(), e.control.Close())
	}
	parts := group{stop: stop}
	running := &requests{}
	submissions := limit.ForProcessors()
	api := s.server(running.counted(s.handler(stopping, o.Version, submissions)))
	listener := edge.LimitConnections(api, e.api, s.bounds(), submissions)
	operator := edge.Server(running.counted(s.operator(stopping, e)))
	api.ErrorLog, operator.ErrorLog = s.errorLog(), s.errorLog()
	parts.run("api", func() error { return serveAPI(api, listener, e.cert) })
	parts.run("control socket", func() error { return operator.Serve(e.control) })
	parts.run("runner", func() error { return s.runner().Run(stopping) })
	parts.run("gpus", func() error { return s.gpus.Run(stopping) })
	parts.run("rows of batches", func() error { return s.app.Runs.ChangeRows(stopping, s.rowsLater) })
	parts.run("sweep", func() error { return repeat(stopping, cleanUpInterval, s.cleanUp) })
	parts.run("retention", func() error { return repeat(stopping, retentionInterval, s.retain) })
	parts.run("backups", func() error { return s.backups.Run(stopping) })
	parts.run("data directory", func() error { return repeat(stopping, placeInterval, s.checkPlace) })
	parts.run("notices", func() error { return notices.sendUntilDone(stopping) })
	parts.run("estimates", func() error { s.metrics.Estimate(stopping, s.app.Runs); return nil })
	parts.run("measurements", func() error { s.metrics.Measure(stopping, s.app.Runs.Claims, s.files.JobSize); return nil })
	parts.run("key uses", func() error { s.recordKeyUses(stopping); return nil })
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // until now, a SIGHUP ends the process; from now on it does not, even while stopping
	parts.run("hangup", func() error { s.offer.reloadOnHangup(stopping, hangup, e.cert, s.audit.Add); return nil })

	s.reportStarted(e, o)
	systemd := newNotifier(os.Environ(), s.log)
	systemd.notify("READY=1")
	parts.run("watchdog", func() error { return systemd.watch(stopping, s.alive) })
	<-stopping.Done()
	systemd.notify("STOPPING=1")
	s.log.Info().Msg("stopping; running jobs continue")
	err = errors.Join(running.drain(time.Duration(s.config.Stop.Requests), api, operator), parts.wait())
	return errors.Join(err, s.saveKeyUses())
}

// rowsLater logs why the rows of a batch could not yet be stopped or retried.
func (s *service) rowsLater(err error) {
	s.log.Warn().Err(err).Msg("could not change the jobs of a batch; retrying")
}

// baseURL returns the address of the service for browsers: the public one, otherwise the
// listener's, with localhost if it listens on all addresses.
func (s *service) baseURL(e *endpoints) string {
	if s.config.PublicURL != "" {
		return s.config.PublicURL
	}
	address := e.api.Addr().String()
	if tcp, ok := e.api.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		address = net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return e.scheme() + address
}

func (e *endpoints) scheme() string {
	if e.cert != nil {
		return "https://"
	}
	return "http://"
}

// listener returns the address on which the API listens.
func (e *endpoints) listener() string { return e.scheme() + e.api.Addr().String() }

func (s *service) reportStarted(e *endpoints, o Options) {
	line := s.log.Info()
	if e.cert != nil {
		line = line.Str("fingerprint", e.cert.Fingerprint())
	}
	line.Str("listen", e.api.Addr().String()).Str("data", s.config.Data).Str("version", o.Version).Msg("started")
	if o.Started != nil {
		o.Started(e.listener())
	}
}
