package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app/test/freeport"
	"molrun/app/test/must"
)

const noticesConfig = "[runner]\ncpus = 4\nmemory = \"1GiB\"\ngrace = \"1s\"\n[notify]\nallow = \"127.0.0.1\"\nhttp = true\n"

// deliveries returns the log of a webhook: the state of each message, and how often it was
// tried.
func (s *server) deliveries(hook string) (states []string) {
	s.t.Helper()
	q, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.base+"/webhooks/"+hook+"/deliveries", nil)
	must.OK(s.t, err)
	q.Header.Set("x-api-key", s.key)
	a, err := http.DefaultClient.Do(q)
	must.OK(s.t, err)
	defer a.Body.Close()
	var answer struct {
		Deliveries []struct {
			State    string
			Attempts int
		}
	}
	must.OK(s.t, json.NewDecoder(a.Body).Decode(&answer))
	for _, d := range answer.Deliveries {
		states = append(states, fmt.Sprint(d.State, " ", d.Attempts))
	}
	return states
}

// The service is killed at each step of a notice: when it is stored and not sent, when it
// is sent and not answered, and when it is answered and perhaps not recorded.
func TestKillAtEachStepOfANotice(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"stored", "sent", "answered"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			ids, asked := make(chan string, 100), make(chan struct{})
			r := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				_, _ = io.Copy(io.Discard, q.Body)
				ids <- q.Header.Get("webhook-id")
				if len(ids) > 1 || step == "answered" {
					return
				}
				close(asked)
				<-q.Context().Done()
			}))
			address := r.Listener.Addr().String()
			if step == "stored" {
				_ = r.Listener.Close() // there is nobody until the service starts again
			} else {
				r.Start()
			}
			t.Cleanup(r.Close)

			s := newServer(t, "", noticesConfig)
			s.start()
			hook := s.post("/webhooks", map[string]any{"url": "http://" + address})["webhookId"].(string)
			j := diaryJob("one", 0.01, 10)
			s.post("/submit-job", map[string]any{"jobName": j.Name, "type": j.Type, "settings": j.Settings})
			switch step {
			case "stored":
				s.eventually("the notice is stored", func() bool { return len(s.deliveries(hook)) == 1 })
			case "sent":
				receive(t, asked)
			case "answered":
				s.eventually("it has arrived", func() bool { return len(ids) == 1 })
			}
			s.kill()
			s.check()
			if step == "stored" {
				l, err := net.Listen("tcp", address)
				if err != nil {
					t.Skipf("the port is taken meanwhile: %v", err)
				}
				ids <- "" // so that the receiver answers
				r.Listener = l
				r.Start()
				s.start()
				s.eventually("it has arrived", func() bool { return len(ids) > 1 })
				<-ids
			} else {
				s.start()
			}
			s.eventually("it is recorded", func() bool {
				log := s.deliveries(hook)
				return len(log) == 1 && strings.HasPrefix(log[0], "delivered ")
			})
			var all []string
			for len(ids) > 0 {
				all = append(all, <-ids)
			}
			if most := map[string]int{"sent": 2}[step]; step == "sent" && len(all) != most || len(slices.Compact(slices.Clone(all))) != 1 || all[0] == "" {
				t.Errorf("the receiver got the messages %q", all)
			}
			s.stop()
			s.check()
		})
	}
}

// mute is a mail server that takes letters, and answers none while it is mute.
type mute struct {
	listener net.Listener
	letters  chan string // the message ID of each
	mute     bool
}

func (m *mute) serve(ended chan<- struct{}) {
	defer close(ended)
	for {
		c, err := m.listener.Accept()
		if err != nil {
			return
		}
		m.talk(c)
		_ = c.Close()
	}
}

func (m *mute) talk(c net.Conn) {
	say := func(line string) { _, _ = io.WriteString(c, line+"\r\n") }
	say("220 mail.example")
	body, id := false, ""
	for lines := bufio.NewScanner(c); lines.Scan(); {
		line := lines.Text()
		switch {
		case body && line == "." && m.mute:
			m.letters <- id
			_, _ = io.Copy(io.Discard, c) // until the client gives up
			return
		case body && line == ".":
			body = false
			m.letters <- id
			say("250 taken")
		case body:
			if value, ok := strings.CutPrefix(line, "Message-ID: "); ok {
				id = value
			}
		case line == "DATA":
			body = true
			say("354 go on")
		case line == "QUIT":
			say("221 bye")
			return
		default:
			say("250 fine")
		}
	}
}

// Neither a mail server nor a webhook that does not answer keeps the service from
// stopping. What was cut off is sent again after the next start, as the same message.
func TestReceiversThatHangDelayNoStop(t *testing.T) {
	t.Parallel()
	letters := make(chan string, 10)
	listen := func(address string, isMute bool) (stop func()) {
		l, err := net.Listen("tcp", address)
		must.OK(t, err)
		m := &mute{listener: l, letters: letters, mute: isMute}
		ended := make(chan struct{})
		go m.serve(ended)
		return func() { _ = l.Close(); <-ended }
	}
	address, err := freeport.Address()
	must.OK(t, err)
	stopMail := listen(address, true)

	ids := make(chan string, 10)
	answering := make(chan struct{})
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		ids <- q.Header.Get("webhook-id")
		select {
		case <-answering:
		case <-q.Context().Done():
		}
	}))
	t.Cleanup(r.Close)

	_, port, _ := net.SplitHostPort(address)
	s := newServer(t, "", noticesConfig+"[mail]\nhost = \"127.0.0.1\"\nport = "+port+"\ntls = \"none\"\nfrom = \"molrun@lab.example\"\n")
	s.start()
	s.post("/webhooks", map[string]any{"url": r.URL})
	j := diaryJob("one", 0.01, 10)
	s.post("/submit-job", map[string]any{"jobName": j.Name, "type": j.Type, "settings": j.Settings, "notify": []string{"mailto:ann@lab.example"}})
	first := map[string]string{"mail": receive(t, letters), "webhook": receive(t, ids)}
	begin := time.Now()
	s.stop()
	if took := time.Since(begin); took > 14*time.Second { // what the attempts had left, at least
		t.Errorf("it stops after %v", took)
	}
	stopMail()
	close(answering)
	defer listen(address, false)()
	s.start()
	for what, from := range map[string]chan string{"mail": letters, "webhook": ids} {
		if again := receive(t, from); again != first[what] || again == "" {
			t.Errorf("%s: message %q is sent again as %q", what, first[what], again)
		}
	}
	s.stop()
	s.check()
}

func receive[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatal("nothing arrives")
	}
	return v
}
