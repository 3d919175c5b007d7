package delivery_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"molrun/app/job/delivery"
	"molrun/app/job/notice"
	"molrun/app/test/must"
)

// allowed is a policy that permits the test receivers and blocks the forbidden address,
// 127.0.0.2.
var allowed = notice.Policy{HTTP: true, Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}

func sender(t *testing.T, change func(*delivery.PostOptions)) *delivery.Poster {
	t.Helper()
	o := delivery.PostOptions{Policy: allowed, Agent: "molrun/test", Own: func() ([]netip.Addr, error) { return nil, nil }, Time: 30 * time.Second}
	if change != nil {
		change(&o)
	}
	s := delivery.NewPoster(o)
	t.Cleanup(s.Close)
	return s
}

func receiver(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL
}

// forbidden listens on a blocked address and counts connections.
func forbidden(t *testing.T) (address string, connections *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		must.Skip(t, "this machine has no 127.0.0.2: %v", err)
	}
	connections = &atomic.Int32{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return l.Addr().String(), connections
}

var posting = delivery.Posting{ID: "msg_1", Timestamp: time.Unix(1_700_000_000, 0), Signature: "v1,abc", Body: []byte(`{"type":"job.completed"}`)}

func to(url string) delivery.Posting {
	p := posting
	p.URL = url
	return p
}

func TestMessageArrivesWithItsHeaders(t *testing.T) {
	var got http.Header
	var body []byte
	url := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	})
	if a := sender(t, nil).Post(t.Context(), to(url+"/hook")); a != (notice.Attempt{Status: 204}) {
		t.Fatalf("%+v", a)
	}
	for name, want := range map[string]string{
		"webhook-id": "msg_1", "webhook-timestamp": "1700000000", "webhook-signature": "v1,abc",
		"Content-Type": "application/json", "User-Agent": "molrun/test",
	} {
		must.Equal(t, name, got.Get(name), want)
	}
	must.Equal(t, "body", string(body), string(posting.Body))
}

func TestOnlySuccessIsDelivery(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // lets the server notice that the client has disconnected
		<-r.Context().Done()
	}
	quick := func(o *delivery.PostOptions) { o.Time = 300 * time.Millisecond }
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	_ = refused.Close()
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for _, err := w.Write(make([]byte, 1<<16)); err == nil; _, err = w.Write(make([]byte, 1<<16)) {
		}
	}
	for _, tt := range []struct {
		name   string
		url    string
		handle http.HandlerFunc
		change func(*delivery.PostOptions)
		want   notice.Attempt
	}{
		{"failing", "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, nil, notice.Attempt{Status: 500, Error: "the receiver responded with status 500"}},
		{"gone", "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }, nil, notice.Attempt{Status: 410, Error: "the receiver responded with status 410"}},
		{"busy", "", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "90"); w.WriteHeader(503) }, nil, notice.Attempt{Status: 503, Error: "the receiver responded with status 503", RetryAfter: 90 * time.Second}},
		{"hanging", "", hang, quick, notice.Attempt{Error: "the receiver did not respond within 300ms"}},
		{"closing midway", "", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil, notice.Attempt{Error: "it closed the connection without an answer"}},
		{"refusing", "http://" + refused.Addr().String(), nil, nil, notice.Attempt{Error: "it refused the connection"}},
		{"endless answer", "", endless, nil, notice.Attempt{Status: 200}},
		{"wrong certificate", "tls", nil, nil, notice.Attempt{Error: "its certificate is not valid"}},
		{"unencrypted, forbidden since", "http://127.0.0.1:9/", nil, func(o *delivery.PostOptions) { o.Policy.HTTP = false }, notice.Attempt{Error: "use https://; this service sends nothing unencrypted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := tt.url
			if tt.handle != nil {
				url = receiver(t, tt.handle)
			}
			if url == "tls" {
				s := httptest.NewUnstartedServer(http.NotFoundHandler())
				s.Config.ErrorLog = nil
				s.StartTLS()
				defer s.Close()
				url = s.URL
			}
			must.Equal(t, "attempt", sender(t, tt.change).Post(t.Context(), to(url)), tt.want)
		})
	}
}

func TestEncryptedMessageArrives(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	trust := s.Client().Transport.(*http.Transport).TLSClientConfig
	a := sender(t, func(o *delivery.PostOptions) { o.TLS = &tls.Config{RootCAs: trust.RootCAs}; o.Policy.HTTP = false }).Post(t.Context(), to(s.URL))
	must.Equal(t, "attempt", a, notice.Attempt{Status: 200})
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	secret, connections := forbidden(t)
	elsewhere := atomic.Int32{}
	other := receiver(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	for _, target := range []string{"http://" + secret + "/", other} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			url := receiver(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, status) })
			a := sender(t, nil).Post(t.Context(), to(url))
			if a.Status != status || !strings.Contains(a.Error, "redirect") {
				t.Errorf("%d to %s: %+v", status, target, a)
			}
		}
	}
	must.Equal(t, "connections elsewhere", connections.Load()+elsewhere.Load(), 0)
}

