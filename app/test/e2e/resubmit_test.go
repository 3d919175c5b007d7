package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestResultIsResubmittedToAnotherServer runs a job on one server and then, from its
// result, on another. The files of both results must be the same.
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
	must.OK(t, json.Unmarshal([]byte(unzip(t, here.result("sim", ""))["job.json"]), &kept))
	host, err := os.Hostname()
	must.OK(t, err)
	if kept.JobName != "sim" || kept.MolrunVersion == "" || kept.Host != host || digestOf(kept.AlgorithmFile.Text) != kept.AlgorithmFile.SHA256 || !strings.Contains(kept.AlgorithmFile.Text, `type = "cg-idp"`) {
		t.Errorf("job.json has %+v", kept)
	}

	there := plain(t).user("other", "bob@other.example")
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
	must.Equal(t, "results of the other server", there.outputs("sim"), here.outputs("sim"))

	// The second result contains the same submission.
	var second struct{ Submission json.RawMessage }
	must.OK(t, json.Unmarshal([]byte(unzip(t, there.result("sim", ""))["job.json"]), &second))
	if string(second.Submission) != string(kept.Submission) {
		t.Errorf("the submission became\n%s\nof\n%s", second.Submission, kept.Submission)
	}
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestArchiveIsAllThatAnotherServerNeeds moves a job whose inputs are uploads and results
// of other jobs to another server, using only the archive: unpack it, upload the inputs,
// and submit.
func TestArchiveIsAllThatAnotherServerNeeds(t *testing.T) {
	t.Parallel()
	here := plain(t).user("mover", "ann@mover.example")
	here.upload("räw data.txt", "of a user\n")
	here.upload("second.txt", "second\n")
	here.submit("first", "shell", `{"script":"echo of a job > out/made.txt"}`)
	here.completed("first")
	here.submit("moved", "shell", `{"script":"cat in/* > out/all","input":"inputs/räw data.txt","other":"job:first/made.txt"}`)
	here.completed("moved")
	here.batch("moved-rows", "shell", `{"script":"cat in/* > out/all","input":"inputs/second.txt"}`, `{"script":"cat in/* in/* > out/all","input":"inputs/second.txt"}`)
	here.completed("moved-rows")

	there := plain(t).user("lab", "bob@lab.example")
	for _, name := range []string{"moved", "moved-rows"} {
		link := here.linkTo(`{"jobName":"` + name + `","inputs":true}`)
		archive := here.do("GET", link.DownloadURL, nil).want(200).body
		if int64(len(archive)) != link.Size {
			t.Errorf("%s has %d bytes, want %d", name, len(archive), link.Size)
		}
		files := unzip(t, archive)
		inputs, submissions := 0, 0
		for path, text := range files {
			if digest, filename, ok := strings.Cut(strings.TrimPrefix(path, "inputs/"), "/"); ok && strings.HasPrefix(path, "inputs/") {
				inputs++
				must.Equal(t, path+" has the digest", digestOf(text), digest)
				there.upload(filename, text)
			}
		}
		for path, text := range files {
			if strings.HasSuffix(path, "job.json") {
				submissions++
				var kept struct{ Submission json.RawMessage }
				must.OK(t, json.Unmarshal([]byte(text), &kept))
				there.do("POST", "/submit-job", string(kept.Submission)).want(200)
			}
		}
		if want := map[string]int{"moved": 2, "moved-rows": 1}[name]; inputs != want || submissions != 3-want {
			t.Errorf("%s has %d inputs and %d submissions", name, inputs, submissions)
		}
	}
	for _, name := range []string{"moved", "moved-rows-1", "moved-rows-2"} {
		there.completed(name)
		must.Equal(t, "results of "+name+" here and there", there.outputs(name), here.outputs(name))
		must.Equal(t, "results of "+name, len(here.outputs(name)), 1)
	}
}
