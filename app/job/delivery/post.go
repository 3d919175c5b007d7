package delivery

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"molrun/app/job/notice"
)

// Limits of one attempt.
const (
	timeToConnect = 5 * time.Second
	timeInAll     = 15 * time.Second
	maxAnswer     = 64 << 10 // bytes read from the response body, which is ignored
	maxHeader     = 64 << 10
)

// PostOptions configures a poster.
type PostOptions struct {
	Policy   notice.Policy
	Agent    string                       // User-Agent
	Resolver *net.Resolver                // nil means the system's
	Own      func() ([]netip.Addr, error) // addresses of this machine; nil means detect them
	TLS      *tls.Config                  // nil means the system's certificate authorities
	Time     time.Duration                // time limit for an attempt; 0 means 15 seconds
	Now      func() time.Time             // for Retry-After; nil means time.Now
}

// Poster sends messages to webhooks.
type Poster struct {
	o      PostOptions
	client *http.Client
}

// NewPoster returns a poster.
func NewPoster(o PostOptions) *Poster {
	if o.Own == nil {
		o.Own = ownAddresses
	}
	if o.Time == 0 {
		o.Time = timeInAll
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Poster{o: o}
	dialer := &net.Dialer{Timeout: timeToConnect, Resolver: o.Resolver, Control: s.control}
	s.client = &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // a proxy would bypass the address check
			DialContext:            dialer.DialContext,
			TLSClientConfig:        o.TLS,
			TLSHandshakeTimeout:    timeToConnect,
			ResponseHeaderTimeout:  o.Time,
			MaxResponseHeaderBytes: maxHeader,
			MaxIdleConnsPerHost:    2,
			MaxIdleConns:           64,
			IdleConnTimeout:        30 * time.Second,
			DisableCompression:     true,
		},
		// A redirect can lead anywhere, including to receivers that no user has named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s
}

// Close closes idle connections.
func (s *Poster) Close() { s.client.CloseIdleConnections() }

var errForbidden = errors.New("its address is not public, and the service does not connect to it; its operator can allow it (notify.allow)")

// control rejects addresses just before each connection, after name resolution.
func (s *Poster) control(network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return errForbidden
	}
	own, err := s.o.Own()
	if err != nil {
		return fmt.Errorf("get the addresses of this machine: %w", err)
	}
	if !s.o.Policy.Allows(to.Addr(), own) {
		return errForbidden
	}
	return nil
}

func ownAddresses() (own []netip.Addr, err error) {
	all, err := net.InterfaceAddrs()
	for _, a := range all {
		if block, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, block.Addr().WithZone("").Unmap())
		}
	}
	return own, err
}

// Post sends a message once.
func (s *Poster) Post(ctx context.Context, p Posting) notice.Attempt {
	ctx, cancel := context.WithTimeout(ctx, s.o.Time)
	defer cancel()
	if msg := s.o.Policy.CheckURL(p.URL); msg != "" { // the policy might have changed
		return notice.Attempt{Error: msg}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(p.Body))
	if err != nil {
		return notice.Attempt{Error: "the address can't be used"}
	}
	r.GetBody = nil // prevents retries by net/http; Sender schedules them
	r.Header = http.Header{
		"Content-Type": {"application/json"},
		"User-Agent":   {s.o.Agent},
		// Lower case in the specification; HTTP is case-insensitive.
		"Webhook-Id":        {p.ID},
		"Webhook-Timestamp": {strconv.FormatInt(p.Timestamp.Unix(), 10)},
		"Webhook-Signature": {p.Signature},
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return notice.Attempt{Error: s.sentence(ctx, err)}
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // so that the connection can be reused
	return s.judge(answer)
}

// judge returns the result for a response: only 2xx is success.
func (s *Poster) judge(answer *http.Response) notice.Attempt {
	a := notice.Attempt{Status: answer.StatusCode}
	switch {
	case a.Status/100 == 2:
		return a
	case a.Status/100 == 3:
		a.Error = fmt.Sprintf("the receiver responded with a redirect (%d), which is not followed; use the final address", a.Status)
	default:
		a.Error = fmt.Sprintf("the receiver responded with status %d", a.Status)
	}
	if a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable {
		a.RetryAfter = s.retryAfter(answer.Header.Get("Retry-After"))
	}
	return a
}

func (s *Poster) retryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(s.o.Now()))
	}
	return 0
}

// sentence describes an error without addresses, because these could reveal names of the
// internal network.
func (s *Poster) sentence(ctx context.Context, err error) string {
	var unknown *net.DNSError
	var certificate *tls.CertificateVerificationError
	var network net.Error
	switch {
	case errors.Is(err, errForbidden):
		return errForbidden.Error()
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout():
		return fmt.Sprintf("the receiver did not respond within %s", s.o.Time)
	case errors.As(err, &unknown):
		return "its name can't be looked up"
	case errors.As(err, &certificate):
		return "its certificate is not valid"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refused the connection"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "it closed the connection without an answer"
	}
	return "it can't be reached"
}
