package metrics

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/storage"
	"molrun/storage/kv"
)

// Store provides the metrics of the database. *storage.Store implements it.
type Store interface {
	Totals(ctx context.Context) (storage.Totals, error)
	Size(ctx context.Context) (kv.Size, error)
}

// Sources provides the current state for a scrape. Optional ones can be nil.
type Sources struct {
	Store     Store
	Disk      func() (app.Disk, error)
	Executors []app.Executor
	AuditLog  string                              // path
	AuditLost func() int                          // number of lost entries
	Listeners func() int                          // number of event listeners
	Computing func() int                          // number of requests waiting to compute
	Slurm     func() (since time.Time, err error) // whether the cluster responds; optional
	Backups   func() Backups                      // state of scheduled backups; optional
	Warn      func(part string, err error)        // called with parts that cannot be read
}

// Backups is the state of the backups.
type Backups struct {
	Available bool          // false if, for example, the disk is not mounted
	Every     time.Duration // backup interval
	Taken     time.Time     // time of the newest backup; zero if there is none
	Bytes     int64         // size of the newest backup
	Took      time.Duration // duration of the service's last backup
	Failures  int           // failed backups and test restores since startup
	Tested    time.Time     // time of the last test restore; zero if there was none
	TestedOK  bool
}

// fresh is how long values read from the database are reused, so that frequent scrapes
// cost no more.
const fresh = time.Second

// scrapeTime limits the time that a scrape spends reading.
const scrapeTime = 5 * time.Second

// Watch adds the metrics of the sources.
func (m *Metrics) Watch(s Sources) { m.Registry.MustRegister(&state{metrics: m, Sources: s}) }

// state collects the current state.
type state struct {
	metrics *Metrics
	Sources

	mu     sync.Mutex
	at     time.Time
	totals storage.Totals
	size   kv.Size
	err    error
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	timeNow        = desc("molrun_time_seconds", "Current time of the service, in seconds since 1970.")
	jobs           = desc("molrun_jobs", "Stored jobs by state, type and executor. Jobs of batches are counted, batches are not.", "state", "type", "executor")
	queueJobs      = desc("molrun_queue_jobs", "Queued jobs by executor, not counting those that wait for other jobs.", "executor")
	queueOldest    = desc("molrun_queue_oldest_seconds", "Waiting time in seconds of the oldest of these jobs since its submission or retry, by executor; 0 if there is none.", "executor")
	drained        = desc("molrun_drained", "1 if the queue is paused (molrun drain), so that no jobs start, otherwise 0.")
	executorJobs   = desc("molrun_executor_jobs", "Jobs that hold resources (starting or running), by executor.", "executor")
	executorCPUs   = desc("molrun_executor_cpus", "CPUs by executor and use: used by jobs, or free. For a cluster, only used ones: it has its own queue.", "executor", "use")
	executorMemory = desc("molrun_executor_memory_bytes", "Memory in bytes by executor and use: used (reserved for jobs), or free.", "executor", "use")
	executorGPUs   = desc("molrun_executor_gpus", "GPUs by executor and use: used by jobs, free, or faulty (jobs can't use them).", "executor", "use")
	gpuFaulty      = desc("molrun_gpu_faulty", "1 for each GPU that jobs can't use, by executor, GPU and fault: lost, reset (needs one), memory (uncorrected errors), occupied (by other programs), unknown (nvidia-smi does not respond) or no-instances (MIG mode). Absent for healthy ones.", "executor", "gpu", "fault")
	diskSize       = desc("molrun_disk_size_bytes", "Size in bytes of the disk with the data directory.")
	diskFree       = desc("molrun_disk_free_bytes", "Free space in bytes on that disk.")
	diskReserve    = desc("molrun_disk_reserve_bytes", "Free-space threshold in bytes. Below it, uploads are rejected and jobs wait.")
	diskFreeFiles  = desc("molrun_disk_free_files", "Number of files (inodes) that can still be created on that disk; 0, with a threshold of 0, if the file system sets no limit.")
	diskKeptFiles  = desc("molrun_disk_reserve_files", "Threshold of free files (inodes), below which uploads are rejected and jobs wait.")
	dataBytes      = desc("molrun_data_bytes", "Space in bytes that the data directory uses, by kind: database, uploads, results, audit (the audit log), work (directories of running jobs, measured every ten minutes).", "kind")
	databaseSize   = desc("molrun_database_size_bytes", "Size in bytes of the database.")
	databaseFree   = desc("molrun_database_free_bytes", "Free space in bytes within the database, which is reused before the file grows.")
	databasePages  = desc("molrun_database_free_pages", "Free pages within the database.")
	oldestNotice   = desc("molrun_notices_oldest_seconds", "Age in seconds of the oldest notification (webhook or e-mail) not delivered yet; 0 if there is none.")
	listeners      = desc("molrun_event_listeners", "Open event streams of clients.")
	computing      = desc("molrun_requests_waiting", "Submissions and other requests waiting for a CPU.")
	auditLost      = desc("molrun_audit_entries_lost_total", "Entries of the audit log that could not be written.")
	slurmUp        = desc("molrun_slurm_up", "1 if Slurm's controller responded to the last request, 0 if not. Absent without a cluster, and before the first response.")
	backupTime     = desc("molrun_backup_last_success_timestamp_seconds", "Time of the newest backup, in seconds since 1970. Absent if there is none.")
	backupThere    = desc("molrun_backup_directory_present", "1 if the directory for scheduled backups exists, 0 if not, for example because its disk is not mounted.")
	backupEvery    = desc("molrun_backup_interval_seconds", "Interval of scheduled backups in seconds.")
	backupSize     = desc("molrun_backup_size_bytes", "Size in bytes of the newest backup, including files shared with other backups.")
	backupTook     = desc("molrun_backup_duration_seconds", "Duration in seconds of the last scheduled backup.")
	backupFailures = desc("molrun_backup_failures_total", "Failed backups and test restores since the start. Absent without scheduled backups.")
	backupTried    = desc("molrun_backup_trial_timestamp_seconds", "Time of the last test restore of a backup, in seconds since 1970. Absent before the first.")
	backupTriedOK  = desc("molrun_backup_trial_success", "1 if the last test restore succeeded, 0 if not.")
)

