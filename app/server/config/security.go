package config

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"molrun/app/base/naming"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
	"molrun/app/job/apikey"
)

// Limits bounds the memory that clients can make the service use at once.
type Limits struct {
	Header       unit.Bytes `toml:"header"`        // all header lines of a request together
	URL          unit.Bytes `toml:"url"`           // path and query
	Body         unit.Bytes `toml:"body"`          // JSON body
	BatchBody    unit.Bytes `toml:"batch_body"`    // JSON body of a batch
	Buffered     unit.Bytes `toml:"buffered"`      // all JSON bodies together
	JSONDepth    int        `toml:"json_depth"`    // levels of nesting
	JSONMembers  int        `toml:"json_members"`  // members of one object
	NumberLength int        `toml:"number_length"` // characters of one number

	Requests       int `toml:"requests"`         // concurrent requests with JSON
	RequestsPerKey int `toml:"requests_per_key"` // concurrent requests of one API key; 0 means three quarters
	Connections    int `toml:"connections"`      // concurrent connections
	// Listeners limits concurrent event streams. At most half of the connections can be
	// event streams. ListenersPerKey limits those of one API key; 0 means three quarters.
	Listeners       int `toml:"listeners"`
	ListenersPerKey int `toml:"listeners_per_key"`
	Streams         int `toml:"streams"`         // concurrent uploads and downloads
	StreamsPerKey   int `toml:"streams_per_key"` // transfers by links of one API key

	HeaderTime   unit.Duration `toml:"header_time"`   // time to receive the header
	BodyTime     unit.Duration `toml:"body_time"`     // time to receive a JSON body
	BatchTime    unit.Duration `toml:"batch_time"`    // time to receive a batch's body
	AnswerTime   unit.Duration `toml:"answer_time"`   // time to send a response
	IdleTime     unit.Duration `toml:"idle_time"`     // time between two requests of a connection
	TransferIdle unit.Duration `toml:"transfer_idle"` // how long a transfer can make no progress
}

// Rates limits the requests per second; 0 means no limit.
type Rates struct {
	Submit int `toml:"submit"` // per API key
	List   int `toml:"list"`   // per API key
	Upload int `toml:"upload"` // per API key
	Failed int `toml:"failed"` // requests without a valid key, per address
}

// Proxy configures the proxies in front of the service.
type Proxy struct {
	Trusted Networks `toml:"trusted"` // proxies whose X-Forwarded-For is trusted
}

// SignIn configures sign-in through a proxy.
type SignIn struct {
	Header       string   `toml:"header"`       // header that names the user; "" disables sign-in through a proxy
	Proxies      Networks `toml:"proxies"`      // trusted proxies
	Organization string   `toml:"organization"` // organization of these users
	Create       bool     `toml:"create"`       // add unknown users as members
}

// MSA configures access to the alignment server at /msa/ without an API key, and the
// number of cores for its searches and for those of predictors.
type MSA struct {
	Networks     Networks `toml:"networks"`     // clients allowed without a key
	Organization string   `toml:"organization"` // organization of their jobs
	Cores        int      `toml:"cores"`        // cores per search; 0 means the type's default
}

// notOfUsers lists headers that cannot name a user, because every client sends them or
// because they have another meaning.
var notOfUsers = []string{"X-Api-Key", "X-Forwarded-For", "Host", "Origin", "Cookie", "Authorization", "User-Agent", "From"}

