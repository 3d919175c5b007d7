package slurm

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"molrun/app/algorithm/placement"
)

// longestDays is the largest number of days taken as a time limit; above it, there is no
// limit.
const longestDays = 100_000

// nodesFormat selects the partition, with a star after the default one, CPUs, MiB of
// memory, generic resources, and time limit from sinfo.
const nodesFormat = "%P|%c|%m|%G|%l"

// Partitions queries sinfo for the maximum of each quantity that the nodes of each
// partition offer. The default partition is also listed as "".
func (c *client) Partitions(ctx context.Context) (map[string]placement.Node, error) {
	text, err := c.runCommand(ctx, "", "sinfo", "--noheader", "--all", "--exact", "--format="+nodesFormat)
	if err != nil {
		return nil, err
	}
	return parseNodes(text), nil
}

// parseNodes parses the output of sinfo. Nodes that are down count, because they may be
// back before the job starts.
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
		n := placement.Node{CPUs: cpus, MemoryBytes: mib << 20, GPUs: parseGPUs(fields[3]), Seconds: parseTimeLimit(fields[4])}
		name, standard := strings.CutSuffix(fields[0], "*")
		known[name] = largerNode(known[name], n)
		if standard {
			known[""] = known[name]
		}
	}
	return known
}

// largerNode returns the larger value of each quantity. A partition's time limit is the
// same on all its nodes; if one of several partitions has no limit, there is none.
func largerNode(a, b placement.Node) placement.Node {
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

var gpuSockets = regexp.MustCompile(`\([^)]*\)`)

// parseGPUs counts the GPUs in a list of generic resources such as
// gpu:a100:4(S:0,1),gpu:2,nic:1.
func parseGPUs(text string) (count int) {
	for item := range strings.SplitSeq(gpuSockets.ReplaceAllString(text, ""), ",") {
		parts := strings.Split(item, ":")
		if n, err := strconv.Atoi(parts[len(parts)-1]); parts[0] == "gpu" && err == nil {
			count += n
		}
	}
	return count
}

// parseTimeLimit parses 7-00:00:00, 2:30:00 or 30:00. Anything else, such as infinite,
// means no limit.
func parseTimeLimit(text string) int64 {
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
