package server

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// notifier notifies systemd, if it has started this process, when the service is ready,
// when it stops and, if requested, that it is alive. Each message is a datagram to the
// socket named in the environment (sd_notify).
type notifier struct {
	address string        // "" if not started by systemd
	every   time.Duration // between watchdog messages; 0 disables them
	log     zerolog.Logger
}

func newNotifier(environ []string, log zerolog.Logger) *notifier {
	n := &notifier{log: log}
	var limit int64
	watched := true
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case "NOTIFY_SOCKET":
			n.address = value // a leading @ means an abstract socket
		case "WATCHDOG_USEC":
			limit, _ = strconv.ParseInt(value, 10, 64)
		case "WATCHDOG_PID":
			watched = value == strconv.Itoa(os.Getpid())
		}
	}
	if watched && limit > 0 {
		n.every = max(time.Duration(limit)*time.Microsecond/3, time.Millisecond)
	}
	return n
}

// notify sends a message. Errors are only logged.
func (n *notifier) notify(state string) {
	if n.address == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.address, Net: "unixgram"})
	if err == nil {
		defer conn.Close()
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // an error would also affect the write
		_, err = conn.Write([]byte(state))
	}
	if err != nil {
		n.log.Warn().Err(err).Str("state", state).Msg("could not notify systemd")
	}
}

// watch sends watchdog messages while alive succeeds, until ctx is done. If alive hangs,
// the messages stop and systemd restarts the service.
func (n *notifier) watch(ctx context.Context, alive func(context.Context) error) error {
	if n.address == "" || n.every == 0 {
		<-ctx.Done()
		return nil
	}
	ticker := time.NewTicker(n.every)
	defer ticker.Stop()
	for {
		if err := alive(ctx); err == nil {
			n.notify("WATCHDOG=1")
		} else if ctx.Err() == nil {
			n.log.Error().Err(err).Msg("service unhealthy; withholding the watchdog message")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}
