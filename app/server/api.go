package server

import (
	"bytes"
	"context"
	stdlog "log"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/algorithm/builtin"
	"molrun/app/base/fault"
	"molrun/app/base/limit"
	"molrun/app/base/strictjson"
	"molrun/app/job/audit"
	"molrun/app/job/follow"
	"molrun/app/job/status"
	"molrun/app/job/upload"
	"molrun/app/server/host"
	"molrun/app/server/metrics"
	"molrun/blobs"
	"molrun/web"
	"molrun/web/edge"
	"molrun/web/respond"
)

// server returns the HTTP server of the API with the configured limits. The handler
// checks headers again and can report what is wrong; the server's limit only stops
// headers far above that.
func (s *service) server(handler http.Handler) *http.Server {
	l := s.config.Limits
	server := edge.Server(handler)
	server.ReadHeaderTimeout = time.Duration(l.HeaderTime)
	server.IdleTimeout = time.Duration(l.IdleTime)
	server.MaxHeaderBytes = int(l.URL) + 2*int(l.Header)
	server.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams:          64,
		MaxReceiveBufferPerConnection: 1 << 20,
		MaxReceiveBufferPerStream:     256 << 10,
		MaxReadFrameSize:              64 << 10,
		SendPingTimeout:               time.Duration(l.IdleTime),
		PingTimeout:                   15 * time.Second,
		WriteByteTimeout:              time.Duration(l.TransferIdle),
	}
	return server
}

// bounds returns the limits on connections.
func (s *service) bounds() edge.Bounds {
	return edge.Bounds{Connections: s.config.Limits.Connections, Trusted: s.config.Proxy.Trusted}
}

// serveAPI serves HTTPS if there is a certificate, and otherwise HTTP.
func serveAPI(api *http.Server, listener net.Listener, cert *host.Certificate) error {
	if cert == nil {
		return api.Serve(listener)
	}
	api.TLSConfig = cert.Config()
	return api.ServeTLS(listener, "", "")
}

// handler combines the API and the links to files.
func (s *service) handler(stopping context.Context, version string, submissions *limit.Slots) http.Handler {
	l := s.config.Limits
	linked := blobs.Handler(s.files, struct {
		*upload.Files
		blobs.Archives
	}{s.uploads, s.results}, respond.Error)
	follower := follow.New(s.store, s.app, s.accounts)
	s.watch(follower, submissions)
	services := web.Services{
		Service: s.app, Accounts: s.accounts, Files: s.uploads, Lists: s.lists,
		Outputs: s.outputs, Results: s.results, Shares: s.shares, Linked: linked, Sender: s.files,
		Follower: follower, Usage: s.usage,
		Notices: s.notices, Keeper: s.keeper,
		Status: status.New(s.store, s.files, s.app.Runs, s.executorStates(), time.Now()),
	}
	api := web.New(services, web.Options{
		Log:               s.log,
		PublicURL:         s.config.PublicURL,
		Version:           version,
		MaxURL:            int(l.URL),
		MaxBody:           int64(l.Body),
		MaxBatchBody:      int64(l.BatchBody),
		MaxBuffered:       int64(l.Buffered),
		MaxInFlight:       l.Requests,
		MaxInFlightPerKey: l.RequestsPerKey,
		Computing:         submissions,

		MaxListeners: l.Listeners, MaxListenersPerKey: l.ListenersPerKey,
		JSON:           strictjson.Limits{Depth: l.JSONDepth, Members: l.JSONMembers, NumberLength: l.NumberLength},
		BodyTime:       time.Duration(l.BodyTime),
		BatchTime:      time.Duration(l.BatchTime),
		AnswerTime:     time.Duration(l.AnswerTime),
		Features:       s.features(),
		Rates:          s.rates(),
		TrustedProxies: s.config.Proxy.Trusted,
		Audit:          s.audit.Add,
		LastAudited: func(f audit.Filter, limit int) ([]audit.Entry, bool, error) {
			return audit.ReadLast(s.config.Data, f, limit)
		},
		Isolation: s.isolation,
		Example:   s.example,
		Registry:  s.metrics.Registry,
		Ready:     s.ready,
		Stopping:  stopping,
	})
	policy := edge.Policy{
		MaxHeader: int(l.Header), Trusted: s.config.Proxy.Trusted, Origins: s.config.CORS.Origins,
		SignIn: edge.SignIn{Header: s.config.SignIn.Header, Proxies: s.config.SignIn.Proxies}, MaxAnonymous: s.bounds().MaxAnonymous(),
	}
	return withAlternativeAPIs(s, web.Outer(policy.Wrap(api), policy.Wrap(linked), s.log), version)
}

