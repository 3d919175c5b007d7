package runner

import (
	"context"
	"time"

	"molrun/app"
)

// stopEvery is how often the request to stop a task is repeated.
const stopEvery = 5 * time.Second

// watch follows the task until it has exited.
func (a *attempt) watch(ctx context.Context) app.TaskStatus {
	news := a.follow()
	defer a.unfollow()
	defer a.writers.add(a)()
	stop, lost := a.stop, a.gpuLost
	var again <-chan time.Time
	for {
		select {
		case n := <-news:
			a.noteClusterJob(n.Cluster)
			switch {
			case n.unresponsive:
				a.reportUnresponsive(ctx, n.why)
			case n.State == app.TaskEnded || n.State == app.TaskLost:
				return n.TaskStatus
			default:
				a.reportStatus(ctx, n.TaskStatus)
			}
		case <-stop:
			stop = nil
			again = a.stopTask(ctx)
		case <-lost:
			lost = nil
			a.log.Warn().Str("gpu", a.lostGPU.Name).Msg("GPU of a running job is lost; stopping the job")
			again = a.stopLost(ctx)
		case <-again:
			again = a.stopLost(ctx)
		case <-ctx.Done():
			return app.TaskStatus{}
		}
	}
}

// follow starts following the task and returns the channel of its status updates.
func (a *attempt) follow() <-chan statusUpdate {
	if a.worker != nil {
		return a.worker.follow(a)
	}
	return a.executor.watcher.watchTask(a.task())
}

func (a *attempt) unfollow() {
	if a.worker != nil {
		a.worker.forgetJob(a)
		return
	}
	a.executor.watcher.remove(a.id)
}

// noteClusterJob records which cluster job runs the task.
func (a *attempt) noteClusterJob(c app.ClusterJob) {
	if c == a.cluster || c.Job == "" {
		return
	}
	a.cluster = c
	a.log = a.log.With().Str("slurm", c.Job).Str("node", c.Node).Str("partition", c.Partition).Logger()
}

// reportUnresponsive reports why there is no status of a task that was not seen running.
func (a *attempt) reportUnresponsive(ctx context.Context, why string) {
	text := "the cluster does not respond; retrying"
	if why != "" {
		text = "waiting for the cluster" + why
	}
	if !a.started {
		a.sendEvent(ctx, event{kind: evWaiting, reason: a.executor.waiting(text)})
	}
}

// reportStatus passes on the status of a live task.
func (a *attempt) reportStatus(ctx context.Context, s app.TaskStatus) {
	if s.State == app.TaskStarting {
		if a.started {
			a.log.Warn().Str("reason", s.Reason).Msg("executor no longer sees a running task; checking again")
			return
		}
		a.sendEvent(ctx, event{kind: evWaiting, reason: a.executor.waiting(s.Reason)})
		return
	}
	if !a.started {
		err := a.record(ctx, "start", func(ctx context.Context) error {
			return a.jobs.Started(ctx, a.id, a.number, s.StartedAt, s.Cluster)
		})
		if err != nil {
			return // ctx has ended
		}
		a.started = true
		a.sendEvent(ctx, event{kind: evWaiting})
		a.log.Info().Dur("took", time.Since(a.begin)).Msg("job started")
	}
	if s.Progress != nil {
		a.jobs.SetProgress(a.job, *s.Progress)
	}
}

// stopTask asks the executor to stop the task and returns a timer for the next request.
func (a *attempt) stopTask(ctx context.Context) <-chan time.Time {
	callCtx, cancel := context.WithTimeout(ctx, a.executor.timeout)
	defer cancel()
	if err := a.executor.Stop(callCtx, a.task()); err != nil && ctx.Err() == nil {
		a.log.Warn().Err(err).Msg("executor could not stop a task; retrying")
	}
	if a.worker != nil {
		a.worker.wake()
	}
	a.executor.watcher.expect(a.id)
	return time.After(stopEvery)
}
