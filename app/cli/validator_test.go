package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pickyFile has a validator that is asked about settings without faults only;
// it would fail where n is no digit.
const pickyFile = `
format = 1
type = "picky"
version = "1"
title = "Refuse 3"
command = ["true"]

[[parameters]]
name = "n"
type = "integer"

[validate]
command = ["sh", "-c", 'read -r line; case "$line" in *3*) echo "[{{\"loc\":[\"n\"],\"msg\":\"is three\",\"type\":\"value\"}}]";; *[0-9]*) echo "[]";; *) exit 1;; esac']
`

func TestFaultsOfSchemaAndValidatorAreToldTogether(t *testing.T) {
	t.Parallel()
	u := startServer(t, serverOptions{algorithms: map[string]string{"picky.toml": pickyFile}}).user("lab", "ann@lab.example")
	want := []string{"body.settings.0.n: must be a whole number, got text", "body.settings.2.n: is three"}
	got := u.do("POST", "/submit-batch", batchBody("b", "picky", `{"n":"x"}`, `{"n":4}`, `{"n":3}`)).want(422).details()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got = u.do("POST", "/submit-job", `{"jobName":" ","type":"picky","settings":{"n":3}}`).want(422).details()
	if len(got) != 2 || got[1] != "body.settings.n: is three" {
		t.Errorf("with a bad name: %q", got)
	}
}
