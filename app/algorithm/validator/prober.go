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

// What a program can use to print its version.
const (
	probeTimeLimit     = 10 * time.Second
	versionOutputLimit = 64 << 10
	maxVersion         = 64 // bytes that are kept of it
)

// Probe is a command that shows the version of a program, or that it works.
type Probe struct {
	Argv    []string
	Env     []string       // beside the usual
	Pattern *regexp.Regexp // its first group, or all of it, is the version; nil: it is not asked for that
	Sandbox protocol.Sandbox
}

// Prober asks programs for their versions and tests whether they work. It remembers what they said until their
// files change.
type Prober struct {
	confine Confine
	path    string // PATH on which programs are looked for

	mu    sync.Mutex // also while a program runs: one at a time
	known map[string]answer
}

// answer is what a program said.
type answer struct {
	version string
	err     error
	at      time.Time
}

// askAgain is how long a program is not asked again that did not say its version.
const askAgain = time.Minute

// NewProber returns a prober.
func NewProber(confine Confine, path string) *Prober {
	return &Prober{confine: confine, path: path, known: map[string]answer{}}
}

// Version returns the version that a program says it has. It waits for its turn and for the
// program, ten seconds at most for that, or until ctx ends.
func (p *Prober) Version(ctx context.Context, probe Probe) (string, error) {
	path, key, err := p.findProgram(probe)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a, known := p.known[key]
	if !known || a.err != nil && time.Since(a.at) > askAgain {
		a.version, a.err = p.readVersion(ctx, path, probe)
		a.at = time.Now()
	}
	if ctx.Err() == nil {
		p.known[key] = a // bounded by the catalogue and its programs' updates
	}
	return a.version, a.err
}

func (p *Prober) readVersion(ctx context.Context, path string, probe Probe) (string, error) {
	said, _, err := p.runProbe(ctx, path, probe) // many say it with an exit status that is not 0
	if err != nil {
		return "", err
	}
	groups := probe.Pattern.FindSubmatch(said)
	if groups == nil {
		return "", fmt.Errorf("%s does not say its version: version_pattern has no match in %q", probe.Argv[0], plaintext.OneLine(said, 200))
	}
	return plaintext.OneLine(groups[min(1, len(groups)-1)], maxVersion), nil
}

// findProgram finds the program. The key is the same as long as its file is.
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
		return "", "", fmt.Errorf("find %s to ask for its version: %w", probe.Argv[0], err)
	}
	return path, fmt.Sprint(path, info.ModTime().UnixNano(), info.Size(), strings.Join(probe.Argv, "\x00"), probe.Pattern), nil
}

// pathOf returns PATH, on which an environment of conda comes first.
func (p *Prober) pathOf(probe Probe) string {
	if conda := probe.Sandbox.Conda; conda != "" {
		return filepath.Join(conda, "bin") + ":" + p.path
	}
	return p.path
}

// runProbe returns what the program prints, and how it ended.
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
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // what it left behind
	if ctx.Err() != nil {
		return nil, nil, &tooLong{probe.Argv[0]}
	}
	return out.bytes(), ended, nil
}

// tooLong says that a program was ended.
type tooLong struct{ program string }

func (e *tooLong) Error() string {
	return fmt.Sprintf("%s did not say its version within %s", e.program, probeTimeLimit)
}
