package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"molrun/app/cli/terminal"
	"molrun/app/client"
)

func topCommand() *cobra.Command {
	var organization bool
	c := &cobra.Command{
		Use: "top", Short: "Watch running and queued jobs", Args: cobra.NoArgs,
		Long: `Watch running and queued jobs, refreshed every two seconds. Keys: up and down (or k and j)
select a job, f follows its log (any key returns), c cancels it, q quits. Admins also see the
machine.`,
		Example: Examples("molrun top", "molrun top --organization"),
	}
	c.Flags().BoolVar(&organization, "organization", false, "include other users' jobs")
	return withSession(c, func(ctx context.Context, s *session, _ []string) error {
		in, ok := c.InOrStdin().(*os.File)
		if !s.Interactive || !ok || !term.IsTerminal(int(in.Fd())) {
			return Usagef("molrun top needs a terminal; in scripts, use molrun jobs --status RUNNING,QUEUED")
		}
		q := url.Values{"status": {"RUNNING", "QUEUED"}, "limit": {"100"}}
		if organization {
			q.Set("organization", "true")
		}
		w := &watcher{session: s, query: q, in: in}
		return w.runUntilQuit(ctx)
	})
}

// watcher draws the running and queued jobs.
type watcher struct {
	*session
	query  url.Values
	in     *os.File
	jobs   []*client.Job
	head   string
	chosen int
	note   string // about the last key press
	asks   string // the job to cancel if y is pressed
}

// runUntilQuit draws until q or Ctrl-C. It always restores the terminal.
func (w *watcher) runUntilQuit(ctx context.Context) (err error) {
	before, err := term.MakeRaw(int(w.in.Fd()))
	if err != nil {
		return err
	}
	fmt.Fprint(w.Out, "\x1b[?1049h\x1b[?25l")
	defer func() {
		fmt.Fprint(w.Out, "\x1b[?25h\x1b[?1049l")
		err = errors.Join(err, term.Restore(int(w.in.Fd()), before))
	}()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	keys := readKeys(ctx, w.in)
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		w.loadAll(ctx)
		w.drawScreen()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case key, open := <-keys:
			if !open || w.press(ctx, key, keys) {
				return nil
			}
		}
	}
}

// readKeys returns a channel that receives key presses. Once ctx ends, its goroutine
// exits, at the latest after the next key press.
func readKeys(ctx context.Context, in io.Reader) <-chan string {
	keys := make(chan string)
	go func() {
		defer close(keys)
		pressed := make([]byte, 16)
		for {
			n, err := in.Read(pressed)
			if err != nil {
				return
			}
			select {
			case keys <- string(pressed[:n]):
			case <-ctx.Done():
				return
			}
		}
	}()
	return keys
}

// loadWithin limits how long key presses wait for the service.
const loadWithin = 5 * time.Second

// loadAll queries the service. Data that it can't load stays unchanged.
func (w *watcher) loadAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loadWithin)
	defer cancel()
	a, err := w.API.Get(ctx, w.query, "jobs")
	if err != nil {
		w.note = "the service does not respond: " + terminal.Clean(err.Error())
		return
	}
	list, err := client.Decode[struct {
		Jobs []*client.Job `json:"jobs"`
	}](a)
	if err != nil {
		w.note = err.Error()
		return
	}
	w.jobs = list.Jobs
	w.chosen = max(0, min(w.chosen, len(w.jobs)-1))
	w.head = w.machine(ctx)
}

// machine describes the load of the machine, for admins.
func (w *watcher) machine(ctx context.Context) string {
	running, waiting := 0, 0
	for _, j := range w.jobs {
		if j.Status == "RUNNING" {
			running++
		} else {
			waiting++
		}
	}
	head := fmt.Sprintf("molrun %s   %d running, %d waiting", w.Server, running, waiting)
	a, err := w.API.Get(ctx, nil, "admin", "status")
	if err != nil {
		return head
	}
	st, err := client.Decode[client.Status](a)
	if err != nil {
		return head
	}
	return head + "\r\n" + executorLoad(st)
}

