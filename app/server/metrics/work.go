package metrics

import (
	"context"
	"time"

	"molrun/app"
)

const (
	measureEvery = 10 * time.Minute
	// maxMeasured limits how many running jobs are measured.
	maxMeasured = 200
)

// Measure periodically measures the directories of running jobs until ctx is done.
func (m *Metrics) Measure(ctx context.Context, running func(context.Context) ([]app.Claimed, error), size func(app.JobID) (int64, error)) {
	ticker := time.NewTicker(measureEvery)
	defer ticker.Stop()
	for {
		m.measure(ctx, running, size)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (m *Metrics) measure(ctx context.Context, running func(context.Context) ([]app.Claimed, error), size func(app.JobID) (int64, error)) {
	all, err := running(ctx)
	if err != nil {
		m.unread.WithLabelValues("work").Inc()
		return
	}
	var total int64
	for _, c := range all[:min(len(all), maxMeasured)] {
		bytes, err := size(c.Job)
		if err == nil && ctx.Err() == nil {
			total += bytes
		}
	}
	m.workBytes.Store(total)
}
