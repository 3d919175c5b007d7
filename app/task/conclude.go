package task

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"molrun/app/base/unit"
	"molrun/app/task/protocol"
)

const (
	searchedOutput = 1 << 20 // bytes searched at the end of a step's output
	shownOutput    = 16 << 10
)

// tail keeps the end of what is written to it.
type tail struct {
	most int
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p[max(0, len(p)-t.most):]...)
	if len(t.text) > 2*t.most {
		t.text = append(t.text[:0], t.text[len(t.text)-t.most:]...)
	}
	return len(p), nil
}

// checked reports whether the success of a step depends on more than its exit status.
func checked(step protocol.Step) bool {
	return len(step.FailsIf)+len(step.Makes)+len(step.Keep) > 0
}

// conclude checks the results of a step whose processes have all exited. If the step
// failed, it adds files to the log that explain why.
func (r *runningStep) conclude() {
	if r.outcome.Cause == "" && checked(r.step) {
		r.checkSuccess()
	}
	if (r.outcome.Cause == "" || r.outcome.Cause == protocol.CauseDone) && r.overMemory() {
		r.outcome.OverMemory = true
		r.warn(fmt.Sprintf("A process of the job was killed because the job exceeded its memory limit of %s; its result might be incomplete.", unit.Bytes(r.spec.MemoryBytes)))
	}
	switch r.outcome.Cause {
	case protocol.CauseExit, protocol.CauseSignal, protocol.CauseNoResult:
		r.logFiles()
	}
}

// checkSuccess decides whether a program that exited successfully has done its work.
func (r *runningStep) checkSuccess() {
	root, err := os.OpenRoot(r.work)
	if err != nil {
		r.decide(protocol.CauseNoResult, sentence(err.Error()))
		r.recordFailedStep()
		return
	}
	defer root.Close()
	missing := r.complaint()
	if missing == "" {
		missing = r.missing(root)
	}
	if missing == "" {
		missing = r.keepFiles(root)
	}
	switch {
	case missing != "":
		r.checkMemory(false)
		r.decide(protocol.CauseNoResult, fmt.Sprintf("Step %q %s.", r.step.Name, missing))
		r.recordFailedStep()
	case r.last:
		r.decide(protocol.CauseDone, "")
	}
}

// complaint looks for output that a step prints only on failure.
func (r *runningStep) complaint() string {
	if len(r.step.FailsIf) == 0 {
		return ""
	}
	texts := [][]byte{r.printed.text}
	if r.step.Stdout != "" {
		texts = append(texts, r.lastOf(r.step.Stdout, searchedOutput))
	}
	for _, wanted := range r.step.FailsIf {
		for _, text := range texts {
			if containsWords(text, wanted) {
				return fmt.Sprintf("failed: it printed %q", protocol.CleanText(wanted))
			}
		}
	}
	return ""
}

// containsWords reports whether text contains wanted as whole words: "0 atoms" is not in
// "10 atoms".
func containsWords(text []byte, wanted string) bool {
	first, _ := utf8.DecodeRuneInString(wanted)
	last, _ := utf8.DecodeLastRuneInString(wanted)
	for rest := text; ; {
		at := bytes.Index(rest, []byte(wanted))
		if at < 0 || wanted == "" {
			return false
		}
		before, _ := utf8.DecodeLastRune(rest[:at])
		after, _ := utf8.DecodeRune(rest[at+len(wanted):])
		if !(inWord(first) && inWord(before)) && !(inWord(last) && inWord(after)) {
			return true
		}
		rest = rest[at+1:]
	}
}

func inWord(r rune) bool {
	return r != utf8.RuneError && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r))
}

// missing looks for a file that the step should have made.
func (r *runningStep) missing(root *os.Root) string {
	for _, pattern := range r.step.Makes {
		found, empty := false, false
		for _, name := range r.matches(root, pattern) {
			info, err := root.Stat(name)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			found, empty = found || info.Size() > 0, empty || info.Size() == 0
		}
		switch {
		case found:
		case empty:
			return fmt.Sprintf("exited successfully, but %s is empty", r.shownPath(pattern))
		default:
			return fmt.Sprintf("exited successfully, but did not create %s", r.shownPath(pattern))
		}
	}
	return ""
}

// keepFiles moves files to the output directory.
func (r *runningStep) keepFiles(root *os.Root) string {
	for _, pattern := range r.step.Keep {
		for _, name := range r.matches(root, pattern) {
			to := filepath.Join(OutDir, filepath.Base(name))
			if name == to || name == OutDir {
				continue
			}
			if err := root.Rename(name, to); err != nil {
				return fmt.Sprintf("created %s, which can't be kept: %v", name, err)
			}
		}
	}
	return ""
}

// matches returns the files that match pattern, relative to the work directory.
func (r *runningStep) matches(root *os.Root, pattern string) []string {
	path, err := pathBelow(r.work, pattern)
	if err != nil {
		return nil
	}
	names, _ := fs.Glob(root.FS(), filepath.ToSlash(path)) // the pattern was checked when the step was read
	return names
}

// shownPath returns a path as named in results, or relative to the work directory.
func (r *runningStep) shownPath(path string) string {
	path = strings.TrimPrefix(path, r.work+"/")
	return strings.TrimPrefix(path, OutDir+"/")
}

// logFiles appends the ends of files that explain the failure of the step to the log.
func (r *runningStep) logFiles() {
	root, err := os.OpenRoot(r.work)
	if err != nil {
		return
	}
	defer root.Close()
	files := r.spec.Shown
	if r.step.Stdout != "" {
		files = append([]string{r.step.Stdout}, files...)
	}
	for _, file := range files {
		for _, name := range r.matches(root, file) {
			if text := r.lastOf(name, shownOutput); len(text) > 0 {
				fmt.Fprintf(r.log, "\n[molrun: the end of %s]\n%s\n", r.shownPath(name), bytes.TrimRight(text, "\n"))
			}
		}
	}
}

// lastOf returns the last bytes of a file, or nil if it can't be read.
func (r *runningStep) lastOf(name string, most int64) []byte {
	f, err := openToRead(r.work, name)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-most), most))
	if err != nil {
		return nil
	}
	return text
}
