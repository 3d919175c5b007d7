package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/server/config"
	"molrun/app/test/must"
	"molrun/app/test/whole"
)

func TestEndOfOnePartStopsAll(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ err, want error }{
		"closed":    {http.ErrServerClosed, nil},
		"cancelled": {fmt.Errorf("wait: %w", context.Canceled), nil},
		"ended":     {nil, nil},
		"failed":    {os.ErrPermission, os.ErrPermission},
	} {
		stopping, stop := context.WithCancel(t.Context())
		g := group{stop: stop}
		g.run("other", func() error { <-stopping.Done(); return nil })
		g.run("this", func() error { return tt.err })
		err := g.wait()
		if !errors.Is(err, tt.want) || tt.want != nil && err.Error() != "this: permission denied" || stopping.Err() == nil {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

func TestStopWaitsForRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &requests{}
		release, entered := make(chan struct{}), make(chan struct{})
		handler := r.counted(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(entered)
			<-release
		}))
		go handler.ServeHTTP(nil, nil)
		<-entered
		begin := time.Now()
		if err := r.drain(time.Second); err == nil || !strings.Contains(err.Error(), "did not end") || time.Since(begin) != abandonAfter {
			t.Errorf("after %s: %v, want the request that hangs to be abandoned", time.Since(begin), err)
		}
		go func() {
			time.Sleep(time.Second)
			close(release)
		}()
		begin = time.Now()
		if err := r.drain(time.Second); err != nil || time.Since(begin) != time.Second {
			t.Errorf("after %s: %v, want the end of the request", time.Since(begin), err)
		}
	})
}

func TestStopCutsConnectionsAfterItsTime(t *testing.T) {
	t.Parallel()
	entered, ended := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(ended)
	}))
	defer s.Close()
	idle := httptest.NewServer(http.NotFoundHandler())
	defer idle.Close()
	go func() {
		if a, err := http.Get(s.URL); err == nil {
			a.Body.Close()
		}
	}()
	<-entered
	must.OK(t, shutdown(50*time.Millisecond, s.Config, idle.Config))
	select {
	case <-ended:
	case <-time.After(must.Patience):
		t.Error("the request goes on")
	}
	if a, err := http.Get(idle.URL); err == nil {
		t.Errorf("the second server answers: %v", a.Body.Close())
	}
}

func TestStopTimeoutCoversWhatStoppingMayTake(t *testing.T) {
	t.Parallel()
	c := config.Default()
	if got, want := StopTimeout(c), time.Duration(c.Stop.Requests)+2*abandonAfter; got < want || got > want+time.Minute {
		t.Errorf("%s, want %s or a little more", got, want)
	}
}

func TestRepeatedWorkBeginsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Minute)
		defer cancel()
		begin := time.Now()
		var at []time.Duration
		must.OK(t, repeat(ctx, time.Hour, func(context.Context) { at = append(at, time.Since(begin)) }))
		must.Equal(t, "at", []time.Duration{0, time.Hour, 2 * time.Hour}, at)
	})
}

// systemd listens on a socket like systemd and returns the environment that names it.
func systemd(t *testing.T, name string) (environ []string, next func() string) {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	must.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	return []string{"NOTIFY_SOCKET=" + name}, func() string {
		t.Helper()
		buffer := make([]byte, 100)
		must.OK(t, conn.SetReadDeadline(time.Now().Add(must.Patience)))
		n, err := conn.Read(buffer)
		must.OK(t, err)
		return string(buffer[:n])
	}
}

func TestSystemdNotifications(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "molrun") // a socket address has at most 107 bytes
	must.OK(t, err)
	defer os.RemoveAll(dir)
	for _, name := range []string{filepath.Join(dir, "notify"), fmt.Sprintf("@molrun-test-%d", os.Getpid())} {
		environ, next := systemd(t, name)
		n := newNotifier(environ, zerolog.Nop())
		n.notify("READY=1")
		must.Equal(t, name, next(), "READY=1")
	}
	log := &whole.Log{}
	newNotifier([]string{"NOTIFY_SOCKET=" + filepath.Join(dir, "nobody")}, zerolog.New(log)).notify("READY=1")
	if logged(t, log, "could not notify systemd")["state"] != "READY=1" {
		t.Errorf("the log has %s", log)
	}
	log = &whole.Log{}
	newNotifier(nil, zerolog.New(log)).notify("READY=1")
	if log.String() != "" {
		t.Errorf("without systemd, the log has %s", log)
	}
}

func TestWatchdogIsAskedForByTheEnvironment(t *testing.T) {
	t.Parallel()
	me, other := fmt.Sprint("WATCHDOG_PID=", os.Getpid()), fmt.Sprint("WATCHDOG_PID=", os.Getppid())
	for _, tt := range []struct {
		environ []string
		want    time.Duration
	}{
		{[]string{"WATCHDOG_USEC=30000000"}, 10 * time.Second},
		{[]string{"WATCHDOG_USEC=30000000", me}, 10 * time.Second},
		{[]string{"WATCHDOG_USEC=30000000", other}, 0},
		{[]string{"WATCHDOG_USEC=1"}, time.Millisecond},
		{[]string{"WATCHDOG_USEC=0"}, 0},
		{[]string{"WATCHDOG_USEC=soon"}, 0},
		{[]string{me}, 0},
	} {
		must.Equal(t, fmt.Sprintf("%q: every", tt.environ), newNotifier(tt.environ, zerolog.Nop()).every, tt.want)
	}
}

func TestWatchdogMessagesWhileHealthy(t *testing.T) {
	t.Parallel()
	environ, next := systemd(t, fmt.Sprintf("@molrun-watchdog-%d", os.Getpid()))
	log := &whole.Log{}
	n := newNotifier(append(environ, "WATCHDOG_USEC=3000"), zerolog.New(log))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	sick := errors.New("the disk hangs")
	calls := 0
	go func() {
		ended <- n.watch(ctx, func(context.Context) error {
			if calls++; calls == 2 {
				return sick
			}
			return nil
		})
	}()
	for range 3 {
		if got := next(); got != "WATCHDOG=1" {
			t.Errorf("got %q", got)
		}
	}
	cancel()
	must.OK(t, <-ended)
	if calls < 4 || logged(t, log, "service unhealthy")["error"] != sick.Error() {
		t.Errorf("after %d calls, the log has %s", calls, log)
	}

	log = &whole.Log{}
	n = newNotifier(append(environ, "WATCHDOG_USEC=3000"), zerolog.New(log))
	must.OK(t, n.watch(ctx, func(ctx context.Context) error { return ctx.Err() }))
	if log.String() != "" {
		t.Errorf("a service that stops is unhealthy: %s", log)
	}
	must.OK(t, newNotifier([]string{"WATCHDOG_USEC=3000"}, zerolog.Nop()).watch(ctx, func(context.Context) error {
		t.Error("without systemd, the service is asked")
		return nil
	}))
}
