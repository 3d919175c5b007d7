package web_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestLabelsDoNotTellSubmissionsApart(t *testing.T) {
	s := start(t)
	const head = `{"jobName":"a","type":"echo","settings":{"steps":5}`
	first := s.want(200, "POST", "/submit-job", head+`,"tags":{"target":"6LU7","none":null},"note":"Try\tone.\nRepeat."}`).fields(t)
	same(t, "labels", []any{first["tags"], first["note"]}, []any{map[string]any{"target": "6LU7"}, "Try\tone.\nRepeat."})
	for _, labels := range []string{"", `,"tags":{"target":"other"}`, `,"note":"another"`} {
		again := s.want(200, "POST", "/submit-job", head+labels+"}").fields(t)
		same(t, labels, []any{again["jobId"], again["created"], again["tags"]}, []any{first["jobId"], false, first["tags"]})
	}
}

func TestLabelsChangeOneByOne(t *testing.T) {
	s := start(t)
	s.want(200, "POST", "/submit-batch", `{"batchName":"b","type":"echo","settings":[{"steps":1}],"tags":{"a":"1","b":"2"},"note":"old"}`)
	for _, tt := range []struct{ name, patch, labels string }{
		{"set, replace and remove", `{"tags":{"a":null,"b":"3","c":"4"}}`, `"tags":{"b":"3","c":"4"},"note":"old"`},
		{"note alone", `{"note":"new"}`, `"tags":{"b":"3","c":"4"},"note":"new"`},
		{"nothing", `{"tags":null,"note":null}`, `"tags":{"b":"3","c":"4"},"note":"new"`},
		{"remove a tag that is not there", `{"tags":{"z":null}}`, `"tags":{"b":"3","c":"4"},"note":"new"`},
		{"remove all", `{"tags":{"b":null,"c":null},"note":""}`, `"status":"QUEUED","executor":"local","organization"`},
	} {
		changed := s.want(200, "PATCH", "/jobs/b", tt.patch).body
		contains(t, changed, tt.labels)
		same(t, tt.name, s.want(200, "GET", "/jobs/b", "").body, changed)
	}
	same(t, "tags of a row", s.want(200, "GET", "/jobs/b-1", "").fields(t)["tags"], nil)
}

func TestFaultyLabelsAreReportedTogether(t *testing.T) {
	s := start(t)
	s.submit("a")
	tags := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(`"k%d":"v"`, i)
		}
		return `{"tags":{` + strings.Join(all, ",") + `}}`
	}
	for _, tt := range []struct {
		name, labels string
		faults       []string
	}{
		{
			"all at once", `{"tags":{"a:b":"x","b":7,"c":"","d":"\u202e"},"note":"\u0000","nota":1}`,
			[]string{"body.tags.b type", "body.nota unknown", "body.tags.a:b value", "body.tags.c value", "body.tags.d value", "body.note value"},
		},
		{
			"long", `{"tags":{"` + strings.Repeat("k", 65) + `":"x","v":"` + strings.Repeat("v", 201) + `"},"note":"` + strings.Repeat("n", 4097) + `"}`,
			[]string{"body.tags." + strings.Repeat("k", 65) + " value", "body.tags.v value", "body.note value"},
		},
		{"too many", tags(21), []string{"body.tags value"}},
		{"no object", `[]`, []string{"body type"}},
	} {
		same(t, tt.name, s.want(422, "PATCH", "/jobs/a", tt.labels).faults(t), tt.faults)
	}
	s.want(200, "PATCH", "/jobs/a", tags(20))
	same(t, "one more", s.want(422, "PATCH", "/jobs/a", `{"tags":{"one":"more"}}`).faults(t), []string{"body.tags value"})
	same(t, "with a submission", s.want(422, "POST", "/submit-job", `{"jobName":"n","type":"echo","settings":{"steps":0},"tags":{"x":""}}`).faults(t),
		[]string{"body.tags.x value", "body.settings.steps value"})
}
