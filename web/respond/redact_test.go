package respond_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"molrun/app/test/must"
	"molrun/web/respond"
)

func TestRedactRemovesSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"/jobs/hst5": "/jobs/hst5",
		"/jobs/molrun_aaaaaaaaaaaa_" + strings.Repeat("A", 43) + "_AAAAAA/x": "/jobs/…/x",
		"token=eyJhbGciOiJIUzI1NiJ9.e30.c2ln&x":                              "token=…&x",
		"/shared/01M82R1GQMYR4YE3ZKZS62KJ0GSECRET":                           "/shared/01M82R1GQMYR4YE3ZKZS62KJ0G…",
		"/shared/01M82R1GQMYR4YE3ZKZS62KJ0GSECRET/files/a":                   "/shared/01M82R1GQMYR4YE3ZKZS62KJ0G…/files/a",
		"molrun_short": "molrun_short",
	} {
		must.Equal(t, fmt.Sprintf("%q", text), respond.Redact(text), want)
	}
}

func TestClipKeepsValidUTF8(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 1000), strings.Repeat("蛋", 1000)} {
		if got := respond.Clip(text); len(got) > 210 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
	must.Equal(t, "201 bytes", respond.Clip(strings.Repeat("x", 201)), strings.Repeat("x", 200)+"…")
	must.Equal(t, "200 bytes", respond.Clip(strings.Repeat("x", 200)), strings.Repeat("x", 200))
}
