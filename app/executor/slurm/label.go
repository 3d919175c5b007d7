package slurm

import (
	"fmt"
	"strings"

	"molrun/app"
)

const (
	// labelEnd separates the label in a job's name from the rest. No label contains it.
	labelEnd = ":"
	// labelLength limits the readable part of a name.
	labelLength = 64
	// commentWords are the characters allowed in a comment in addition to letters and
	// digits: accounting stores comments in a database that accepts neither all
	// characters nor long text.
	commentWords  = " @._+-=,:/"
	commentLength = 255
)

// label returns the readable part of the name of a task's Slurm job: the name of its
// batch if it shares the Slurm job with other jobs, otherwise its own.
func (r request) label(tasks []app.Task) string {
	switch {
	case r.worker, len(tasks) > 1:
		return replaceUnsafe(r.owner.Batch, "._-", labelLength)
	}
	return replaceUnsafe(tasks[0].Owner.Job, "._-", labelLength)
}

// comment names the owner of the jobs.
func (r request) comment(label string) string {
	if r.owner == (app.Owner{}) {
		return ""
	}
	what := ""
	switch {
	case r.owner.Batch != "":
		what = " batch=" + r.owner.Batch
	case label != "":
		what = " job=" + label
	}
	return replaceUnsafe(fmt.Sprintf("user=%s organization=%s%s", r.owner.Email, r.owner.Organization, what), commentWords, commentLength)
}

// replaceUnsafe replaces characters that are not ASCII letters, digits or in others, and
// truncates the text to most bytes.
func replaceUnsafe(text, others string, most int) string {
	text = strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune(others, c):
			return c
		}
		return '_'
	}, text)
	return text[:min(len(text), most)]
}

// labelled inserts a label into a name, after the prefix.
func labelled(name, prefix, label string) string {
	if label == "" {
		return name
	}
	return prefix + "-" + label + labelEnd + strings.TrimPrefix(name, prefix+"-")
}

// unlabelled returns the name without its label.
func unlabelled(title, prefix string) string {
	if i := strings.LastIndex(title, labelEnd); i >= 0 {
		return prefix + "-" + title[i+1:]
	}
	return title
}
