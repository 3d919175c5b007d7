package cli

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
)

// supervisor is systemd, where it has started this process: it is told when the
// service is ready, that it stops, and, if it asks for that, that it lives. Each
// message is a datagram to the socket that it names in the environment.
type supervisor struct {
	address string        // "": nobody wants to know
	every   time.Duration // between signs of life; 0: none are wanted
	log     zerolog.Logger
}

func newSupervisor(environ []string, log zerolog.Logger) *supervisor {
	s := &supervisor{log: log}
	var limit int64
	watched := true
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case "NOTIFY_SOCKET":
			s.address = value // one that begins with @ has no file
		case "WATCHDOG_USEC":
			limit, _ = strconv.ParseInt(value, 10, 64)
		case "WATCHDOG_PID":
			watched = value == strconv.Itoa(os.Getpid())
		}
	}
	if watched && limit > 0 {
		s.every = max(time.Duration(limit)*time.Microsecond/3, time.Millisecond)
	}
	return s
}

// tell sends a message. The service does not depend on its being heard.
func (s *supervisor) tell(state string) {
	if s.address == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.address, Net: "unixgram"})
	if err == nil {
		defer conn.Close()
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // fails with the write, if at all
		_, err = conn.Write([]byte(state))
	}
	if err != nil {
		s.log.Warn().Err(err).Str("state", state).Msg("the supervisor can't be told")
	}
}

// watch tells that the service lives as long as alive returns, until ctx ends.
// Where alive hangs, so does this, and the supervisor starts the service anew.
func (s *supervisor) watch(ctx context.Context, alive func(context.Context) error) error {
	if s.address == "" || s.every == 0 {
		<-ctx.Done()
		return nil
	}
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for {
		if err := alive(ctx); err == nil {
			s.tell("WATCHDOG=1")
		} else if ctx.Err() == nil {
			s.log.Error().Err(err).Msg("the service is not well; the supervisor is told nothing")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// alive reads from the database, as nearly every request does.
func (s *service) alive(ctx context.Context) error {
	return s.store.View(ctx, func(tx app.Tx) error {
		_, err := tx.Stamp()
		return err
	})
}
