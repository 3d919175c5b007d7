package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app/test/must"
)

// receiver receives notifications. It rejects each message once before accepting it.
type receiver struct {
	t     *testing.T
	mu    sync.Mutex
	tried map[string]bool     // webhook-ids that were rejected once
	taken map[string][]string // webhook-ids that were accepted, by job
}

// newReceiver returns a receiver and its address.
func newReceiver(t *testing.T) (r *receiver, url string) {
	r = &receiver{t: t, tried: map[string]bool{}, taken: map[string][]string{}}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	return r, s.URL
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the service was killed during the request
	}
	var message struct {
		Data struct{ JobName string }
	}
	if err := json.Unmarshal(body, &message); err != nil {
		r.t.Errorf("message %s: %v", body, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if id := q.Header.Get("webhook-id"); r.tried[id] {
		r.taken[message.Data.JobName] = append(r.taken[message.Data.JobName], id)
	} else {
		r.tried[id] = true
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func (r *receiver) jobs() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.taken)
}

// post sends JSON with the administrator's key.
func (s *server) post(path string, body any) {
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
	if a.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(a.Body) // for the error message
		s.t.Fatalf("%s %s: %d %s", path, text, a.StatusCode, answer)
	}
}

// The service is killed while jobs end and notifications are sent: between the commit and
// the delivery, or between the delivery and its record.
func TestKillsLoseNoNotification(t *testing.T) {
	t.Parallel()
	hooked, hook := newReceiver(t)
	asked, address := newReceiver(t)
	s := newServer(t, "", "[runner]\ncpus = 4\nmemory = \"1GiB\"\ngrace = \"1s\"\n[notify]\nallow = \"127.0.0.1\"\nhttp = true\n")
	s.start()
	s.post("/webhooks", map[string]any{"url": hook})
	random := rand.New(rand.NewPCG(*seed, 2))
	var want []string
	for n := range *kills {
		for i := range 6 {
			j := diaryJob(fmt.Sprintf("n%d-%d", n, i), 0.01, 10)
			s.post("/submit-job", map[string]any{"jobName": j.Name, "type": j.Type, "settings": j.Settings, "notify": []string{address}})
			want = append(want, j.Name)
		}
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond) // makes the kill hit at a random point
		s.kill()
		s.check()
		s.start()
	}
	must.Become(t, "all notifications have arrived", func() bool { return hooked.jobs() == len(want) && asked.jobs() == len(want) })
	s.stop()
	s.check()
	for _, r := range []*receiver{hooked, asked} {
		for _, name := range want {
			ids := r.taken[name]
			slices.Sort(ids)
			if ids = slices.Compact(ids); len(ids) != 1 {
				t.Errorf("job %s was reported by the messages %q, want one message, at least once", name, ids)
			}
		}
	}
}
