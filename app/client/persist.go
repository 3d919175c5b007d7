package client

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// persistence sends requests again whose connection breaks.
type persistence struct {
	most     time.Duration
	answered atomic.Bool // the service, at least once
}

// harmlessTwice are the last path segments of idempotent POST requests: a submission of
// the same name and settings gives the job that there is.
var harmlessTwice = []string{"submit-job", "submit-batch", "complete", "link", "result", "validate", "estimate", "cancel"}

func harmless(method, path string) bool {
	return method == http.MethodGet || method == http.MethodPut ||
		method == http.MethodPost && slices.Contains(harmlessTwice, path[strings.LastIndexByte(path, '/')+1:])
}

// sendPersistently sends a request, again after its connection broke and a pause.
func (p *persistence) sendPersistently(method, path string, send func() error, pause func(stuck int) bool) error {
	began := time.Now()
	for stuck := 1; ; stuck++ {
		err := send()
		if err == nil || !broke(err) {
			p.answered.Store(true)
			return err
		}
		if !p.answered.Load() || !harmless(method, path) || time.Since(began) > p.most || !pause(min(stuck, 20)) {
			return err
		}
	}
}

// broke reports whether an error is that of a connection, and not what the service
// answered.
func broke(err error) bool {
	var connection *url.Error
	return errors.As(err, &connection) || errors.Is(err, io.ErrUnexpectedEOF)
}
