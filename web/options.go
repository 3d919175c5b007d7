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

// Options configure the API. Zero values take the defaults named here.
type Options struct {
	Log       zerolog.Logger // for what no request causes; requests log to that of Outer
	PublicURL string         // base of links; "": scheme and host of the request
	Version   string         // of this program, for GET /version

	MaxURL       int   // bytes of path and query, 16 KiB
	MaxBody      int64 // bytes of a JSON body, 8 MiB
	MaxBatchBody int64 // bytes of a batch's body, 64 MiB
	MaxBuffered  int64 // bytes of all bodies of requests in flight, 96 MiB; one key may use three quarters, or a batch
	MaxInFlight  int   // requests in flight, 1024; half as many may wait for a change
	// MaxInFlightPerKey is how many of them one API key may have, three quarters.
	// It counts those whose bodies are still arriving, too.
	MaxInFlightPerKey int
	// Computing is what submissions pass, so that few compute at once; limit.ForProcessors.
	Computing *limit.Slots
	// MaxListeners is how many streams of events there may be at once, 2048, and
	// MaxListenersPerKey how many of them one API key may have, three quarters.
	MaxListeners, MaxListenersPerKey int
	JSON                             strictjson.Limits

	BodyTime   time.Duration // for a JSON body to arrive, 30 s
	BatchTime  time.Duration // for a batch's body, 5 min
	AnswerTime time.Duration // for an answer to leave, 1 min

	Features Features // shown by GET /session

	Rates          Rates
	TrustedProxies []netip.Prefix // exempt from Rates.Failed

	// Audit receives the entries of the audit log; nil drops them.
	Audit func(audit.Entry)
	// LastAudited returns the newest entries of the audit log, and whether there are more;
	// nil has none.
	LastAudited func(f audit.Filter, limit int) ([]audit.Entry, bool, error)
	// Example returns a file that the example of an algorithm names, or NotFound; nil has
	// none.
	Example func(typ, version, name string) ([]byte, error)
	// Isolation is that of jobs, for GET /admin/status.
	Isolation Isolation

	// Registry holds the metrics that GET /metrics shows. It serves one API.
	Registry *prometheus.Registry
	// Ready returns what GET /readyz shows; nil is always ready.
	Ready func(context.Context) (map[string]any, bool)
	// Stopping is done when the server begins to shut down: requests that wait
	// for a change are then answered at once. nil never stops.
	Stopping context.Context
	// Now is the clock of rate limits and of the audit log.
	Now func() time.Time
}

// Features say what a service offers beyond the API's routes, so that pages show no more.
type Features struct {
	Slurm bool `json:"slurm"` // jobs may go to a cluster
	GPUs  int  `json:"gpus"`  // of this machine
	Mail  bool `json:"mail"`  // submissions may ask for mail
	// SignInByProxy says that a proxy may sign in users.
	SignInByProxy bool `json:"signInByProxy"`
}

// Rates are how many requests a second each API key may make; 0 is no limit.
// Failed is how many requests without a valid key an address may make: 0 means
// 100, a negative number means no limit. So does Shared for requests for what is
// shared, where 0 means 50.
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

// threeQuarters is what one API key may have of what all share.
func threeQuarters[T int | int64](all T) T { return max(1, all-all/4) }

// or returns value, or instead if value is zero.
func or[T comparable](value, instead T) T {
	var zero T
	if value == zero {
		return instead
	}
	return value
}
