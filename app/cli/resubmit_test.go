package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestResultIsResubmittedToAnotherServer runs a job on one server and, from what its
// result says, on another: the same work gives the same files.
func TestResultIsResubmittedToAnotherServer(t *testing.T) {
	t.Parallel()
	const fasta, sequence = "hst5.fasta", ">Hst5\nDSHAKRHHGYKRKFHEKHHSHRGY\n"
	here := plain(t).user("lab", "ann@lab.example")
	here.upload(fasta, sequence)
	here.do("POST", "/submit-job", `{"jobName":"sim","type":"cg-idp","settings":{"fasta":"inputs/hst5.fasta","steps":20000,"seed":7},
		"maxRuntimeSeconds":600,"priority":-1,"tags":{"round":"1"},"note":"again"}`).want(200)
	here.completed("sim")
	var kept struct {
		JobName       string
		Submission    json.RawMessage
		AlgorithmFile struct{ SHA256, Text string }
		MolrunVersion string
		Host          string
	}
	must(t, json.Unmarshal([]byte(unzip(t, here.result("sim", ""))["job.json"]), &kept))
	host, err := os.Hostname()
	must(t, err)
	if kept.JobName != "sim" || kept.MolrunVersion == "" || kept.Host != host || digestOf(kept.AlgorithmFile.Text) != kept.AlgorithmFile.SHA256 || !strings.Contains(kept.AlgorithmFile.Text, `type = "cg-idp"`) {
		t.Errorf("job.json has %+v", kept)
	}

	there := startServer(t, serverOptions{}).user("other", "bob@other.example")
	missing := there.do("POST", "/submit-job", string(kept.Submission)).want(422).details()
	if want := []string{"body.settings.fasta: upload \"hst5.fasta\" first: no completed upload of yours has the SHA-256 digest " + digestOf(sequence)}; !slices.Equal(missing, want) {
		t.Fatalf("without the upload: %q, want %q", missing, want)
	}
	there.upload("renamed.txt", sequence)
	var again struct{ Created bool }
	there.do("POST", "/submit-job", string(kept.Submission)).want(200).into(&again)
	there.do("POST", "/submit-job", string(kept.Submission)).want(200)
	j := there.completed("sim")
	if !again.Created || j.Inputs[0].Filename != fasta || j.Inputs[0].SHA256 != digestOf(sequence) {
		t.Errorf("created %v, %+v", again.Created, j)
	}
	if diff := cmp.Diff(here.outputs("sim"), there.outputs("sim")); diff != "" {
		t.Errorf("results differ, -here +there:\n%s", diff)
	}

	// What that result says is the same submission.
	var second struct{ Submission json.RawMessage }
	must(t, json.Unmarshal([]byte(unzip(t, there.result("sim", ""))["job.json"]), &second))
	if string(second.Submission) != string(kept.Submission) {
		t.Errorf("the submission became\n%s\nof\n%s", second.Submission, kept.Submission)
	}
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestFanOutRunsTheEngineOnEachRecord goes all the way from a FASTA file to results.
func TestFanOutRunsTheEngineOnEachRecord(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	u.upload("all.fasta", ">Hst5 histatin\nDSHAKRHHGYKR\nKFHEKHHSHRGY\n>linker\ngsgsgsgs\n")
	u.do("POST", "/submit-batch", `{"batchName":"fan","type":"cg-idp","fanOut":{"each":{"sequences":"fasta:inputs/all.fasta"},"settings":{"steps":5000}}}`).want(200)
	for name, source := range map[string]string{"fan-Hst5": "Hst5", "fan-linker": "linker"} {
		u.completed(name)
		if m := u.members(name); string(m["source"]) != `"`+source+`"` {
			t.Errorf("%s: source %s", name, m["source"])
		}
	}
	if j := u.completed("fan"); j.Status != "COMPLETED" {
		t.Errorf("the batch is %s", j.Status)
	}
	got := u.do("POST", "/submit-batch?batchName=t&type=cg-idp", "sequences,steps\nACDEFX,5000\n", "Content-Type", "text/csv").want(422).details()
	if len(got) != 1 || !strings.Contains(got[0], `line 2, column "sequences"`) || !strings.Contains(got[0], "position 6") {
		t.Errorf("faults of the validator: %q", got)
	}
}
