package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"molrun/app/server/snapshot"
	"molrun/web"
	"molrun/web/edge"
	"molrun/web/respond"
)

// operator returns the handler of the service's control socket.
func (s *service) operator(stopping context.Context, e *endpoints) http.Handler {
	control := s.control(s.baseURL(e), e.listener())
	snapshots := edge.Trace(s.log, s.snapshotHandler(stopping))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == snapshot.Path {
			snapshots.ServeHTTP(w, r)
			return
		}
		control.ServeHTTP(w, r)
	})
}

// maxSnapshotTime limits how long a hanging client can keep a snapshot: files deleted
// during that time still use disk space.
const maxSnapshotTime = 7 * 24 * time.Hour

func (s *service) snapshotHandler(stopping context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), maxSnapshotTime)
		defer cancel()
		defer context.AfterFunc(stopping, cancel)()
		if err := s.keepSnapshot(ctx, w); err != nil {
			respond.Error(w, r, err)
		}
	})
}

// keepSnapshot creates a snapshot, responds, and keeps the files named in the snapshot
// until ctx is done. Package snapshot explains why that suffices.
func (s *service) keepSnapshot(ctx context.Context, w http.ResponseWriter) error {
	defer s.files.PauseRemovals()()
	path, err := s.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err := os.Remove(path); err != nil {
			s.log.Warn().Err(err).Msg("could not remove a database snapshot; the next start removes it")
		}
	}()
	w.Header().Set("Content-Type", "application/json")
	err = json.NewEncoder(w).Encode(snapshot.Reply{Snapshot: filepath.Base(path)})
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if err == nil {
		<-ctx.Done()
	}
	return nil // the response has started; only its end can signal an error
}

// control returns the handler of the operator's routes except snapshots. The addresses
// are "" if this process does not serve the API.
func (s *service) control(baseURL, listener string) http.Handler {
	reload := s.offer.reload
	if listener == "" {
		reload = nil // no jobs are submitted here
	}
	return web.Control(s.app, s.accounts, s.keeper, s.usage, web.ControlOptions{
		Reload: reload, LastRead: s.offer.lastRead,
		Log: s.log, Audit: s.audit.Add, RotateSecret: s.files.RotateSecret, RotateNow: s.endLinks, Isolation: s.isolation,
		BaseURL: baseURL, Listener: listener,
	})
}

// endLinks invalidates all links of all users and creates a new secret.
func (s *service) endLinks(ctx context.Context) (kid string, err error) {
	if err := s.accounts.RevokeAllLinks(ctx); err != nil {
		return "", err
	}
	return s.files.RotateSecretNow()
}

// listenControl creates a socket in the data directory. The caller has locked the
// database, so an existing socket belongs to a process that has exited.
func listenControl(data, name string) (net.Listener, error) {
	dir, err := os.Open(data)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer dir.Close()
	if err := os.Remove(filepath.Join(data, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	// This name fits in the 107 bytes of a socket address, however long the path of the
	// data directory is.
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	listener.SetUnlinkOnClose(false) // that name is invalid by then; the next start removes the file
	if err := os.Chmod(filepath.Join(data, name), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), listener.Close())
	}
	return listener, nil
}
