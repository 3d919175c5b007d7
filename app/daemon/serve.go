// Package daemon runs the service on a data directory: it joins storage, files,
// executors and the API, serves them over HTTP(S) and the control socket, and does
// the upkeep. Commands use it to work on a data directory without a service.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/certificate"
	"molrun/app/config"
	"molrun/app/datadir"
	"molrun/web"
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
	if runtime.GOMAXPROCS(0) < minProcs && os.Getenv("GOMAXPROCS") == "" {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(minProcs)) // the capacity for jobs is known by now
	}
	if err := s.isolate(ctx); err != nil {
		return err
	}
	if err := s.openCluster(); err != nil {
		return err
	}
	cert, err := certificate.Open(s.config, o.Log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.config.Listen, err)
	}
	control, err := listenControl(s.config.Data, datadir.Socket)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	servers := group{stop: stop}
	running := &requests{}
	api := s.server(running.counted(s.handler(stopping, o.Version)))
	listener = web.BoundConnections(api, listener, s.config.Limits.Connections)
	operator := web.Server(running.counted(s.operator(stopping)))
	api.ErrorLog, operator.ErrorLog = s.errorLog(), s.errorLog()
	servers.run("api", func() error { return serveAPI(api, listener, cert) })
	servers.run("control socket", func() error { return operator.Serve(control) })
	servers.run("runner", func() error { return s.runner().Run(stopping) })
	servers.run("sweep", func() error { return s.sweep(stopping) })
	servers.run("retention", func() error { return s.retain(stopping) })
	servers.run("key uses", func() error { s.recordKeyUses(stopping); return nil })
	servers.run("hangup", func() error { reloadOnHangup(stopping, cert); return nil })

	base, line := "http://", o.Log.Info()
	if cert != nil {
		base, line = "https://", line.Str("fingerprint", cert.Fingerprint())
	}
	base += listener.Addr().String()
	line.Str("listen", listener.Addr().String()).Str("data", s.config.Data).Str("version", o.Version).Msg("started")
	if o.Started != nil {
		o.Started(base)
	}
	systemd := newNotifier(os.Environ(), o.Log)
	systemd.tell("READY=1")
	servers.run("watchdog", func() error { return systemd.watch(stopping, s.alive) })
	<-stopping.Done()
	systemd.tell("STOPPING=1")
	o.Log.Info().Msg("stopping; running jobs go on")
	err = errors.Join(running.drain(time.Duration(s.config.Stop.Requests), api, operator), servers.wait())
	return errors.Join(err, s.saveKeyUses())
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