func TestForbiddenAddressesAreNotReached(t *testing.T) {
	secret, connections := forbidden(t)
	_, port, _ := net.SplitHostPort(secret)
	for _, host := range []string{"127.0.0.2", "[::ffff:127.0.0.2]", "2130706434", "0x7f000002", "127.2", "[::ffff:7f00:2]"} {
		a := sender(t, nil).Post(t.Context(), to("http://"+host+":"+port+"/"))
		if a.Error == "" || a.Status != 0 {
			t.Errorf("%s: %+v", host, a)
		}
	}
	// The machine's own address is blocked, even if it is public.
	own := func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("9.9.9.9")}, nil }
	a := sender(t, func(o *delivery.PostOptions) { o.Own = own }).Post(t.Context(), to("http://9.9.9.9:"+port+"/"))
	if !strings.Contains(a.Error, "not public") {
		t.Errorf("the machine's own address: %+v", a)
	}
	a = sender(t, func(o *delivery.PostOptions) { o.Own = func() ([]netip.Addr, error) { return nil, errors.New("no") } }).Post(t.Context(), to("http://127.0.0.1:"+port+"/"))
	if a.Error == "" {
		t.Error("it connects although it does not know its own addresses")
	}
	must.Equal(t, "connections to the forbidden address", connections.Load(), 0)
}

func TestNoProxyIsUsed(t *testing.T) {
	asked := atomic.Int32{}
	proxy := receiver(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy)
	}
	a := sender(t, nil).Post(t.Context(), to("http://192.0.2.1/"))
	if !strings.Contains(a.Error, "not public") || asked.Load() != 0 {
		t.Errorf("%+v, the proxy was asked %d times", a, asked.Load())
	}
}

// rebinding is a DNS server that returns the next address of a list for each query.
type rebinding struct {
	answers []string
	asked   atomic.Int32
}

// resolver returns a resolver that queries b.
func (b *rebinding) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	must.OK(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		packet := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(packet)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(b.answer(packet[:n]), from)
		}
	}()
	t.Cleanup(func() { _ = server.Close(); <-ended })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// answer returns a DNS response: the question, and an address if the question is for
// IPv4.
func (b *rebinding) answer(question []byte) []byte {
	end := 12
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	end += 5
	message := append([]byte{}, question[:end]...)
	binary.BigEndian.PutUint16(message[2:], 0x8180)
	for _, at := range []int{6, 8, 10} {
		binary.BigEndian.PutUint16(message[at:], 0)
	}
	if kind := binary.BigEndian.Uint16(question[end-4:]); kind != 1 {
		return message
	}
	i := min(int(b.asked.Add(1))-1, len(b.answers)-1)
	address := netip.MustParseAddr(b.answers[i]).As4()
	binary.BigEndian.PutUint16(message[6:], 1)
	return append(append(message, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), address[:]...)
}

// The name has a permitted address when first resolved and a forbidden one after that.
func TestNameThatChangesItsAddressReachesNothing(t *testing.T) {
	secret, connections := forbidden(t)
	_, port, _ := net.SplitHostPort(secret)
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Skip("the port is taken")
	}
	arrived := atomic.Int32{}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Add(1)
		w.Header().Set("Connection", "close")
	}), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	defer func() { _ = s.Close(); <-ended }()

	dns := &rebinding{answers: []string{"127.0.0.1", "127.0.0.2"}}
	from := sender(t, func(o *delivery.PostOptions) { o.Resolver = dns.resolver(t) })
	url := fmt.Sprintf("http://rebinding.example.:%s/", port)
	if a := from.Post(t.Context(), to(url)); a.Error != "" {
		t.Fatalf("while the address is permitted: %+v", a)
	}
	for range 3 {
		if a := from.Post(t.Context(), to(url)); !strings.Contains(a.Error, "not public") || strings.Contains(a.Error, "127") {
			t.Errorf("once it is not: %+v", a)
		}
	}
	if arrived.Load() != 1 || connections.Load() != 0 || dns.asked.Load() < 4 {
		t.Errorf("%d arrived, %d connections to the forbidden address, %d lookups", arrived.Load(), connections.Load(), dns.asked.Load())
	}
}
