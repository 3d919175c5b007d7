package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/cluster"
	"molrun/app/test/containertest"
	"molrun/app/test/must"
)

// alignFile replaces a type of the catalogue with one whose program is in an image.
const alignFile = `
format = 1
type = "tm-align"
version = "20190822"
command = ["TMalign", "{files.mobile}", "{files.target}", "-o", "{out}/superposed"]
stdout = "{out}/tm-align.txt"
makes = ["{out}/superposed.pdb"]

[container]
image = %q

[[parameters]]
name = "mobile"
file = [".pdb"]
content = "protein-structure"
required = true

[[parameters]]
name = "target"
file = [".pdb"]
required = true

[metrics]
tm_score = { file = "tm-align.txt", pattern = 'TM-score=\s*([0-9.]+) \(if normalized by length of Chain_2' }
`

// helix returns the alpha carbons of a helix.
func helix(residues int) string {
	var b strings.Builder
	for i := range residues {
		angle := float64(i) * 100 * math.Pi / 180
		fmt.Fprintf(&b, "ATOM  %5d  CA  ALA A%4d    %8.3f%8.3f%8.3f  1.00  0.00           C\n", i+1, i+1, 2.3*math.Cos(angle), 2.3*math.Sin(angle), 1.5*float64(i))
	}
	return b.String() + "END\n"
}

// ranOf is the part of a record that describes the container.
type ranOf struct {
	Isolation string
	Image     struct{ Name, ID string }
}

// align submits a tm-align job and checks its result.
func align(t *testing.T, u user) {
	t.Helper()
	u.upload("helix.pdb", helix(40))
	u.submit("align", "tm-align", `{"mobile":"inputs/helix.pdb","target":"inputs/helix.pdb"}`)
	j := u.completed("align")
	must.Contain(t, "metrics", string(u.members("align")["metrics"]), `"tm_score":1`)
	files := unzip(t, u.result("align", ""))
	if !strings.Contains(files["superposed.pdb"], "ATOM") {
		t.Errorf("the result has no structure: %v", files)
	}
	id, err := containertest.Podman(t).Run(nil, "image", "inspect", "--format={{.Id}}", containertest.Image)
	must.OK(t, err)
	var shown, kept ranOf
	u.do("GET", "/jobs/align", nil).want(200).into(&shown)
	must.OK(t, json.Unmarshal([]byte(files["job.json"]), &kept))
	for where, ran := range map[string]ranOf{"record": shown, "job.json": kept} {
		if !strings.HasPrefix(ran.Isolation, "podman") || ran.Image.Name != containertest.Image || ran.Image.ID != "sha256:"+id {
			t.Errorf("the %s has %+v, want the image %s", where, ran, id)
		}
	}
	must.Equal(t, "attempts", j.Attempts, 1)
}

func TestTypeWithAnImageRunsThroughTheAPI(t *testing.T) {
	t.Parallel()
	o := boxed(t, "")
	o.algorithms["tm-align.toml"] = fmt.Sprintf(alignFile, containertest.Image)
	s := startServer(t, o)
	align(t, s.user("lab", "ann@lab.example"))
	s.noContainers()
}

// TestContainerIsASandboxThatIsRequired turns bubblewrap off and requires a sandbox.
func TestContainerIsASandboxThatIsRequired(t *testing.T) {
	t.Parallel()
	o := boxed(t, "")
	o.config += "\n[runner]\nsandbox = \"off\"\n"
	o.algorithms["tm-align.toml"] = fmt.Sprintf(alignFile, containertest.Image) + "[sandbox]\nrequired = true\n"
	s := startServer(t, o)
	align(t, s.user("lab", "ann@lab.example"))
}

func (s *instance) noContainers() {
	s.t.Helper()
	store := containertest.Podman(s.t)
	left, err := store.Run(nil, "ps", "--all", "--format={{.Names}} {{.Labels}}")
	must.OK(s.t, err)
	for line := range strings.Lines(left) {
		if strings.Contains(line, s.dir+"/") {
			s.t.Errorf("a container remains: %s", line)
		}
	}
}

