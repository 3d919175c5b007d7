package e2e

import (
	"fmt"
	"net/url"
	"testing"

	"molrun/app/test/must"
)

func TestListsAreFilteredAndContinueAtTheCursor(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{
		config:     "[runner]\ncpus = 2\n",
		algorithms: map[string]string{"shell.toml": shellFile, "words.toml": wordsFile},
	})
	ann, bob := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example")
	s.user("other", "ann@lab.example").submit("good", "shell", script("true"))
	ann.submit("good", "shell", script("true"))
	ann.submit("bad", "shell", script("false"))
	bob.submit("bobs", "words", "{}")
	for _, name := range []string{"good", "bad", "bobs"} {
		ann.finished(name)
	}
	open := s.blockCPU("block")
	ann.submit("runs", "shell", script(open.wait()))
	ann.running("runs")
	bob.submit("waits", "words", "{}")
	ann.batch("screen", "words", `{"text":"1"}`, `{"text":"2"}`)
	for _, tt := range []struct {
		query string
		want  []string // newest first
	}{
		{"", []string{"screen", "runs", "bad", "good"}},
		{"organization=true", []string{"screen", "waits", "runs", "bobs", "bad", "good"}},
		{"organization=true&status=QUEUED&algorithm=words", []string{"screen", "waits"}},
		{"jobEmail=bob@lab.example&status=COMPLETED", []string{"bobs"}},
		{"status=RUNNING", []string{"runs"}},
		{"status=FAILED&algorithm=shell&jobName=bad", []string{"bad"}},
		{"batch=screen&status=QUEUED", []string{"screen-2", "screen-1"}},
	} {
		for _, limit := range []string{"1", "2", "100"} {
			query, err := url.ParseQuery(tt.query + "&limit=" + limit)
			must.OK(t, err)
			must.Equal(t, fmt.Sprintf("%s, %s a page", tt.query, limit), ann.names(query), tt.want)
		}
	}
}
