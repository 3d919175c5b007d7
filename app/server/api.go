package server

import (
	"context"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"molrun/app"
	"molrun/app/certificate"
	"molrun/app/follow"
	"molrun/app/strictjson"
	"molrun/app/upload"
	"molrun/blobs"
	"molrun/web"
	"molrun/web/edge"
	"molrun/web/respond"
)

// server makes the server of the API with the bounds of the configuration. The
// handler checks headers again, where the answer can say what is wrong; the bound
// of the server is only for headers far beyond it.
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

// serveAPI serves HTTPS if there is a certificate.
func serveAPI(api *http.Server, listener net.Listener, cert *certificate.Certificate) error {
	if cert == nil {
		return api.Serve(listener)
	}
	api.TLSConfig = cert.Config()
	return api.ServeTLS(listener, "", "")
}

// reloadOnHangup looks at the files of the certificate at each hangup.
func reloadOnHangup(ctx context.Context, hangup <-chan os.Signal, cert *certificate.Certificate) {
	for {
		select {
		case <-hangup:
			if cert != nil {
				cert.Reload()
			}
		case <-ctx.Done():
			return
		}
	}
}

// handler joins the API and the links to files.
func (s *service) handler(stopping context.Context, version string) http.Handler {
	l := s.config.Limits
	services := web.Services{
		Service: s.app, Accounts: s.accounts, Files: s.uploads, Lists: s.lists,
		Outputs: s.outputs, Sender: s.files,
		Follower: follow.New(s.store, s.app, s.accounts),
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

		MaxListeners: l.Listeners, MaxListenersPerKey: l.ListenersPerKey,
		JSON:           strictjson.Limits{Depth: l.JSONDepth, Members: l.JSONMembers, NumberLength: l.NumberLength},
		BodyTime:       time.Duration(l.BodyTime),
		BatchTime:      time.Duration(l.BatchTime),
		AnswerTime:     time.Duration(l.AnswerTime),
		Rates:          s.rates(),
		TrustedProxies: s.config.Proxy.Trusted,
		Audit:          s.audit.Add,
		Registry:       prometheus.NewRegistry(),
		Ready:          s.ready,
		Stopping:       stopping,
	})
	policy := edge.Policy{MaxHeader: int(l.Header), Trusted: s.config.Proxy.Trusted, Origins: s.config.CORS.Origins}
	linked := struct {
		*upload.Files
		blobs.Archives
	}{s.uploads, s.app.Jobs}
	return web.Outer(policy.Wrap(api), policy.Wrap(blobs.Handler(s.files, linked, respond.Error)), s.log)
}

func (s *service) rates() web.Rates {
	r := s.config.Rates
	rates := web.Rates{Submit: float64(r.Submit), List: float64(r.List), Upload: float64(r.Upload), Failed: float64(r.Failed)}
	if r.Failed == 0 {
		rates.Failed = -1 // without limit
	}
	return rates
}

// errorLog logs errors of net/http, such as failed accepts.
func (s *service) errorLog() *stdlog.Logger { return stdlog.New(s.log, "", 0) }

// ready reports whether requests can be answered. Anybody may ask, so it names no
// program or path.
func (s *service) ready(ctx context.Context) (checks map[string]any, ok bool) {
	ready, lacking := 0, 0
	for _, a := range s.app.Algorithms.List(app.Caller{}) {
		if a.Ready {
			ready++
		} else {
			lacking++
		}
	}
	checks = map[string]any{"database": "ok", "algorithmsReady": ready, "algorithmsNotReady": lacking, "isolation": s.executor.Isolation()}
	if d := s.app.Runs.Drained(); d != nil {
		checks["drained"] = "no job starts since " + d.Since.UTC().Format(time.RFC3339)
	}
	if s.slurm != nil {
		checks["slurm"] = s.slurmState()
	}
	if _, err := s.accounts.Keys(ctx); err != nil {
		checks["database"] = "can't be read"
		return checks, false
	}
	return checks, true
}