// Describe implements prometheus.Collector. The collector is unchecked: its metrics
// depend on what can be read.
func (s *state) Describe(chan<- *prometheus.Desc) {}

// sink receives metrics.
type sink chan<- prometheus.Metric

func (c sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// Collect implements prometheus.Collector.
func (s *state) Collect(to chan<- prometheus.Metric) {
	c := sink(to)
	c.gauge(timeNow, float64(time.Now().UnixMilli())/1000)
	if totals, size, err := s.database(); err != nil {
		s.unread("database", err)
	} else {
		s.collectTotals(c, totals)
		s.collectSize(c, totals, size)
	}
	if disk, err := s.Disk(); err != nil {
		s.unread("disk", err)
	} else {
		collectDisk(c, disk)
	}
	s.collectExecutors(c)
	c.gauge(listeners, float64(s.Listeners()))
	c.gauge(computing, float64(s.Computing()))
	c <- prometheus.MustNewConstMetric(auditLost, prometheus.CounterValue, float64(s.AuditLost()))
	if s.Slurm != nil {
		if since, err := s.Slurm(); !since.IsZero() {
			c.gauge(slurmUp, one(err == nil))
		}
	}
	if s.Backups != nil {
		s.collectBackups(c)
	}
}

func (s *state) collectBackups(c sink) {
	b := s.Backups()
	c.gauge(backupThere, one(b.Available))
	c.gauge(backupEvery, b.Every.Seconds())
	if !b.Taken.IsZero() {
		c.gauge(backupTime, float64(b.Taken.Unix()))
		c.gauge(backupSize, float64(b.Bytes))
	}
	if b.Took > 0 {
		c.gauge(backupTook, b.Took.Seconds())
	}
	c <- prometheus.MustNewConstMetric(backupFailures, prometheus.CounterValue, float64(b.Failures))
	if !b.Tested.IsZero() {
		c.gauge(backupTried, float64(b.Tested.Unix()))
		c.gauge(backupTriedOK, one(b.TestedOK))
	}
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (s *state) unread(part string, err error) {
	s.metrics.unread.WithLabelValues(part).Inc()
	s.Warn(part, err)
}

// database reads the sums of the database, at most once in the interval fresh.
func (s *state) database() (storage.Totals, kv.Size, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.at.IsZero() && time.Since(s.at) < fresh {
		return s.totals, s.size, s.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	if s.totals, s.err = s.Store.Totals(ctx); s.err == nil {
		s.size, s.err = s.Store.Size(ctx)
	}
	s.at = time.Now()
	return s.totals, s.size, s.err
}

func (s *state) collectTotals(c sink, all storage.Totals) {
	type labels struct{ state, typ, executor string }
	counts := map[labels]int{}
	for _, t := range all.Jobs {
		typ, executor := s.metrics.types.of(t.Type), executorOf(t.Executor)
		s.metrics.startSeries(typ, executor)
		for _, status := range app.Statuses { // include zeros
			counts[labels{strings.ToLower(string(status)), typ, executor}] += 0
		}
		counts[labels{strings.ToLower(string(t.Status)), typ, executor}] += t.Jobs
	}
	for l, n := range counts {
		c.gauge(jobs, float64(n), l.state, l.typ, l.executor)
	}
	queues := map[string]storage.QueueTotal{}
	for _, q := range all.Queues {
		queues[q.Executor] = q
	}
	for _, e := range s.Executors {
		q, oldest := queues[e.Name()], 0.0
		if !q.Oldest.IsZero() {
			oldest = max(0, time.Since(q.Oldest).Seconds())
		}
		c.gauge(queueJobs, float64(q.Jobs), e.Name())
		c.gauge(queueOldest, oldest, e.Name())
	}
	c.gauge(drained, one(all.Drained))
	age := 0.0
	if !all.OldestDelivery.IsZero() {
		age = max(0, time.Since(all.OldestDelivery).Seconds())
	}
	c.gauge(oldestNotice, age)
}

func (s *state) collectSize(c sink, all storage.Totals, size kv.Size) {
	c.gauge(databaseSize, float64(size.Bytes))
	c.gauge(databaseFree, float64(size.FreeBytes))
	c.gauge(databasePages, float64(size.FreePages))
	var results int64
	for _, t := range all.Jobs {
		results += t.Bytes
	}
	for kind, bytes := range map[string]int64{
		"database": size.Bytes, "uploads": all.Uploads.Bytes, "results": results,
		"audit": sizeOf(s.AuditLog), "work": s.metrics.workBytes.Load(),
	} {
		c.gauge(dataBytes, float64(bytes), kind)
	}
}

// sizeOf returns the total size of a log and its rotated files.
func sizeOf(log string) (bytes int64) {
	files, _ := filepath.Glob(log + "*") // the pattern is valid
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

func collectDisk(c sink, d app.Disk) {
	c.gauge(diskSize, float64(d.Size))
	c.gauge(diskFree, float64(d.Free))
	c.gauge(diskReserve, float64(d.Reserve))
	c.gauge(diskFreeFiles, float64(d.FreeFiles))
	c.gauge(diskKeptFiles, float64(d.ReserveFiles))
}

func (s *state) collectExecutors(c sink) {
	for _, e := range s.Executors {
		now := s.metrics.load.get(e.Name())
		c.gauge(executorJobs, float64(now.jobs), e.Name())
		use := func(use string, r placement.Resources) {
			c.gauge(executorCPUs, float64(r.CPUs), e.Name(), use)
			c.gauge(executorMemory, float64(r.MemoryBytes), e.Name(), use)
			c.gauge(executorGPUs, float64(r.GPUs), e.Name(), use)
		}
		use("used", now.used)
		if all, bounded := e.Capacity(); bounded {
			use("free", placement.Resources{
				CPUs: max(0, all.CPUs-now.used.CPUs), MemoryBytes: max(0, all.MemoryBytes-now.used.MemoryBytes), GPUs: max(0, len(all.GPUs)-now.used.GPUs),
			})
			c.gauge(executorGPUs, float64(len(all.FaultyGPUs)), e.Name(), "faulty")
			for _, g := range all.FaultyGPUs {
				c.gauge(gpuFaulty, 1, e.Name(), g.Name, string(g.Fault))
			}
		}
	}
}
