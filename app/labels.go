package app

import (
	"fmt"
	"maps"
	"slices"

	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/job/notice"
)

// MaxTags is the maximum number of tags per job.
const MaxTags = 20

// Labels holds the tags and note by which users find a job, and its notification
// recipients. Labels are not part of the job's work: they can change at any time, and
// submissions that differ only in labels are identical.
type Labels struct {
	Tags   map[string]*string // nil removes a tag
	Note   *string            // nil keeps the note, "" removes it
	Notify []string           // URLs and mailto: addresses; nil keeps the current ones
}

// faults returns the validation errors of labels sent by a user.
func (l Labels) faults(by Caller, p notice.Policy) (faults []fault.Field) {
	fail := func(msg string, loc ...any) {
		if msg != "" {
			faults = append(faults, fault.Field{Loc: append([]any{"body"}, loc...), Msg: msg, Type: "value"})
		}
	}
	if set := l.set(); set > MaxTags {
		fail(tooManyTags(set), "tags")
	} else {
		for _, key := range slices.Sorted(maps.Keys(l.Tags)) {
			if value := l.Tags[key]; value != nil {
				fail(naming.CheckTag(key, *value), "tags", key)
			}
		}
	}
	if l.Note != nil {
		fail(naming.CheckNote(*l.Note), "note")
	}
	return append(faults, p.Faults(by.Email, l.Notify)...)
}

// set returns the number of tags that are set.
func (l Labels) set() (n int) {
	for _, value := range l.Tags {
		if value != nil {
			n++
		}
	}
	return n
}

func tooManyTags(n int) string {
	return fmt.Sprintf("use at most %d tags, not %d; set a tag to null to remove it", MaxTags, n)
}

// label changes a job's labels. It fails if the job would have too many tags.
func (j *Job) label(l Labels) error {
	tags := maps.Clone(j.Tags)
	for key, value := range l.Tags {
		switch {
		case value == nil:
			delete(tags, key)
		case tags == nil:
			tags = map[string]string{key: *value}
		default:
			tags[key] = *value
		}
	}
	if len(tags) > MaxTags {
		return fault.List(fault.Field{Loc: []any{"body", "tags"}, Type: "value", Msg: tooManyTags(len(tags))})
	}
	j.Tags = tags
	if l.Note != nil {
		j.Note = *l.Note
	}
	if l.Notify != nil {
		j.Private.Notify = l.Notify
	}
	return nil
}

// Tag is one tag of a job.
type Tag struct{ Key, Value string }

// SearchedText returns the text that a search covers, case-folded: the name, the tags as
// key:value, and the note, one per line.
func (j *Job) SearchedText() string {
	b := []byte(j.Name)
	for _, key := range slices.Sorted(maps.Keys(j.Tags)) {
		b = fmt.Appendf(b, "\n%s:%s", key, j.Tags[key])
	}
	if j.Note != "" {
		b = append(append(b, '\n'), j.Note...)
	}
	return naming.Fold(string(b))
}
