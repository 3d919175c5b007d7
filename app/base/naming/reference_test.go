package naming

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	digest := strings.Repeat("aB", 32)
	for text, want := range map[string]Reference{
		"job:a/b/c.pdb":             {OfJob: true, Job: "a", Path: "b/c.pdb"},
		"job:a/@poses":              {OfJob: true, Job: "a", Output: "poses"},
		"job:a/@":                   {OfJob: true, Job: "a", Path: "@"},
		"job:a/b/@poses":            {OfJob: true, Job: "a", Path: "b/@poses"},
		"job:a":                     {OfJob: true, Job: "a"},
		"job:":                      {OfJob: true},
		"sha256:" + digest + "/a.b": {Digest: strings.ToLower(digest), Filename: "a.b"},
		"sha256:" + digest:          {Upload: "sha256:" + digest},
		"sha256:ab/a":               {Upload: "sha256:ab/a"},
		"sha256:" + digest + "/a/b": {Upload: "sha256:" + digest + "/a/b"},
		"in/Pru\u0308fling.pdb":     {Upload: "in/Prüfling.pdb"},
		"inputs/@a":                 {Upload: "inputs/@a"},
		"":                          {},
	} {
		if got := ParseReference(text); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	if got := ParseReference(OfDigest(digest, "x")); got.Filename != "x" || got.Digest != strings.ToLower(digest) {
		t.Errorf("%+v", got)
	}
}
