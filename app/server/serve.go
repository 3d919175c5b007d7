// Package server runs the service on a data directory: it joins storage, files,
// executors and the API, serves them over HTTP(S) and the control socket, and does
// the upkeep. Commands use it to work on a data directory without a service.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/certificate"
	"molrun/app/config"
	"molrun/app/datadir"
	"molrun/web/edge"
)

// Options are what Run needs besides the configuration.
type Options struct {
	Log     zerolog.Logger
	Version string               // of this program
	Started func(baseURL string) // called once requests are answered, unless nil
}

// Run runs the service until ctx ends.
func Run(ctx context.Context, c config.Config, o Options) (err error) {
	spare := make([]byte, spareHeap)
	defer runtime.KeepAlive(spare)
	s, err := open(c, o.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.version = o.Version
	if runtime.GOMAXPROCS(0) < minProcs && os.Getenv("GOMAXPROCS") == "" {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(minProcs)) // the capacity for jobs is known by now
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

// spareHeap is memory that is allocated and never touched, so it costs nothing.
// The garbage collector runs each time the heap has doubled; with the spare heap
// it waits for some tens of MiB of garbage instead of four. Otherwise it takes a
// seventh of the CPU time of many small requests.
const spareHeap = 16 << 20

// minProcs is the least number of goroutines that run at once, also on fewer CPUs,
// which the kernel then shares out. Go polls the network only when all ready
// goroutines have run, and a commit makes dozens ready: with two at once, a listing
// waited half as long again for its turn.
const minProcs = 4

// endpoints are where clients reach the service.
type endpoints struct {
	api, control net.Listener
	cert         *certificate.Certificate // nil for plain HTTP
}

func (s *service) listen() (*endpoints, error) {
	cert, err := certificate.Open(s.config, s.log)
	if err != nil {
		return nil, err
	}
	api, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", s.config.Listen, err)
	}
	control, err := listenControl(s.config.Data, datadir.Socket)
	if err != nil {
		return nil, errors.Join(err, api.Close())
	}
	return &endpoints{api, control, cert}, nil
}

// serve runs the parts of the service until ctx ends, then stops them gracefully.
func (s *service) serve(ctx context.Context, e *endpoints, o Options) error {
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(stopping, s.validators.Close)()
	parts := group{stop: stop}
	running := &requests{}
	api := s.server(running.counted(s.handler(stopping, o.Version)))
	listener := edge.LimitConnections(api, e.api, s.config.Limits.Connections)
	operator := edge.Server(running.counted(s.operator(stopping)))
	api.ErrorLog, operator.ErrorLog = s.errorLog(), s.errorLog()
	parts.run("api", func() error { return serveAPI(api, listener, e.cert) })
	parts.run("control socket", func() error { return operator.Serve(e.control) })
	parts.run("runner", func() error { return s.runner().Run(stopping) })
	parts.run("history", func() error {
		s.learn(stopping)
		<-stopping.Done() // no part ends before the service does
		return nil
	})
	parts.run("sweep", func() error { return repeat(stopping, sweepInterval, s.sweep) })
	parts.run("retention", func() error { return repeat(stopping, retentionInterval, s.retain) })
	parts.run("data directory", func() error { return repeat(stopping, placeInterval, s.checkPlace) })
	parts.run("key uses", func() error { s.recordKeyUses(stopping); return nil })
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // now: one that comes before would end the process
	defer signal.Stop(hangup)
	parts.run("hangup", func() error { reloadOnHangup(stopping, hangup, e.cert); return nil })

	s.reportStarted(e, o)
	systemd := newNotifier(os.Environ(), s.log)
	systemd.tell("READY=1")
	parts.run("watchdog", func() error { return systemd.watch(stopping, s.alive) })
	<-stopping.Done()
	systemd.tell("STOPPING=1")
	s.log.Info().Msg("stopping; running jobs go on")
	err := errors.Join(running.drain(time.Duration(s.config.Stop.Requests), api, operator), parts.wait())
	return errors.Join(err, s.saveKeyUses())
}

func (s *service) reportStarted(e *endpoints, o Options) {
	address := e.api.Addr().String()
	scheme, line := "http://", s.log.Info()
	if e.cert != nil {
		scheme, line = "https://", line.Str("fingerprint", e.cert.Fingerprint())
	}
	line.Str("listen", address).Str("data", s.config.Data).Str("version", o.Version).Msg("started")
	if o.Started != nil {
		o.Started(scheme + address)
	}
}