func TestTypeWhoseImageIsNotHereIsNotReady(t *testing.T) {
	t.Parallel()
	const image = "localhost/molrun-later:1"
	o := boxed(t, "")
	o.algorithms["tm-align.toml"] = fmt.Sprintf(alignFile, "docker://"+image)
	s := startServer(t, o)
	u := s.user("lab", "ann@lab.example")
	const says = "the image localhost/molrun-later:1 does not exist on this machine; load it with: podman load -i FILE"
	if text := string(u.do("GET", "/algorithms/tm-align", nil).want(200).body); !strings.Contains(text, says) || !strings.Contains(text, `"image":"docker://localhost/molrun-later:1"`) {
		t.Errorf("the catalogue says %s", text)
	}
	if out, _, _ := s.run("algorithms", "list"); !strings.Contains(out, says) {
		t.Errorf("algorithms list: %s", out)
	}
	u.upload("helix.pdb", helix(40))
	if a := u.do("POST", "/submit-job", `{"jobName":"a","type":"tm-align","settings":{"mobile":"inputs/helix.pdb","target":"inputs/helix.pdb"}}`); a.status < 400 || !strings.Contains(string(a.body), says) {
		t.Errorf("a submission gets %d %s", a.status, a.body)
	}
	// As podman load would do.
	_, err := containertest.Podman(t).Run(nil, "tag", containertest.Image, image)
	must.OK(t, err)
	s.eventually("the type is ready", func() bool {
		return strings.Contains(string(u.do("GET", "/algorithms/tm-align", nil).want(200).body), `"ready":true`)
	})
	u.submit("b", "tm-align", `{"mobile":"inputs/helix.pdb","target":"inputs/helix.pdb"}`)
	u.completed("b")
}

func TestContainersOutliveTheServiceAndDieWithTheirJobs(t *testing.T) {
	t.Parallel()
	s := startServer(t, boxed(t, hostileConfig))
	u := s.user("lab", "ann@lab.example")
	end := s.gate("end")
	u.submit("long", "shell", script("echo begun > out/log; "+end.wait()+"; echo ended >> out/log"))
	u.submit("endless", "shell", script(`trap "" TERM; setsid sleep 7339 & sleep 7339; sleep 7339`))
	u.running("long")
	s.eventually("the endless job runs", func() bool { return s.alive("sleep\x007339") >= 2 })
	s.kill()
	s.start()
	end.open(t)
	if j := u.finished("long"); j.Status != "COMPLETED" || j.Attempts != 1 {
		t.Errorf("after a kill of the service: %s, %d attempts, %+v", j.Status, j.Attempts, j.Failure)
	}
	u.do("POST", "/jobs/endless/cancel", nil).want(200)
	if j := u.finished("endless"); j.Failure == nil || j.Failure.Code != "STOPPED" {
		t.Errorf("cancelled: %+v", j.Failure)
	}
	must.Equal(t, "processes of the cancelled job are left", s.alive("sleep\x007339"), 0)
	s.noContainers()
}

// containersOnTheCluster runs a type in a container on a node.
func containersOnTheCluster(t *testing.T, c *cluster.Cluster) {
	o := boxed(t, everywhere)
	o.algorithms["tm-align.toml"] = fmt.Sprintf(alignFile, containertest.Image)
	path := strings.TrimPrefix(o.env[len(o.env)-1], "PATH=")
	s := clusterServer(t, c, fmt.Sprintf("node_path = %q\n", path), o)
	u := s.user("lab", "ann@lab.example")
	align(t, u)
	hidesTheMachine(t, s.instance)
	u.submit("endless", "shell", script(`trap "" TERM; touch out/ready; setsid sleep 7341 & sleep 7341; sleep 7341`))
	u.running("endless")
	s.eventually("the endless job runs", func() bool { return s.alive("sleep\x007341") >= 2 })
	u.do("POST", "/jobs/endless/cancel", nil).want(200)
	if j := u.finished("endless"); j.Failure == nil || j.Failure.Code != "STOPPED" {
		t.Errorf("cancelled: %+v", j.Failure)
	}
	must.Equal(t, "processes of the cancelled job are left", s.alive("sleep\x007341"), 0)
	left, err := containertest.Podman(t).Run(nil, "ps", "--all", "--format={{.Labels}}")
	must.OK(t, err)
	if strings.Contains(left, filepath.Clean(s.shared)) {
		t.Errorf("containers remain: %s", left)
	}
}
