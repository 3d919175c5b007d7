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

// persistence resends requests after connection errors.
type persistence struct {
	most     time.Duration
	answered atomic.Bool // the service has responded at least once
}

// idempotentPosts lists the last path segments of idempotent POST requests. Submitting
// the same name and settings again returns the existing job.
var idempotentPosts = []string{"submit-job", "submit-batch", "complete", "link", "result", "validate-job", "estimate", "cancel"}

func isIdempotent(method, path string) bool {
	return method == http.MethodGet || method == http.MethodPut ||
		method == http.MethodPost && slices.Contains(idempotentPosts, path[strings.LastIndexByte(path, '/')+1:])
}

// sendPersistently sends a request, and resends it after a pause if the connection
// breaks.
func (p *persistence) sendPersistently(method, path string, send func() error, pause func(stuck int) bool) error {
	began := time.Now()
	for stuck := 1; ; stuck++ {
		err := send()
		if err == nil || !broke(err) {
			p.answered.Store(true)
			return err
		}
		if !p.answered.Load() || !isIdempotent(method, path) || time.Since(began) > p.most || !pause(min(stuck, 20)) {
			return err
		}
	}
}

// broke reports whether an error is a connection error rather than a response of the
// service.
func broke(err error) bool {
	var connection *url.Error
	return errors.As(err, &connection) || errors.Is(err, io.ErrUnexpectedEOF)
}
