package e2e

import (
	"fmt"
	"testing"
)

func TestFileReferencesHaveThreeForms(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	u.upload("in.txt", "old\n")
	id := u.upload("in.txt", "new\n")
	u.submit("source", "shell", script("mkdir out/sub; echo made > out/sub/made.txt"))
	u.finished("source")
	open := s.gate("go")
	u.submit("first", "shell", script(open.wait()))
	wants := map[string]string{}
	for name, ref := range map[string]string{"by id": id, "by name": "inputs/in.txt", "of a job": "job:source/sub/made.txt"} {
		var j record
		u.do("POST", "/submit-job", jobBody(name, script("cp in/* out/copy", fmt.Sprintf(`,"input":%q`, ref)), `,"after":["first"]`)).want(200).into(&j)
		want, filename := "new\n", "in.txt"
		if name == "of a job" {
			want, filename = "made\n", "made.txt"
		}
		if len(j.Inputs) != 1 || j.Inputs[0].Setting != "input" || j.Inputs[0].Filename != filename || j.Inputs[0].SHA256 == "" || (j.Inputs[0].FileID == id) != (name != "of a job") {
			t.Errorf("%s: inputs %+v", name, j.Inputs)
		}
		wants[name] = want
	}
	u.upload("in.txt", "uploaded later\n") // not read, because references were resolved at submission
	open.open(t)
	for name, want := range wants {
		u.finished(name)
		u.wantResult(name, "copy", want)
	}
}
