package web

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"molrun/app/base/fault"
	"molrun/app/base/limit"
	"molrun/app/base/strictjson"
	"molrun/app/job/audit"
)

// Options configure the API. Zero values select the defaults given here.
type Options struct {
	Log       zerolog.Logger // for entries without a request; requests use the logger of Outer
	PublicURL string         // base of links; "" means scheme and host of the request
	Version   string         // of this program, for GET /version

	MaxURL       int   // bytes of path and query, default 16 KiB
	MaxBody      int64 // bytes of a JSON body, default 8 MiB
	MaxBatchBody int64 // bytes of a batch's body, default 64 MiB
	MaxBuffered  int64 // total body bytes in flight, default 96 MiB; one key can use three quarters, or one batch
	MaxInFlight  int   // requests in flight, default 1024; half of them can wait for a change
	// MaxInFlightPerKey is the maximum number of requests in flight for one API key, by
	// default three quarters of MaxInFlight. It includes requests whose bodies are still
	// arriving.
	MaxInFlightPerKey int
	// Computing limits concurrent submissions; the default is limit.ForProcessors.
	Computing *limit.Slots
	// MaxListeners is the maximum number of event streams, by default 2048, and
	// MaxListenersPerKey the maximum for one API key, by default three quarters of that.
	MaxListeners, MaxListenersPerKey int
	JSON                             strictjson.Limits

	BodyTime   time.Duration // time to receive a JSON body, default 30 s
	BatchTime  time.Duration // time to receive a batch's body, default 5 min
	AnswerTime time.Duration // time to send a response, default 1 min

	Features Features // shown by GET /session

	Rates          Rates
	TrustedProxies []netip.Prefix // exempt from Rates.Failed

	// Audit receives the entries of the audit log. nil discards them.
	Audit func(audit.Entry)
	// LastAudited returns the newest entries of the audit log, and whether there are
	// more. nil means that there is no log.
	LastAudited func(f audit.Filter, limit int) ([]audit.Entry, bool, error)
	// Example returns a file of an algorithm's example, or NotFound. nil means that there
	// are none.
	Example func(typ, version, name string) ([]byte, error)
	// Isolation describes the isolation of jobs, for GET /admin/status.
	Isolation Isolation

	// Registry holds the metrics for GET /metrics. It must not be shared with another
	// API.
	Registry *prometheus.Registry
	// Ready returns the response of GET /readyz. nil means always ready.
	Ready func(context.Context) (map[string]any, bool)
	// Stopping is canceled when the server begins to shut down: requests that wait for a
	// change are then answered immediately. nil means never.
	Stopping context.Context
	// Now is the clock of rate limits and of the audit log.
	Now func() time.Time
}

// Features tell web pages which optional features a service offers.
type Features struct {
	Slurm bool `json:"slurm"` // jobs can run on a cluster
	GPUs  int  `json:"gpus"`  // GPUs of this machine
	Mail  bool `json:"mail"`  // submissions can request e-mail
	// SignInByProxy says whether a proxy can sign in users.
	SignInByProxy bool `json:"signInByProxy"`
}

// Rates are the maximum numbers of requests per second for each API key; 0 means no
// limit. Failed is the limit per address of requests without a valid key: 0 means 100,
// and a negative number means no limit. Shared is the limit per address of requests for
// shared results, in the same way, but 0 means 50.
type Rates struct{ Submit, List, Upload, Failed, Shared float64 }

func (o Options) withDefaults() Options {
	o.PublicURL = strings.TrimRight(o.PublicURL, "/")
	o.MaxURL = or(o.MaxURL, 16<<10)
	o.MaxBody = or(o.MaxBody, 8<<20)
	o.MaxBatchBody = or(o.MaxBatchBody, 64<<20)
	o.MaxBuffered = or(o.MaxBuffered, 96<<20)
	o.MaxInFlight = or(o.MaxInFlight, 1024)
	o.MaxInFlightPerKey = or(o.MaxInFlightPerKey, threeQuarters(o.MaxInFlight))
	o.MaxListeners = or(o.MaxListeners, 2048)
	o.MaxListenersPerKey = or(o.MaxListenersPerKey, threeQuarters(o.MaxListeners))
	o.JSON = or(o.JSON, strictjson.DefaultLimits())
	o.BodyTime = or(o.BodyTime, 30*time.Second)
	o.BatchTime = or(o.BatchTime, 5*time.Minute)
	o.AnswerTime = or(o.AnswerTime, time.Minute)
	o.Rates.Failed = or(o.Rates.Failed, 100)
	o.Rates.Shared = or(o.Rates.Shared, 50)
	o.Version = or(o.Version, "unknown")
	if o.Computing == nil {
		o.Computing = limit.ForProcessors()
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) (map[string]any, bool) { return map[string]any{}, true }
	}
	if o.LastAudited == nil {
		o.LastAudited = func(audit.Filter, int) ([]audit.Entry, bool, error) { return nil, false, nil }
	}
	if o.Example == nil {
		o.Example = func(_, _, name string) ([]byte, error) {
			return nil, fault.Errorf(fault.NotFound, "no example has the file %q", name)
		}
	}
	if o.Stopping == nil {
		o.Stopping = context.Background()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// threeQuarters returns the share of a common limit that one API key can use.
func threeQuarters[T int | int64](all T) T { return max(1, all-all/4) }

// or returns value, or instead if value is zero.
func or[T comparable](value, instead T) T {
	var zero T
	if value == zero {
		return instead
	}
	return value
}
