package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// group runs the parts of the service; when one ends, all are stopped.
type group struct {
	stop    func()
	results []chan error
}

func (g *group) run(name string, part func() error) {
	result := make(chan error, 1)
	g.results = append(g.results, result)
	go func() {
		defer g.stop()
		err := part()
		if errors.Is(err, http.ErrServerClosed) || errors.Is(err, context.Canceled) {
			err = nil
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		result <- err
	}()
}

// wait waits for all parts and returns their errors.
func (g *group) wait() error {
	var errs []error
	for _, result := range g.results {
		errs = append(errs, <-result)
	}
	return errors.Join(errs...)
}
