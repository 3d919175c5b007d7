package snapshot

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"molrun/app/base/fault"
	"molrun/app/client"
	"molrun/app/server/host"
	"molrun/storage"
)

// Path is the route on the control socket that keeps a snapshot for the duration of the
// request.
const Path = "/control/hold"

// Reply is the service's response to a request for a snapshot. It is sent immediately;
// the end of the response means that the snapshot has ended.
type Reply struct {
	Snapshot string `json:"snapshot"` // name in the data directory
}

// answerTimeout limits the wait for the snapshot of a large database on a busy disk.
const answerTimeout = time.Hour

// errReleased is the cause if the use of a snapshot ends early.
var errReleased = fault.Errorf(fault.Unavailable, "the service stopped during this command; run it again")

// errUnanswered means that the service did not provide a snapshot, most likely because it
// has just exited: after a crash its socket can stay open briefly.
var errUnanswered = errors.New("it does not respond")

// useLive runs fn on a snapshot of the running service.
func useLive(ctx context.Context, data string, fn func(context.Context, *Snapshot) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, reply, err := request(ctx, data)
	if err != nil {
		return fmt.Errorf("request a snapshot from the service: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, body)
		cancel(errReleased)
	}()
	records, err := storage.OpenReadOnly(filepath.Join(data, reply.Snapshot))
	if err == nil {
		err = withRecords(ctx, data, records, true, fn)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	err = errors.Join(err, body.Close())
	<-ended
	return err
}

// request requests a snapshot from the service. The caller closes the body when it no
// longer needs the snapshot.
func request(ctx context.Context, data string) (io.ReadCloser, Reply, error) {
	socket := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return client.DialControl(ctx, filepath.Join(data, host.Socket))
		},
		DisableKeepAlives:     true,
		ResponseHeaderTimeout: answerTimeout,
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://molrun"+Path, nil)
	if err != nil {
		return nil, Reply{}, err
	}
	response, err := socket.RoundTrip(request)
	if err != nil {
		return nil, Reply{}, fmt.Errorf("%w: %w", errUnanswered, err)
	}
	reply, err := readReply(response)
	if err != nil {
		return nil, Reply{}, errors.Join(err, response.Body.Close())
	}
	return response.Body, reply, nil
}

// readReply reads the first line of the response, which can last for days.
func readReply(response *http.Response) (reply Reply, err error) {
	line, err := bufio.NewReader(response.Body).ReadBytes('\n')
	if err != nil {
		return reply, err
	}
	if response.StatusCode != http.StatusOK {
		var rejection struct{ Error fault.Error }
		if json.Unmarshal(line, &rejection) != nil || rejection.Error.Message == "" {
			return reply, fmt.Errorf("the service responded with %s; it might be a different version", response.Status)
		}
		return reply, &rejection.Error
	}
	if err := json.Unmarshal(line, &reply); err != nil {
		return reply, err
	}
	if reply.Snapshot != filepath.Base(reply.Snapshot) {
		return reply, fmt.Errorf("the service names the snapshot %q, which is not a file name", reply.Snapshot)
	}
	return reply, nil
}
