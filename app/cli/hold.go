package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/config"
	"molrun/app/fault"
	"molrun/blobs"
	"molrun/storage"
	"molrun/web/client"
	"molrun/web/edge"
	"molrun/web/respond"
)

// A backup and a check want records and files that fit together while the
// service goes on. They get them so: the service first holds back removals of
// files, then writes a snapshot of its database, and answers. As long as the
// request lasts, every file that the snapshot names stays where it is:
//
//   - It was there when the snapshot was made, since a file is stored before
//     its record.
//   - It is removed only after its record, thus after the snapshot, thus after
//     the hold began; so its removal waits.
//   - It does not change, since no stored file ever does.
//
// The end of the request, however it comes about, is the end of the hold.
const holdPath = "/control/hold"

const (
	// holdLimit bounds a hold whose holder hangs: what is deleted meanwhile
	// keeps its disk space.
	holdLimit = 7 * 24 * time.Hour

	// snapshotPatience bounds the wait for the snapshot of a large database
	// on a busy disk.
	snapshotPatience = time.Hour
)

// held is the service's answer. More is sent only by ending it.
type held struct {
	Snapshot string `json:"snapshot"` // name in the data directory
}

// operator gives the handler of the control socket.
func (s *service) operator(stopping context.Context) http.Handler {
	control := s.control()
	hold := edge.Trace(s.log, s.holdHandler(stopping))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == holdPath {
			hold.ServeHTTP(w, r)
			return
		}
		control.ServeHTTP(w, r)
	})
}

func (s *service) holdHandler(stopping context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), holdLimit)
		defer cancel()
		defer context.AfterFunc(stopping, cancel)()
		if err := s.hold(ctx, w); err != nil {
			respond.Error(w, r, err)
		}
	})
}

// hold answers and returns when the hold is over.
func (s *service) hold(ctx context.Context, w http.ResponseWriter) error {
	defer s.files.PauseRemovals()()
	snapshot, err := s.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err := os.Remove(snapshot); err != nil {
			s.log.Warn().Err(err).Msg("a snapshot of the database is left behind; the next start removes it")
		}
	}()
	w.Header().Set("Content-Type", "application/json")
	err = json.NewEncoder(w).Encode(held{filepath.Base(snapshot)})
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if err == nil {
		<-ctx.Done()
	}
	return nil // where the answer has begun, its end tells all
}

// view is the records and files of a data directory, fitting together.
type view struct {
	records *storage.ReadOnly
	files   *blobs.Tree
	live    bool // a service runs on the directory
	taken   time.Time
}

// errReleased is why the use of a view ends before its time.
var errReleased = fault.Errorf(fault.Unavailable, "the service has ended or was stopped meanwhile; do this again once it runs, or while it does not")

// withView runs fn on a view of the data directory: by a hold of the service
// that runs there, or else of the directory itself, on which no service can
// start meanwhile. Commands that come at once take turns. A service that ends
// before it has answered is as good as none.
func withView(ctx context.Context, c config.Config, fn func(context.Context, *view) error) error {
	patience := time.Now().Add(operatorPatience)
	for {
		if conn, err := client.DialControl(ctx, filepath.Join(c.Data, socketName)); err == nil {
			conn.Close()
			err = withHold(ctx, c.Data, fn)
			if !errors.Is(err, errUnanswered) || ctx.Err() != nil || time.Now().After(patience) {
				return err
			}
			continue
		}
		records, err := storage.OpenReadOnly(filepath.Join(c.Data, databaseName))
		if err == nil {
			return useView(ctx, c.Data, records, false, fn)
		}
		if !errors.Is(err, fault.Unavailable) || ctx.Err() != nil || time.Now().After(patience) {
			return err
		}
	}
}

// errUnanswered says that the service has given no hold, most likely since it
// has just ended: a crash can leave its socket open for a moment longer.
var errUnanswered = errors.New("it does not answer")

func withHold(ctx context.Context, data string, fn func(context.Context, *view) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answer, h, err := askHold(ctx, data)
	if err != nil {
		return fmt.Errorf("ask the service to hold its files: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, answer) // its end is the news
		cancel(errReleased)
	}()
	records, err := storage.OpenReadOnly(filepath.Join(data, h.Snapshot))
	if err == nil {
		err = useView(ctx, data, records, true, fn)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	err = errors.Join(err, answer.Close())
	<-ended
	return err
}

// askHold gives the service's answer, to be closed when the hold may end.
func askHold(ctx context.Context, data string) (io.ReadCloser, held, error) {
	socket := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return client.DialControl(ctx, filepath.Join(data, socketName))
		},
		DisableKeepAlives:     true,
		ResponseHeaderTimeout: snapshotPatience,
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://molrun"+holdPath, nil)
	if err != nil {
		return nil, held{}, err
	}
	response, err := socket.RoundTrip(request)
	if err != nil {
		return nil, held{}, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	var h held
	body := bufio.NewReader(response.Body)
	line, err := body.ReadBytes('\n')
	if err == nil && response.StatusCode != http.StatusOK {
		err = refusal(response.Status, line)
	}
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err == nil && h.Snapshot != filepath.Base(h.Snapshot) {
		err = fmt.Errorf("the service names the snapshot %q, which is no name", h.Snapshot)
	}
	if err != nil {
		return nil, held{}, errors.Join(err, response.Body.Close())
	}
	return response.Body, h, nil
}

// refusal reads an answer that is no success.
func refusal(status string, body []byte) error {
	var answer struct{ Error fault.Error }
	if json.Unmarshal(body, &answer) != nil || answer.Error.Message == "" {
		return fmt.Errorf("the service answers %s; it may be of another version", status)
	}
	return &answer.Error
}

// useView closes the records when fn is done.
func useView(ctx context.Context, data string, records *storage.ReadOnly, live bool, fn func(context.Context, *view) error) (err error) {
	defer func() { err = errors.Join(err, records.Close()) }()
	files, err := blobs.OpenTree(data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	return fn(ctx, &view{records: records, files: files, live: live, taken: time.Now()})
}

// databaseName is the database's in the data directory.
const databaseName = "jobs.db"

// storageOptions are those of the database of this configuration.
func storageOptions(c config.Config, log zerolog.Logger) storage.Options {
	return storage.Options{
		MaxSize:       int64(c.Database.MaxSize),
		AnyFileSystem: c.Database.FileSystem == "any",
		Warn:          func(text string) { log.Error().Msg(text) },
		Fatal: func(err error) {
			log.Error().Err(err).Msg("the database failed; restart the service, nothing that was confirmed is lost")
			os.Exit(exitStorage)
		},
	}
}
