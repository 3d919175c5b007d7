// Package version asks programs for their versions, and finds out whether they work.
package version

import (
	"bytes"
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

// What a program may use to say its version.
const (
	timeLimit   = 10 * time.Second
	outputLimit = 64 << 10
	maxVersion  = 64 // bytes that are kept of it
)

// Question is how a program is asked.
type Question struct {
	Argv    []string
	Env     []string       // beside the usual
	Pattern *regexp.Regexp // its first group, or all of it, is the version; nil: it is not asked for that
	Sandbox protocol.Sandbox
}

// Confine makes a command run in a sandbox like that of jobs.
type Confine func(c *exec.Cmd, may protocol.Sandbox, files []string) (done func(), err error)

// Prober asks programs, and remembers what they said until their files change.
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

// askAgain is how long a program is left alone that did not say its version.
const askAgain = time.Minute

// NewProber returns a prober.
func NewProber(confine Confine, path string) *Prober {
	return &Prober{confine: confine, path: path, known: map[string]answer{}}
}

// Of returns the version that a program says it has. It waits for its turn and for the
// program, ten seconds at most for that, or until ctx ends.
func (p *Prober) Of(ctx context.Context, q Question) (string, error) {
	path, key, err := p.find(q)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a, known := p.known[key]
	if !known || a.err != nil && time.Since(a.at) > askAgain {
		a.version, a.err = p.version(ctx, path, q)
		a.at = time.Now()
	}
	if ctx.Err() == nil {
		p.known[key] = a // bounded by the catalogue and its programs' updates
	}
	return a.version, a.err
}

func (p *Prober) version(ctx context.Context, path string, q Question) (string, error) {
	said, _, err := p.ask(ctx, path, q) // many say it with an exit status that is not 0
	if err != nil {
		return "", err
	}
	groups := q.Pattern.FindSubmatch(said)
	if groups == nil {
		return "", fmt.Errorf("%s does not say its version: version_pattern has no match in %q", q.Argv[0], plaintext.OneLine(said, 200))
	}
	return plaintext.OneLine(groups[min(1, len(groups)-1)], maxVersion), nil
}

// find finds the program. The key is the same as long as its file is.
func (p *Prober) find(q Question) (path, key string, err error) {
	path = q.Argv[0]
	info, err := os.Stat(path)
	for _, dir := range filepath.SplitList(p.pathOf(q)) {
		if filepath.IsAbs(path) {
			break
		}
		if info, err = os.Stat(filepath.Join(dir, path)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			path = filepath.Join(dir, path)
		}
	}
	if err != nil {
		return "", "", fmt.Errorf("find %s to ask for its version: %w", q.Argv[0], err)
	}
	return path, fmt.Sprint(path, info.ModTime().UnixNano(), info.Size(), strings.Join(q.Argv, "\x00"), q.Pattern), nil
}

// pathOf returns PATH, on which an environment of conda comes first.
func (p *Prober) pathOf(q Question) string {
	if conda := q.Sandbox.Conda; conda != "" {
		return filepath.Join(conda, "bin") + ":" + p.path
	}
	return p.path
}

// ask returns what the program prints, and how it ended.
func (p *Prober) ask(ctx context.Context, path string, q Question) (said []byte, ended, err error) {
	home, err := os.MkdirTemp("", "molrun-version-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	out := &bounded{}
	c := exec.CommandContext(ctx, path, q.Argv[1:]...)
	c.Dir = home
	c.Env = append([]string{"PATH=" + p.pathOf(q), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"}, q.Env...)
	may := q.Sandbox
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
		return nil, nil, &tooLong{q.Argv[0]}
	}
	return out.kept.Bytes(), ended, nil
}

// tooLong says that a program was ended.
type tooLong struct{ program string }

func (e *tooLong) Error() string {
	return fmt.Sprintf("%s did not say its version within %s", e.program, timeLimit)
}

// bounded keeps the first bytes that a program prints.
type bounded struct{ kept bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.kept.Write(p[:min(len(p), outputLimit-b.kept.Len())])
	return len(p), nil
}
