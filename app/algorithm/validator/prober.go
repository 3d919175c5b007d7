package validator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"molrun/app/base/plaintext"
	"molrun/app/task/protocol"
)

// Limits for version queries and self-tests.
const (
	probeTimeLimit     = 10 * time.Second
	versionOutputLimit = 64 << 10
	maxVersion         = 64 // bytes kept of a version
)

// Probe is a command that queries the version of a program or tests it.
type Probe struct {
	Argv    []string
	Env     []string       // in addition to the standard variables
	Pattern *regexp.Regexp // its first group, or whole match, is the version; nil for a self-test
	Sandbox protocol.Sandbox
}

// Prober queries the versions of programs and runs self-tests. It caches versions until
// the program's file changes.
type Prober struct {
	confine Confine
	path    string // PATH used to find programs

	mu    sync.Mutex // also held while a program runs, so that only one runs at a time
	known map[string]answer
}

// answer is a cached result.
type answer struct {
	version string
	err     error
	at      time.Time
}

// retryAfter is the time before a failed version query is repeated.
const retryAfter = time.Minute

func NewProber(confine Confine, path string) *Prober {
	return &Prober{confine: confine, path: path, known: map[string]answer{}}
}

// Version returns the version that a program reports. It waits for other queries to
// finish, then at most ten seconds for the program, or until ctx is done.
func (p *Prober) Version(ctx context.Context, probe Probe) (string, error) {
	path, key, err := p.findProgram(probe)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a, known := p.known[key]
	if !known || a.err != nil && time.Since(a.at) > retryAfter {
		a.version, a.err = p.readVersion(ctx, path, probe)
		a.at = time.Now()
	}
	if ctx.Err() == nil {
		p.known[key] = a // bounded by the catalogue and program updates
	}
	return a.version, a.err
}

func (p *Prober) readVersion(ctx context.Context, path string, probe Probe) (string, error) {
	said, _, err := p.runProbe(ctx, path, probe) // many programs print it but exit with a nonzero status
	if err != nil {
		return "", err
	}
	groups := probe.Pattern.FindSubmatch(said)
	if groups == nil {
		return "", fmt.Errorf("%s does not report its version: version_pattern does not match %q", probe.Argv[0], plaintext.OneLine(said, 200))
	}
	return plaintext.OneLine(groups[min(1, len(groups)-1)], maxVersion), nil
}

// findProgram finds the program. The key is the same until its file changes.
func (p *Prober) findProgram(probe Probe) (path, key string, err error) {
	path = probe.Argv[0]
	info, err := os.Stat(path)
	for _, dir := range filepath.SplitList(p.pathOf(probe)) {
		if filepath.IsAbs(path) {
			break
		}
		if info, err = os.Stat(filepath.Join(dir, path)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			path = filepath.Join(dir, path)
		}
	}
	if err != nil {
		return "", "", fmt.Errorf("find %s to query its version: %w", probe.Argv[0], err)
	}
	return path, fmt.Sprint(path, info.ModTime().UnixNano(), info.Size(), strings.Join(probe.Argv, "\x00"), probe.Pattern), nil
}

// pathOf returns PATH, preceded by the conda environment if there is one.
func (p *Prober) pathOf(probe Probe) string {
	if conda := probe.Sandbox.Conda; conda != "" {
		return filepath.Join(conda, "bin") + ":" + p.path
	}
	return p.path
}

// runProbe returns the output of the program and its exit error.
func (p *Prober) runProbe(ctx context.Context, path string, probe Probe) (said []byte, ended, err error) {
	home, err := os.MkdirTemp("", "molrun-version-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	ctx, cancel := context.WithTimeout(ctx, probeTimeLimit)
	defer cancel()
	out := &boundedBuffer{most: versionOutputLimit}
	c := exec.CommandContext(ctx, path, probe.Argv[1:]...)
	c.Dir = home
	c.Env = append([]string{"PATH=" + p.pathOf(probe), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"}, probe.Env...)
	may := probe.Sandbox
	if may.Conda != "" {
		may.Read = append(slices.Clone(may.Read), may.Conda)
		c.Env = append(c.Env, "CONDA_PREFIX="+may.Conda)
	}
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	done, err := p.confine(c, may, nil)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if err := c.Start(); err != nil {
		return nil, nil, err
	}
	ended = c.Wait()
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // kill remaining children
	if ctx.Err() != nil {
		return nil, nil, &tooLong{probe.Argv[0]}
	}
	return out.bytes(), ended, nil
}

// tooLong is the error for a program that was killed after the time limit.
type tooLong struct{ program string }

func (e *tooLong) Error() string {
	return fmt.Sprintf("%s did not report its version within %s", e.program, probeTimeLimit)
}
