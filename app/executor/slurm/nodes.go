package slurm

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"molrun/app/placement"
)

const (
	// nodesEvery is how often the controller is asked what nodes there are.
	nodesEvery = time.Minute
	// nodesAge is how long its answer counts; after it, nothing is known.
	nodesAge = 15 * time.Minute
	// longestDays bounds the numbers of a time limit; beyond, there is none.
	longestDays = 100_000
)

// nodesFormat asks sinfo for partition, with a star behind the default one,
// CPUs, MiB of memory, GPUs among other things, and time limit.
const nodesFormat = "%P|%c|%m|%G|%l"

var nodesWords = []string{"--noheader", "--all", "--exact", "--format=" + nodesFormat}

// nodes remembers what the largest nodes of each partition have.
type nodes struct {
	mu    sync.Mutex
	known map[string]placement.Node // by partition; the default one also as ""
	asked time.Time
}

// Largest tells what the largest nodes of a placement's partition have for a
// job, each quantity by itself, and how long it may run there. It is false
// where that is not known, as in the first moments and while the controller is
// away. It answers at once.
func (e *Executor) Largest(p placement.Placement) (placement.Node, bool) {
	n := e.nodes.of(p.Partition)
	if n == nil {
		return placement.Node{}, false
	}
	n.MemoryBytes = max(0, n.MemoryBytes-memoryRoom)
	if n.Seconds > 0 {
		n.Seconds = max(1, n.Seconds-int64(e.room().Seconds()))
	}
	return *n, true
}

// of joins the partitions of which Slurm may take any.
func (k *nodes) of(partitions string) *placement.Node {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.asked) > nodesAge {
		return nil
	}
	var all *placement.Node
	for name := range strings.SplitSeq(partitions, ",") {
		n, ok := k.known[name]
		if !ok {
			return nil
		}
		if all == nil {
			all = &n
			continue
		}
		*all = larger(*all, n)
	}
	return all
}

// keepNodes asks what nodes there are, until ctx ends.
func (e *Executor) keepNodes(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		e.lookForNodes(ctx)
		timer.Reset(nodesEvery)
	}
}

func (e *Executor) lookForNodes(ctx context.Context) {
	text, err := e.slurm.run(ctx, "", "sinfo", nodesWords...)
	if err != nil {
		return // what was known holds for a while
	}
	known := parseNodes(text)
	e.nodes.mu.Lock()
	defer e.nodes.mu.Unlock()
	e.nodes.known, e.nodes.asked = known, time.Now()
}

// parseNodes reads what sinfo prints. Nodes that are down count: they may be
// back before the job's turn.
func parseNodes(text string) map[string]placement.Node {
	known := map[string]placement.Node{}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) != 5 {
			continue
		}
		cpus, errCPUs := strconv.Atoi(strings.TrimSuffix(fields[1], "+"))
		mib, errMemory := strconv.ParseInt(strings.TrimSuffix(fields[2], "+"), 10, 64)
		if errCPUs != nil || errMemory != nil {
			continue
		}
		n := placement.Node{CPUs: cpus, MemoryBytes: mib << 20, GPUs: parseGPUs(fields[3]), Seconds: parseLimit(fields[4])}
		name, standard := strings.CutSuffix(fields[0], "*")
		known[name] = larger(known[name], n)
		if standard {
			known[""] = known[name]
		}
	}
	return known
}

// larger takes of each quantity the larger one. A partition's time limit is the
// same on all its nodes; of several partitions, one without limit has none.
func larger(a, b placement.Node) placement.Node {
	seconds := max(a.Seconds, b.Seconds)
	if a != (placement.Node{}) && min(a.Seconds, b.Seconds) == 0 {
		seconds = 0
	}
	return placement.Node{
		CPUs:        max(a.CPUs, b.CPUs),
		MemoryBytes: max(a.MemoryBytes, b.MemoryBytes),
		GPUs:        max(a.GPUs, b.GPUs),
		Seconds:     seconds,
	}
}

var sockets = regexp.MustCompile(`\([^)]*\)`)

// parseGPUs counts the GPUs in a text such as gpu:a100:4(S:0,1),gpu:2,nic:1.
func parseGPUs(text string) (count int) {
	for item := range strings.SplitSeq(sockets.ReplaceAllString(text, ""), ",") {
		parts := strings.Split(item, ":")
		if n, err := strconv.Atoi(parts[len(parts)-1]); parts[0] == "gpu" && err == nil {
			count += n
		}
	}
	return count
}

// parseLimit reads 7-00:00:00, 2:30:00 or 30:00; anything else, such as
// infinite, is no limit.
func parseLimit(text string) int64 {
	days, clock, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, clock = "0", text
	}
	seconds, err := strconv.ParseInt(days, 10, 64)
	parts := strings.Split(clock, ":")
	if err != nil || seconds < 0 || seconds > longestDays || len(parts) > 3 || len(parts) < 2 {
		return 0
	}
	seconds *= 24 * 3600
	scale := int64(1)
	for i := len(parts) - 1; i >= 0; i-- {
		n, err := strconv.ParseInt(parts[i], 10, 64)
		if err != nil || n < 0 || n > longestDays {
			return 0
		}
		seconds += n * scale
		scale *= 60
	}
	return seconds
}
