package slurm

import (
	"context"
	"strings"
	"sync"
	"time"

	"molrun/app/algorithm/placement"
)

const (
	// nodesEvery is how often the controller is queried for nodes, and silentEvery how
	// often while it does not respond.
	nodesEvery  = time.Minute
	silentEvery = 10 * time.Second
	// nodesTTL is how long the result is used; after that, nothing is known.
	nodesTTL = 15 * time.Minute
)

// nodes queries the controller regularly and caches what the largest nodes of each
// partition offer.
type nodes struct {
	client *client
	margin time.Duration // time a task can live past its own limit

	mu    sync.Mutex
	known map[string]placement.Node // by partition; the default one also under ""
	asked time.Time
}

// keepCurrent refreshes the nodes until ctx ends.
func (k *nodes) keepCurrent(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		known, err := k.client.Partitions(ctx)
		if err == nil { // otherwise the last result is used for a while
			k.set(known, time.Now())
		}
		if _, silent := k.client.Answers(); err == nil && silent != nil {
			_, _ = k.client.Queue(ctx, "") // without jobs, nothing else calls squeue again
		}
		if _, silent := k.client.Answers(); silent != nil {
			timer.Reset(silentEvery)
		} else {
			timer.Reset(nodesEvery)
		}
	}
}

func (k *nodes) set(known map[string]placement.Node, asked time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known, k.asked = known, asked
}

// largest returns what the largest nodes leave for a task after deducting the margins.
func (k *nodes) largest(partitions string) (placement.Node, bool) {
	n := k.joinPartitions(partitions)
	if n == nil {
		return placement.Node{}, false
	}
	n.MemoryBytes = max(0, n.MemoryBytes-memoryMargin)
	if n.Seconds > 0 { // a short limit is cut by at most half
		n.Seconds = max(1, n.Seconds/2, n.Seconds-int64(k.margin.Seconds()))
	}
	return *n, true
}

// missing returns which of these partitions is known not to exist, such as "no partition
// gpu"; "" if none.
func (k *nodes) missing(partitions string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.asked) > nodesTTL {
		return ""
	}
	for name := range strings.SplitSeq(partitions, ",") {
		switch _, ok := k.known[name]; {
		case ok:
		case name == "":
			return "no default partition"
		default:
			return "no partition " + name
		}
	}
	return ""
}

// joinPartitions combines partitions between which Slurm can choose.
func (k *nodes) joinPartitions(partitions string) *placement.Node {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.asked) > nodesTTL {
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
		*all = largerNode(*all, n)
	}
	return all
}