func (w *watcher) drawScreen() {
	var screen bytes.Buffer
	width, height, err := term.GetSize(int(w.in.Fd()))
	if err != nil {
		width, height = w.Width, 24
	}
	t := *w.Terminal
	t.Out, t.Width = &screen, max(width-2, 40)
	lines := make([][]string, 0, len(w.jobs))
	now := time.Now()
	for _, j := range w.jobs[:min(len(w.jobs), max(height-8, 3))] {
		lines = append(lines, []string{j.Name, cmp.Or(j.Type, "(several)"), terminal.State(j.Status), runTime(j, now), jobNote(j)})
	}
	_ = t.Table([]terminal.Column{{Title: "NAME", MinWidth: 12}, {Title: "TYPE", MinWidth: 8}, {Title: "STATE"}, {Title: "TIME", Right: true}, {Title: "NOTES", MinWidth: 10}}, lines) // writes to memory
	fmt.Fprintf(w.Out, "\x1b[H\x1b[2J%s\r\n\r\n", w.head)
	for i, line := range strings.Split(strings.TrimRight(screen.String(), "\n"), "\n") {
		mark := "  "
		if i == w.chosen+1 && len(w.jobs) > 0 {
			mark = "▸ "
		}
		fmt.Fprintf(w.Out, "%s%s\r\n", mark, line)
	}
	fmt.Fprintf(w.Out, "\r\n%s\r\n↑↓ select   f follow   c cancel   q quit   %s", w.note, now.Format(time.TimeOnly))
}

// press handles a key press and reports whether to quit.
func (w *watcher) press(ctx context.Context, key string, keys <-chan string) bool {
	asked := w.asks
	w.note, w.asks = "", ""
	switch key {
	case "q", "\x03", "\x04":
		return true
	case "j", "\x1b[B":
		w.chosen = min(w.chosen+1, max(0, len(w.jobs)-1))
	case "k", "\x1b[A":
		w.chosen = max(0, w.chosen-1)
	case "y":
		w.stop(ctx, asked)
	case "c":
		if len(w.jobs) > 0 {
			w.asks = w.jobs[w.chosen].Name
			w.note = "cancel " + terminal.Clean(w.asks) + "? y: yes, any other key: no"
		}
	case "f":
		if len(w.jobs) > 0 {
			w.followLog(ctx, w.jobs[w.chosen].Name, keys)
		}
	}
	return false
}

func (w *watcher) stop(ctx context.Context, name string) {
	if name == "" {
		return
	}
	if _, err := w.API.Cancel(ctx, name); err != nil {
		w.note = terminal.Clean(err.Error())
		return
	}
	w.note = terminal.Clean(name) + " is being cancelled"
}

// followLog prints a job's log until a key is pressed.
func (w *watcher) followLog(ctx context.Context, name string, keys <-chan string) {
	following, stop := context.WithCancel(ctx)
	defer stop()
	fmt.Fprintf(w.Out, "\x1b[H\x1b[2J%s   press any key to return\r\n\r\n", terminal.Clean(name))
	ended := make(chan struct{})
	go func() { // exits at the latest when following is canceled
		defer close(ended)
		_ = w.FollowLog(following, name, waiting{}, returning{w.Out}) // ignored: the list shows the job's state
		fmt.Fprint(w.Out, "\r\n(end)\r\n")
	}()
	select {
	case <-keys:
	case <-ctx.Done():
	}
	stop()
	<-ended
}

// returning writes text to a raw terminal, where each newline needs a carriage return.
type returning struct{ to io.Writer }

// Write implements io.Writer.
func (r returning) Write(text []byte) (int, error) {
	_, err := r.to.Write(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")))
	return len(text), err
}

// executorLoad describes the load of each executor, one per line.
func executorLoad(st *client.Status) string {
	var lines []string
	for _, e := range st.Executors {
		line := fmt.Sprintf("%-6s %d running, %d waiting", e.Name, e.Running+e.Others.Running, e.Queued+e.Others.Queued)
		if c := e.Capacity; c != nil {
			line += fmt.Sprintf("   CPUs %d/%d   memory %s/%s", e.Used.CPUs, c.CPUs, terminal.Size(e.Used.Memory), terminal.Size(c.Memory))
			if c.GPUs > 0 {
				line += fmt.Sprintf("   GPUs %d/%d", e.Used.GPUs, c.GPUs)
			}
			if len(e.Faulty) > 0 {
				line += fmt.Sprintf("   faulty GPUs %d", len(e.Faulty))
			}
		}
		if e.State != "ok" {
			line += "   " + terminal.Clean(e.State)
		}
		lines = append(lines, line)
	}
	if st.Drained {
		lines = append(lines, "queue paused")
	}
	return strings.Join(lines, "\r\n")
}
