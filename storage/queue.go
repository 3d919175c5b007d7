package storage

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"math"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/app/job/eta"
	"molrun/storage/kv"
)

// Queue visits the jobs that wait for an executor. It reads only the index.
func (t tx) Queue(executor string, visit func(app.Waiting) app.Visit) error {
	prefix := make(kv.Key, 0, 64).Text(executor)
	w := t.Walk(indexJobsQueue)
	for w.Seek(prefix); w.Key != nil && bytes.HasPrefix(w.Key, prefix); {
		waiting, err := readWaiting(w.Key[len(prefix):], w.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", indexJobsQueue, err)
		}
		switch visit(waiting) {
		case app.NextJob:
			w.Next()
		case app.NextUser:
			w.Seek(w.Key[:len(w.Key)-sortid.Size].End())
		default:
			return nil
		}
	}
	return nil
}

const indexJobsQueue = "jobs.queue"

// waits reports whether a job can be claimed.
func waits(j *app.Job) bool {
	return j.Status == app.Queued && !j.Private.Claimed && !j.IsBatch() && len(j.Private.Waits) == 0
}

// jobQueue indexes claimable jobs by executor, priority, organization, user and id. The
// value is the job's resource requirements, and the class and size that determine its run
// time.
func jobQueue(id sortid.ID, j *app.Job) []kv.Entry {
	if !waits(j) {
		return nil
	}
	k := make(kv.Key, 0, 128).Text(j.Executor).Priority(j.Priority).Text(j.Organization).Text(j.Email).ID(id)
	return []kv.Entry{{Key: k, Value: appendWork(appendResources(nil, j.Private.Needs), j.Work())}}
}

