package web_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"molrun/web"
)

// deadlines records the write deadlines of a connection.
type deadlines struct {
	*httptest.ResponseRecorder
	write []time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.write = append(d.write, at)
	return nil
}

func (d *deadlines) SetReadDeadline(time.Time) error { return nil }

func TestTimeToAnswerBeginsWithTheAnswer(t *testing.T) {
	s := start(t)
	api := web.New(s.app, newLists(t, s.store, s.app), web.Options{AnswerTime: time.Hour})
	for _, c := range []call{{"GET", "/healthz"}, {"GET", "/jobs"}, {"GET", "/jobs/nothing"}, {"GET", "/metrics"}, {"POST", "/submit-job"}} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Header.Set("X-Api-Key", s.ann)
		api.ServeHTTP(w, r)
		if len(w.write) != 2 || !w.write[0].IsZero() || time.Until(w.write[1]) < 59*time.Minute {
			t.Errorf("%v: status %d, write deadlines %v; want none and one in an hour", c, w.Code, w.write)
		}
	}
}
