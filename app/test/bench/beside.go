package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// requestInterval is the interval between two requests of the person whose pages are
// measured. The requests alternate between a page and a trivial response, which costs
// nothing but waiting for a CPU.
const requestInterval = 2 * time.Millisecond

// settle is how long after a round of submissions the server counts as idle again.
const settle = 200 * time.Millisecond

// load describes what a crowd submits while a person's pages are measured.
type load struct {
	typ, settings string
	clients       int
	rounds        int
	each          time.Duration // duration of a round
}

// measureAlongside measures one user's pages before, while and after a crowd submits jobs
// as another user.
func (s *server) measureAlongside(ctx context.Context, name string, l load, f figures) error {
	other, err := s.otherUser(ctx)
	if err != nil {
		return err
	}
	s.series++
	asking, err := startPerson(personSpec{s.address, [][]byte{s.get(firstPage), s.get("/version")}, requestInterval})
	if err != nil {
		return err
	}
	crowd, err := runCrowd(ctx, crowdSpec{
		Address: s.address, Key: other.key, Pid: s.pid(), Series: fmt.Sprintf("%s-%d", name, s.series),
		Type: l.typ, Settings: l.settings, Clients: l.clients, Rounds: l.rounds, Idle: 2 * settle, For: l.each,
	})
	replies, personErr := asking.stop()
	if err := errors.Join(err, personErr); err != nil {
		return err
	}
	return f.addConcurrent(name, replies, crowd)
}

// addConcurrent adds the measurements of a person and of the crowd that ran at the same
// time.
func (f figures) addConcurrent(name string, replies []reply, crowd crowdReport) error {
	var idle, busy [2]sample // latencies of pages, and of trivial responses
	var person, own, server, wall time.Duration
	for _, r := range crowd.Rounds {
		own, server, wall = own+r.Own, server+r.Server, wall+time.Duration(r.Ended-r.Begun)
		person += cpuBetween(replies, r.Begun, r.Ended)
	}
	for _, r := range replies {
		if r.Err != "" {
			return fmt.Errorf("a request during %s: %s", name, r.Err)
		}
		switch during(crowd.Rounds, r.Sent) {
		case loaded:
			busy[r.Request].took = append(busy[r.Request].took, r.Took)
		case quiet:
			idle[r.Request].took = append(idle[r.Request].took, r.Took)
		}
	}
	for i, what := range []string{"page", "empty"} {
		slices.Sort(idle[i].took)
		slices.Sort(busy[i].took)
		for _, q := range []struct {
			name string
			at   float64
		}{{"p50", .5}, {"p99", .99}, {"max", 1}} {
			f[name+"."+what+".idle."+q.name], f[name+"."+what+"."+q.name] = idle[i].quantile(q.at), busy[i].quantile(q.at)
		}
		f[name+"."+what+".number"] = float64(len(busy[i].took))
	}
	submissions := sample{took: crowd.Took, elapsed: wall}
	f[name+".submit.p50"], f[name+".submit.max"] = submissions.quantile(.5), submissions.quantile(1)
	f[name+".submit.rate"] = submissions.rate()
	f[name+".submit.cpu"] = microseconds(server) / float64(len(crowd.Took))
	f[name+".clients.share"] = float64(own+person) / float64(own+person+server)
	return nil
}

type when int

const (
	between when = iota // the server might still be busy
	quiet
	loaded
)

// during reports what the crowd was doing at a given time.
func during(rounds []crowdRound, at int64) when {
	for i, r := range rounds {
		free := r.Begun - int64(settle)
		if i > 0 {
			free = rounds[i-1].Ended + int64(settle)
		}
		switch {
		case at >= r.Begun && at <= r.Ended:
			return loaded
		case at >= free && at < r.Begun-int64(10*time.Millisecond):
			return quiet
		}
	}
	return between
}

// cpuBetween returns the CPU time that the person process used between two times.
func cpuBetween(replies []reply, from, to int64) time.Duration {
	var first, last time.Duration
	for _, r := range replies {
		at := r.Sent + int64(r.Took)
		if at >= from && at <= to {
			if first == 0 || r.CPU < first {
				first = r.CPU
			}
			last = max(last, r.CPU)
		}
	}
	return last - first
}

// personProcess is a running person process.
type personProcess struct {
	cmd *exec.Cmd
	in  interface{ Close() error }
	out bytes.Buffer
	err bytes.Buffer
}

func startPerson(spec personSpec) (*personProcess, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a := &personProcess{cmd: highPriority(program, "person")}
	a.cmd.Stdout, a.cmd.Stderr = &a.out, &a.err
	in, err := a.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	a.in = in
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(in).Encode(spec); err != nil {
		_, stopErr := a.stop()
		return nil, errors.Join(err, stopErr)
	}
	return a, nil
}

// stop ends the process and returns its replies.
func (a *personProcess) stop() (replies []reply, err error) {
	_ = a.in.Close() // the process exits at the end of its input
	if err := a.cmd.Wait(); err != nil {
		return nil, fmt.Errorf("the person process: %w: %s", err, a.err.Bytes())
	}
	err = json.Unmarshal(a.out.Bytes(), &replies)
	return replies, err
}

// runCrowd runs a crowd process to completion.
func runCrowd(ctx context.Context, spec crowdSpec) (report crowdReport, err error) {
	program, err := os.Executable()
	if err != nil {
		return report, err
	}
	told, err := json.Marshal(spec)
	if err != nil {
		return report, err
	}
	c := exec.CommandContext(ctx, "nice", "-n", "19", program, "crowd")
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(told), &out, &errs
	if err := c.Run(); err != nil {
		return report, fmt.Errorf("the crowd process: %w: %s", err, errs.Bytes())
	}
	err = json.Unmarshal(out.Bytes(), &report)
	return report, err
}

// highPriority returns a command that runs at the highest priority this user can set.
func highPriority(argv ...string) *exec.Cmd {
	for _, prefix := range []string{"chrt --fifo 10", "nice -n -10"} {
		words := strings.Fields(prefix)
		if out, err := exec.Command(words[0], append(words[1:], "true")...).CombinedOutput(); err == nil && len(out) == 0 {
			argv = append(words, argv...)
			break
		}
	}
	return exec.Command(argv[0], argv[1:]...)
}

// measureListUnderChecks compares a user's first pages on an idle service with those
// while another user's submissions, all sent at once, are validated: in one case by the
// built-in engine, in the other by an external program. Every submission must get the
// same response as on an idle service.
func measureListUnderChecks(ctx context.Context, b *testbed, f figures) error {
	for name, l := range map[string]load{
		"engine":  {"cg-idp", `{"sequences":["DSHAKRHHGYKRKFHEKHHSHRGY"]}`, checksAtOnce, 10, 0},
		"program": {"checked", `{}`, checksAtOnce, 2, 0},
	} {
		if err := b.large.measureAlongside(ctx, name, l, f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// checksAtOnce is the number of one user's submissions that are validated at once.
const checksAtOnce = 600

// measureListUnderLoad compares first pages while many clients submit jobs with first
// pages on an idle service, and with trivial responses, which cost nothing but waiting
// for a CPU.
func measureListUnderLoad(ctx context.Context, b *testbed, f figures) error {
	return b.large.measureAlongside(ctx, "crowd", load{"nothing", `{"note":"` + note + `"}`, crowd, 3, b.Duration / 2}, f)
}