// watch adds the sources of metrics.
func (s *service) watch(follower *follow.Follower, submissions *limit.Slots) {
	sources := metrics.Sources{
		Store: s.store, Disk: s.files.Disk, Executors: s.executors(),
		AuditLog: filepath.Join(s.config.Data, audit.Name), AuditLost: s.audit.Lost,
		Listeners: follower.OpenStreams, Computing: submissions.Waiting,
		Warn: func(part string, err error) {
			s.log.Warn().Err(err).Str("part", part).Msg("metrics are incomplete")
		},
	}
	if s.slurm != nil {
		sources.Slurm = s.slurm.Answers
	}
	if s.config.Backup.To != "" {
		sources.Backups = func() metrics.Backups { return metrics.Backups(s.backups.State()) }
	}
	s.metrics.Watch(sources)
}

// example returns a file named in the example of an algorithm.
func (s *service) example(typ, version, name string) ([]byte, error) {
	a, ok := s.catalogue.Find(typ, version)
	if ok && a.Example != nil && bytes.Contains(a.Example.Settings, []byte(strconv.Quote("example:"+name))) {
		return builtin.ExampleOf(a, name)
	}
	return nil, fault.Errorf(fault.NotFound, "the example of %q has no file %q; see GET /algorithms/{type}, where the names of its files start with example:", typ, name)
}

func (s *service) features() web.Features {
	return web.Features{
		Slurm: s.slurm != nil, GPUs: s.countGPUs(), Mail: s.config.Notices().Mail, SignInByProxy: s.config.SignIn.Header != "",
	}
}

// countGPUs returns the number of known GPUs, including faulty ones.
func (s *service) countGPUs() int {
	capacity, _ := s.executor.Capacity()
	return capacity.ExpectedGPUs()
}

func (s *service) rates() web.Rates {
	r := s.config.Rates
	rates := web.Rates{Submit: float64(r.Submit), List: float64(r.List), Upload: float64(r.Upload), Failed: float64(r.Failed)}
	if r.Failed == 0 {
		rates.Failed = -1 // no limit
	}
	return rates
}

// errorLog logs errors of net/http, such as failed accepts.
func (s *service) errorLog() *stdlog.Logger { return stdlog.New(s.log, "", 0) }

// ready reports whether requests can be served. Anyone can read the checks, so they name
// no program or path.
func (s *service) ready(ctx context.Context) (checks map[string]any, ok bool) {
	ready, missing := 0, 0
	for _, a := range s.app.Algorithms.List(app.Caller{}) {
		if a.Ready {
			ready++
		} else {
			missing++
		}
	}
	checks = map[string]any{"database": "ok", "algorithmsReady": ready, "algorithmsNotReady": missing, "isolation": s.executor.Isolation()}
	if len(s.gaps) > 0 {
		checks["sandbox"] = strings.Join(s.gaps, "; ")
	}
	if trouble := s.gpus.State().Summary(); trouble != "" {
		checks["gpus"] = trouble
	}
	if d := s.app.Runs.Drained(); d != nil {
		checks["drained"] = "the queue has been paused since " + d.Since.UTC().Format(time.RFC3339)
	}
	if s.slurm != nil {
		checks["slurm"] = s.slurmState()
	}
	if _, err := s.accounts.Keys(ctx, app.Operator()); err != nil {
		checks["database"] = "can't be read"
		return checks, false
	}
	return checks, true
}
