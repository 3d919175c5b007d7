package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
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
	api := web.New(s.app, web.Options{AnswerTime: time.Hour})
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

// kernel is the server's writer. It counts the files that it can have the kernel copy.
type kernel struct {
	deadlines
	files int
}

func (k *kernel) ReadFrom(src io.Reader) (int64, error) {
	if l, ok := src.(*io.LimitedReader); ok {
		if _, ok := l.R.(*os.File); ok {
			k.files++
		}
	}
	return io.Copy(k.ResponseRecorder, src)
}

func TestTheKernelCopiesFilesThatAreServedToAKey(t *testing.T) {
	s := start(t)
	_, out := s.begun("a")
	s.write(out+"/a.dat", string(make([]byte, 1<<20)))
	api := web.New(s.app, web.Options{})
	w := &kernel{deadlines: deadlines{ResponseRecorder: httptest.NewRecorder()}}
	r := httptest.NewRequest(http.MethodGet, "/jobs/a/files/a.dat", nil)
	r.Header.Set("X-Api-Key", s.ann)
	api.ServeHTTP(w, r)
	if w.Code != 200 || w.Body.Len() != 1<<20 || w.files == 0 {
		t.Errorf("status %d, %d bytes, %d times from a file", w.Code, w.Body.Len(), w.files)
	}
}
