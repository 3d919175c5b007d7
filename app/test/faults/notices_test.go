package faults

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"molrun/app/test/must"
)

// receiver takes notices. It answers each message with an error before it takes it.
type receiver struct {
	t      *testing.T
	mu     sync.Mutex
	secret []byte              // nil: signatures are not checked
	tried  map[string]int      // by webhook-id
	taken  map[string][]string // webhook-ids by job
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the service was killed meanwhile
	}
	var message struct {
		Type string
		Data struct{ JobName string }
	}
	if err := json.Unmarshal(body, &message); err != nil {
		r.t.Errorf("message %s: %v", body, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := q.Header.Get("webhook-id")
	if r.secret != nil {
		mac := hmac.New(sha256.New, r.secret)
		fmt.Fprintf(mac, "%s.%s.%s", id, q.Header.Get("webhook-timestamp"), body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); q.Header.Get("webhook-signature") != want {
			r.t.Errorf("signature %s, want %s", q.Header.Get("webhook-signature"), want)
		}
	}
	if r.tried[id]++; r.tried[id] == 1 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	r.taken[message.Data.JobName] = append(r.taken[message.Data.JobName], id)
}

func (r *receiver) jobs() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.taken)
}

// forbiddenAddress listens where the service may not connect to.
func forbiddenAddress(t *testing.T) (address string, connections *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skipf("this machine has no 127.0.0.2: %v", err)
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

// post sends JSON with the administrator's key and returns the answer.
func (s *server) post(path string, body any) map[string]any {
	s.t.Helper()
	text, err := json.Marshal(body)
	must.OK(s.t, err)
	q, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.base+path, strings.NewReader(string(text)))
	must.OK(s.t, err)
	q.Header.Set("x-api-key", s.key)
	q.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(q)
	must.OK(s.t, err)
	defer a.Body.Close()
	var answer map[string]any
	must.OK(s.t, json.NewDecoder(a.Body).Decode(&answer))
	if a.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: %d %v", path, text, a.StatusCode, answer)
	}
	return answer
}

// The service is killed while jobs end and while it tells of them: between the commit and
// the delivery, and between the delivery and its record. Beside a good receiver there are
// one that hangs and one that leads to an address where the service may not go.
func TestKillsLoseNoNotice(t *testing.T) {
	t.Parallel()
	good := &receiver{t: t, tried: map[string]int{}, taken: map[string][]string{}}
	asked := &receiver{t: t, tried: map[string]int{}, taken: map[string][]string{}}
	forbidden, connections := forbiddenAddress(t)
	address := func(h http.Handler) string {
		r := httptest.NewServer(h)
		t.Cleanup(r.Close)
		return r.URL
	}
	hanging := address(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		<-q.Context().Done()
	}))
	leading := address(http.RedirectHandler("http://"+forbidden+"/", http.StatusTemporaryRedirect))
	ownURL := address(asked)

	s := newServer(t, "", "[runner]\ncpus = 4\nmemory = \"1GiB\"\ngrace = \"1s\"\n[notify]\nallow = \"127.0.0.1\"\nhttp = true\n")
	s.start()
	hook := s.post("/webhooks", map[string]any{"url": address(good)})
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(hook["secret"].(string), "whsec_"))
	must.OK(t, err)
	good.mu.Lock()
	good.secret = secret
	good.mu.Unlock()
	for _, url := range []string{hanging, leading, "http://rebinding.invalid/"} {
		s.post("/webhooks", map[string]any{"url": url})
	}

	random := rand.New(rand.NewPCG(*seed, 2))
	want := []string{}
	for n := range *kills {
		for i := range 6 {
			name := fmt.Sprintf("n%d-%d", n, i)
			j := diaryJob(name, 0.01, 10)
			s.post("/submit-job", map[string]any{"jobName": j.Name, "type": j.Type, "settings": j.Settings, "notify": []string{ownURL}})
			want = append(want, name)
		}
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond) // so that the kill hits at a random point
		s.kill()
		s.check()
		s.start()
	}
	s.eventually("all notices have arrived", func() bool { return good.jobs() == len(want) && asked.jobs() == len(want) })
	for _, r := range []*receiver{good, asked} {
		r.mu.Lock()
		for _, name := range want {
			ids := slices.Clone(r.taken[name])
			slices.Sort(ids)
			if ids = slices.Compact(ids); len(ids) != 1 {
				t.Errorf("job %s is told of by the messages %q, want one, at least once", name, ids)
			}
		}
		r.mu.Unlock()
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections to the forbidden address", n)
	}
	s.stop()
	s.check()
}