// checks returns the checks of these settings.
func (s SignIn) checks() []settingCheck {
	name := http.CanonicalHeaderKey(s.Header)
	return []settingCheck{
		{s.Header != "" && !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`).MatchString(s.Header), "sign_in.header: must be the name of a header, such as Remote-User"},
		{slices.Contains(notOfUsers, name) || strings.HasPrefix(name, "Content-"), "sign_in.header: use a header that only the proxy sends, such as Remote-User"},
		{s.Header != "" && len(s.Proxies) == 0, "sign_in.proxies: name the proxy that signs in users, such as 10.0.0.7"},
		{s.Header != "" && naming.CheckName(s.Organization) != "", "sign_in.organization: name the organization of the users who sign in"},
	}
}

// CORS configures which web pages of other hosts can use the API.
type CORS struct {
	Origins Origins `toml:"origins"`
}

// TLS configures HTTPS served by the service itself.
type TLS struct {
	Cert       string `toml:"cert"` // PEM file
	Key        string `toml:"key"`  // PEM file
	SelfSigned bool   `toml:"self_signed"`
}

// On reports whether the service uses HTTPS.
func (t TLS) On() bool { return t.SelfSigned || t.Cert != "" }

// Audit limits the audit log.
type Audit struct {
	MaxSize unit.Bytes `toml:"max_size"` // maximum size of one file
	Keep    int        `toml:"keep"`     // number of older files
}

// setSecurityDefaults sets the defaults of the settings in this file.
func (c *Config) setSecurityDefaults() {
	json := strictjson.DefaultLimits()
	c.Limits = Limits{
		Header: 64 << 10, URL: 16 << 10, Body: 8 << 20, BatchBody: 64 << 20, Buffered: 96 << 20,
		JSONDepth: json.Depth, JSONMembers: json.Members, NumberLength: json.NumberLength,
		Requests: 1024, Connections: 4096, Listeners: 2048, Streams: 256, StreamsPerKey: 128,
		HeaderTime: unit.Duration(10 * time.Second), BodyTime: unit.Duration(30 * time.Second), BatchTime: unit.Duration(5 * time.Minute),
		AnswerTime: unit.Duration(time.Minute), IdleTime: unit.Duration(2 * time.Minute), TransferIdle: unit.Duration(time.Minute),
	}
	c.Rates.Failed = 100
	c.Audit = Audit{MaxSize: 16 << 20, Keep: 8}
}

type settingCheck struct {
	bad bool
	msg string
}

// securityChecks returns the checks of the settings in this file.
func (c *Config) securityChecks() []settingCheck {
	l, json := c.Limits, strictjson.DefaultLimits()
	within := func(name string, value, lowest, highest int) settingCheck {
		return settingCheck{value < lowest || value > highest, fmt.Sprintf("%s: must be %d to %d", name, lowest, highest)}
	}
	wait := func(name string, value unit.Duration) settingCheck {
		return settingCheck{value < unit.Duration(time.Second) || value > unit.Duration(time.Hour), name + ": must be 1s to 1h"}
	}
	return append(c.SignIn.checks(), []settingCheck{
		{len(c.MSA.Networks) > 0 && naming.CheckName(c.MSA.Organization) != "", "msa.organization: name the organization of the jobs of clients without an API key"},
		within("msa.cores", c.MSA.Cores, 0, 128),
		{l.Header < 4<<10 || l.Header > 1<<20, "limits.header: must be 4KiB to 1MiB"},
		{l.URL < 4<<10 || l.URL > 64<<10, "limits.url: must be 4KiB to 64KiB"},
		{l.Body < 1<<10, "limits.body: must be at least 1KiB"},
		{l.BatchBody < l.Body, "limits.batch_body: must be at least limits.body"},
		{l.Buffered < l.BatchBody, "limits.buffered: must be at least limits.batch_body"},
		within("limits.json_depth", l.JSONDepth, 8, json.Depth),
		within("limits.json_members", l.JSONMembers, 64, json.Members),
		within("limits.number_length", l.NumberLength, 20, json.NumberLength),
		within("limits.requests", l.Requests, 2, 1_000_000),
		{l.RequestsPerKey < 0 || l.RequestsPerKey > l.Requests, "limits.requests_per_key: must be 1 to limits.requests, or 0 for three quarters of it"},
		within("limits.connections", l.Connections, 4, 1_000_000),
		within("limits.listeners", l.Listeners, 1, 500_000),
		{l.ListenersPerKey < 0 || l.ListenersPerKey > l.Listeners, "limits.listeners_per_key: must be 1 to limits.listeners, or 0 for three quarters of it"},
		within("limits.streams", l.Streams, 1, 100_000),
		within("limits.streams_per_key", l.StreamsPerKey, 1, 100_000),
		wait("limits.header_time", l.HeaderTime),
		wait("limits.body_time", l.BodyTime),
		wait("limits.batch_time", l.BatchTime),
		wait("limits.answer_time", l.AnswerTime),
		wait("limits.idle_time", l.IdleTime),
		wait("limits.transfer_idle", l.TransferIdle),
		{min(c.Rates.Submit, c.Rates.List, c.Rates.Upload, c.Rates.Failed) < 0, "rates: must be at least 1 request per second, or 0 for no limit"},
		{(c.TLS.Cert == "") != (c.TLS.Key == ""), "tls: set both cert and key"},
		{c.TLS.SelfSigned && c.TLS.Cert != "", "tls: use either self_signed or cert and key"},
		{c.Audit.MaxSize < 64<<10, "audit.max_size: must be at least 64KiB"},
		within("audit.keep", c.Audit.Keep, 1, 1000),
	}...)
}

// Networks is a comma-separated list of address blocks.
type Networks []netip.Prefix

// UnmarshalText parses addresses and blocks, such as "10.0.0.7, 192.0.2.0/24".
func (n *Networks) UnmarshalText(text []byte) error {
	*n = nil
	for _, part := range commaList(text) {
		block, err := apikey.Network(part)
		if err != nil {
			return err
		}
		*n = append(*n, block)
	}
	return nil
}

// Origins is a list of web page origins, each a scheme with a host.
type Origins []string

// UnmarshalText parses origins, such as "https://portal.lab.example".
func (o *Origins) UnmarshalText(text []byte) error {
	*o = nil
	for _, part := range commaList(text) {
		u, err := url.Parse(part)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+u.Host != part || strings.ToLower(part) != part {
			return fmt.Errorf("%q is not an origin; give only scheme and host, in lower case, such as https://portal.lab.example", part)
		}
		*o = append(*o, part)
	}
	return nil
}

func commaList(text []byte) (parts []string) {
	for part := range strings.SplitSeq(string(text), ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}