// QueueLines counts the jobs that wait for an executor, by priority and user.
func (t tx) QueueLines(executor string) ([]app.QueueLine, error) {
	var lines []app.QueueLine
	prefix := make(kv.Key, 0, 64).Text(executor)
	for k, value := range t.Ascend(sumJobsQueue, prefix) {
		l, err := readLine(k[len(prefix):], value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sumJobsQueue, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

const sumJobsQueue = "jobs.queue.lines"

// queueLine sums claimable jobs by executor, priority, organization, user.
func queueLine(j *app.Job) (kv.Key, app.Usage) {
	if !waits(j) {
		return nil, app.Usage{}
	}
	return make(kv.Key, 0, 128).Text(j.Executor).Priority(j.Priority).Text(j.Organization).Text(j.Email), app.Usage{Queued: 1}
}

func readLine(k kv.Key, value []byte) (l app.QueueLine, err error) {
	if l.Priority, l.Organization, l.Email, _, err = cutQueuePrefix(k); err != nil {
		return l, err
	}
	sum, err := readUsage(value)
	l.Count = sum.Queued
	return l, err
}

// cutQueuePrefix cuts off the part of a key that determines the scheduling order.
func cutQueuePrefix(k kv.Key) (priority int, organization, email string, rest kv.Key, err error) {
	if priority, rest, err = k.CutPriority(); err != nil {
		return 0, "", "", nil, err
	}
	if organization, rest, err = rest.CutText(); err != nil {
		return 0, "", "", nil, err
	}
	email, rest, err = rest.CutText()
	return priority, organization, email, rest, err
}

// readWaiting decodes the part of a key after the executor, and the value.
func readWaiting(k kv.Key, value []byte) (w app.Waiting, err error) {
	if w.Priority, w.Organization, w.Email, k, err = cutQueuePrefix(k); err != nil {
		return w, err
	}
	if w.ID, err = jobAt(k); err != nil {
		return w, err
	}
	if w.Needs, value, err = readResources(value); err != nil {
		return w, err
	}
	w.Work, err = readWork(value)
	return w, err
}

func appendWork(b []byte, w eta.Work) []byte {
	return append(binary.BigEndian.AppendUint64(b, math.Float64bits(w.Size)), w.Class...)
}

func readWork(b []byte) (eta.Work, error) {
	if len(b) < 8 {
		return eta.Work{}, kv.ErrKey
	}
	return eta.Work{Class: string(b[8:]), Size: float64At(b)}, nil
}

func appendResources(b []byte, r placement.Resources) []byte {
	b = binary.AppendVarint(b, int64(r.CPUs))
	b = binary.AppendVarint(b, r.MemoryBytes)
	return binary.AppendVarint(b, int64(r.GPUs))
}

// readResources decodes resources and returns them with the bytes that follow.
func readResources(b []byte) (placement.Resources, []byte, error) {
	var numbers [3]int64
	for i := range numbers {
		v, n := binary.Varint(b)
		if n <= 0 {
			return placement.Resources{}, nil, kv.ErrKey
		}
		numbers[i], b = v, b[n:]
	}
	return placement.Resources{CPUs: int(numbers[0]), MemoryBytes: numbers[1], GPUs: int(numbers[2])}, b, nil
}

// Active iterates over the claimed jobs, oldest first.
func (t tx) Active() iter.Seq2[*app.Job, error] {
	return t.jobsOf(indexJobsClaimed, nil)
}

// Claims iterates over the claimed jobs, oldest first. It reads only the index.
func (t tx) Claims() iter.Seq2[app.Claimed, error] {
	return func(yield func(app.Claimed, error) bool) {
		for k, value := range t.Ascend(indexJobsClaimed, nil) {
			c, err := readClaimed(k, value)
			if err != nil {
				err = fmt.Errorf("%s: %w", indexJobsClaimed, err)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

const indexJobsClaimed = "jobs.claimed"

// jobClaimed indexes claimed jobs by id. The value is the number of the attempt and
// whether the job is to be stopped.
func jobClaimed(id sortid.ID, j *app.Job) []kv.Entry {
	if !j.Private.Claimed || j.Status.Finished() {
		return nil
	}
	var stop uint64
	if j.Private.Stop {
		stop = 1
	}
	value := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(j.Attempts)), stop)
	return []kv.Entry{{Key: kv.Key{}.ID(id), Value: value}}
}

func readClaimed(k kv.Key, value []byte) (app.Claimed, error) {
	id, err := jobAt(k)
	if err != nil {
		return app.Claimed{}, err
	}
	attempt, n := binary.Uvarint(value)
	if n <= 0 {
		return app.Claimed{}, kv.ErrKey
	}
	stop, m := binary.Uvarint(value[n:])
	if m <= 0 || stop > 1 {
		return app.Claimed{}, kv.ErrKey
	}
	return app.Claimed{Job: id, Attempt: int(attempt), Stop: stop == 1}, nil
}

// metaDrain is the meta key of the reason why the queue is paused.
const metaDrain = "drained"

// Drained returns the value stored by PutDrained, or nil if there is none.
func (t tx) Drained() (*app.Drain, error) {
	text := t.Bucket(kv.Meta).Get([]byte(metaDrain))
	if text == nil {
		return nil, nil
	}
	d := &app.Drain{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("read why the service is drained: %w", err)
	}
	return d, nil
}

// PutDrained stores the reason why the queue is paused; nil means that it is not paused.
func (t tx) PutDrained(d *app.Drain) error {
	if d == nil {
		return t.Delete(kv.Meta, []byte(metaDrain))
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return t.Replace(kv.Meta, []byte(metaDrain), text)
}

// Dependants iterates over the jobs that depend on a job in a given way. It reads only
// the index.
func (t tx) Dependants(job app.JobID, how app.Dependence) iter.Seq2[app.JobID, error] {
	return func(yield func(app.JobID, error) bool) {
		id, err := sortid.Parse(string(job))
		if err != nil {
			return // no job has this ID
		}
		for k := range t.Ascend(indexJobsDependant, dependantKey(id, how)) {
			dependant, err := jobAt(k)
			if !yield(dependant, err) || err != nil {
				return
			}
		}
	}
}

// Unpropagated returns the oldest job whose status has not been propagated to its
// dependents.
func (t tx) Unpropagated() (app.JobID, error) {
	for k := range t.Ascend(indexJobsUnpropagated, nil) {
		return jobAt(k)
	}
	return "", fault.Errorf(fault.NotFound, "all jobs are settled")
}

// PendingBatches iterates over the batches with a pending change of their rows.
func (t tx) PendingBatches() iter.Seq2[app.JobID, error] {
	return func(yield func(app.JobID, error) bool) {
		for k := range t.Ascend(indexJobsPendingBatch, nil) {
			id, err := jobAt(k)
			if !yield(id, err) || err != nil {
				return
			}
		}
	}
}

const (
	indexJobsDependant    = "jobs.dependant"
	indexJobsUnpropagated = "jobs.unsettled"
	indexJobsPendingBatch = "jobs.asked"
)

// jobDependant indexes dependent jobs by the job they depend on, the way they depend on
// it, and id.
func jobDependant(id sortid.ID, j *app.Job) []kv.Entry {
	if j.Status == app.Failed && j.Private.Cause != "" {
		return []kv.Entry{{Key: dependantKey(idOf(j.Private.Cause), app.FailedWith).ID(id)}}
	}
	if j.Status != app.Queued {
		return nil
	}
	all := make([]kv.Entry, len(j.Private.Waits))
	for i, w := range j.Private.Waits {
		how := app.WaitsForSuccess
		if w.Any {
			how = app.WaitsForEnd
		}
		all[i].Key = dependantKey(idOf(w.Job), how).ID(id)
	}
	return all
}

func dependantKey(job sortid.ID, how app.Dependence) kv.Key {
	return make(kv.Key, 0, 2*sortid.Size+1).ID(job).Letter(byte(how))
}

// jobUnpropagated indexes by id the jobs whose status has not been propagated to their
// dependents.
func jobUnpropagated(id sortid.ID, j *app.Job) []kv.Entry {
	if !j.Private.Unpropagated {
		return nil
	}
	return []kv.Entry{{Key: kv.Key{}.ID(id)}}
}

// jobPendingBatch indexes by id the batches with a pending change of their rows.
func jobPendingBatch(id sortid.ID, j *app.Job) []kv.Entry {
	if j.Private.Pending == nil {
		return nil
	}
	return []kv.Entry{{Key: kv.Key{}.ID(id)}}
}

// metaRuns is the prefix of the keys that hold the run times of past jobs. The class of
// the jobs follows it.
const metaRuns = "runs "

// runSize is the number of bytes of a run: size and seconds.
const runSize = 16

// Runs returns the latest runs of a class.
func (t tx) Runs(class string) ([]eta.Run, error) {
	value := t.Bucket(kv.Meta).Get([]byte(metaRuns + class))
	if len(value)%runSize != 0 {
		return nil, fmt.Errorf("the run times of %s have %d bytes", class, len(value))
	}
	runs := make([]eta.Run, 0, len(value)/runSize)
	for ; len(value) > 0; value = value[runSize:] {
		runs = append(runs, eta.Run{Size: float64At(value), Seconds: float64At(value[runSize/2:])})
	}
	return runs, nil
}

func float64At(b []byte) float64 { return math.Float64frombits(binary.BigEndian.Uint64(b)) }

// AddRun adds a run to its class.
func (t tx) AddRun(class string, r eta.Run) error {
	key := []byte(metaRuns + class)
	value := t.Bucket(kv.Meta).Get(key)
	if over := len(value) - (eta.MaxRuns-1)*runSize; over > 0 {
		value = value[over:]
	}
	value = bytes.Clone(value)
	value = binary.BigEndian.AppendUint64(value, math.Float64bits(r.Size))
	return t.Replace(kv.Meta, key, binary.BigEndian.AppendUint64(value, math.Float64bits(r.Seconds)))
}
