package slurm

import (
	"context"
	"crypto/rand"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"molrun/app/algorithm/placement"
	"molrun/app/base/plaintext"
)

const (
	// probeTimeout is how long the test job can take to start and to respond.
	probeTimeout = 30 * time.Second
	// clockSlack is the tolerated difference between clocks.
	clockSlack = 5 * time.Second
)

// probe is a test job that writes its answer to its own directory.
type probe struct {
	*checkup
	dir   string
	place placement.Placement
	nonce string // identifies this probe in its answer and in the job's name
	sent  time.Time
}

// probeScript writes its answer line by line: what it read, the time, the node, the user,
// and whether this program runs there.
const probeScript = `#!/bin/sh
PATH=${PATH:+$PATH:}/usr/bin:/bin
umask 077
cd DIR || exit 75
{ cat nonce; date +%s; hostname; id -u; PROGRAM version >/dev/null 2>&1; echo $?; } >answer.new
mv answer.new answer
`

func (p *probe) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	job, err := p.submit(ctx)
	if err != nil {
		p.addFinding(Wrong, "could not submit the test job: %v", err)
		return
	}
	answer, seen := p.await(ctx)
	if seen {
		p.checkAnswer(answer, p.options.Now())
		return
	}
	p.silent(job)
}

// name is unique to this job. A job ID may have been reused for another job.
func (p *probe) name() string { return p.options.Prefix + "_probe-" + p.nonce }

func (p *probe) submit(ctx context.Context) (job string, err error) {
	p.nonce = rand.Text()
	if err := os.WriteFile(filepath.Join(p.dir, "nonce"), []byte(p.nonce+"\n"), 0o600); err != nil {
		return "", err
	}
	installer := program{from: p.options.Program, dir: filepath.Join(p.options.SharedDir, binDir)}
	program, err := installer.install(ctx)
	if err != nil {
		return "", err
	}
	script := strings.NewReplacer("DIR", plaintext.ShellWord(p.dir), "PROGRAM", plaintext.ShellWord(program)).Replace(probeScript)
	p.sent = p.options.Now()
	args := append(placementArgs(p.place), p.options.commonArgs(p.name(), 1)...)
	return p.client.Submit(ctx, script, append(args, "--time=1")...)
}

// await waits for the answer. It lists the directory each time, because a network file
// system can cache for a while that a file does not exist.
func (p *probe) await(ctx context.Context) (answer string, seen bool) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := os.ReadDir(p.dir); err == nil {
			if text, err := os.ReadFile(filepath.Join(p.dir, "answer")); err == nil {
				return string(text), true
			}
		}
		select {
		case <-ctx.Done():
			return "", false
		case <-ticker.C:
		}
	}
}

// checkAnswer evaluates the answer, which arrived at seen.
func (p *probe) checkAnswer(answer string, seen time.Time) {
	lines := strings.Split(strings.TrimSpace(answer), "\n")
	if len(lines) != 5 || lines[0] != p.nonce {
		p.addFinding(Wrong, "a node sees different files in %s than this machine; mount the same file system there", p.options.SharedDir)
		return
	}
	node := lines[2]
	p.addFinding(Fine, "the test job on node %s exchanged files with this machine within %v", node, seen.Sub(p.sent).Round(time.Second/10))
	if lines[3] != strconv.Itoa(os.Geteuid()) {
		p.addFinding(Wrong, "the job ran with UID %s and molrun with UID %d; use the same UID on all nodes", lines[3], os.Geteuid())
	}
	if lines[4] != "0" {
		p.addFinding(Wrong, "this program does not run on node %s (exit status %s); is the node of another architecture, or the folder mounted noexec?", node, lines[4])
	}
	p.checkClock(lines[1], node, seen)
}

// checkClock relies on the node having read its clock between two readings of this
// machine's clock.
func (p *probe) checkClock(text, node string, seen time.Time) {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.addFinding(Doubtful, "node %s did not report its time", node)
		return
	}
	there := time.Unix(seconds, 0)
	ahead := there.Sub(seen).Seconds()
	behind := p.sent.Truncate(time.Second).Sub(there).Seconds()
	switch apart := math.Max(ahead, behind); {
	case apart <= clockSlack.Seconds():
	case ahead > behind:
		p.addFinding(Doubtful, "the clock of node %s is %.0f s ahead of this machine's, so the times of jobs are wrong; keep both in step (NTP)", node, apart)
	default:
		p.addFinding(Doubtful, "the clock of node %s is %.0f s behind this machine's, so the times of jobs are wrong; keep both in step (NTP)", node, apart)
	}
}

// silent reports the state of a test job that did not answer, and cancels it.
func (p *probe) silent(job string) {
	ctx, cancel := context.WithTimeout(context.Background(), p.options.Timeout)
	defer cancel()
	state, reason, node, err := p.client.State(ctx, p.name())
	_ = p.client.Cancel(ctx, cancelEnd, p.name(), nil)
	switch {
	case err != nil:
		p.addFinding(Doubtful, "test job %s did not respond within %v, and its state could not be read: %v", job, probeTimeout, err)
	case (jobRecord{State: state}).Kind() == kindQueued:
		p.addFinding(Doubtful, "the test job was still queued after %v (%s), so access to the shared folder is untested; try again when the cluster is less busy", probeTimeout, reason)
	default:
		p.addFinding(Wrong, "the test job is %s on node %s (%s), but its answer does not appear in %s; mount the same file system there under that path", state, node, reason, p.options.SharedDir)
	}
}
