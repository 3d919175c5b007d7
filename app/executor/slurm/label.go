package slurm

import (
	"fmt"
	"strings"

	"molrun/app"
)

const (
	// labelEnd stands between the label in a job's name and the rest. No label has it.
	labelEnd = ":"
	// labelLength bounds what people read of a name.
	labelLength = 64
	// commentWords are what a comment may have beside letters and digits: accounting stores
	// it in a database that takes neither all characters nor much text.
	commentWords  = " @._+-=,:/"
	commentLength = 255
)

// label is what people read in the name of a task's job: the name of its batch, if it shares
// the job of Slurm with other rows, else its own.
func (r request) label(tasks []app.Task) string {
	switch {
	case r.pilot, len(tasks) > 1:
		return plain(r.owner.Batch, "._-", labelLength)
	}
	return plain(tasks[0].Owner.Job, "._-", labelLength)
}

// comment says whose jobs these are.
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
	return plain(fmt.Sprintf("user=%s organization=%s%s", r.owner.Email, r.owner.Organization, what), commentWords, commentLength)
}

// plain replaces what is no letter of ASCII, no digit and not among others.
func plain(text, others string, most int) string {
	text = strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune(others, c):
			return c
		}
		return '_'
	}, text)
	return text[:min(len(text), most)]
}

// labelled puts a label into a name, behind the prefix.
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
