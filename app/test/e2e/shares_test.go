package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestSharedResultIsReadWithoutAKey goes through the life of a share on a real server,
// over a restart, to its end with the key that made it.
func TestSharedResultIsReadWithoutAKey(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{algorithms: map[string]string{"shell.toml": shellFile}})
	ann := s.user("lab", "ann@lab.example")
	ann.submit("shown", "shell", `{"script":"mkdir out/models; echo of the model > out/models/a.pdb; echo of nobody else > out/notes.txt"}`)
	ann.completed("shown")
	share := func(body string) (url, id string) {
		var made struct{ ID, URL string }
		ann.do("POST", "/jobs/shown/share", body).want(200).into(&made)
		return made.URL, made.ID
	}
	all, id := share(`{"ttlSeconds":3600}`)
	part, _ := share(`{"files":["models/"]}`)
	stranger := user{s, ""}
	if got := stranger.do("GET", all+"/files/notes.txt", nil).want(200).body; string(got) != "of nobody else\n" {
		t.Errorf("a file is %q", got)
	}
	names := sortedNames(unzip(t, stranger.do("GET", part+"/archive", nil).want(200).body))
	same(t, "files of a part", names, []string{"models/a.pdb"})
	stranger.do("GET", part+"/files/notes.txt", nil).code(404, "NOT_FOUND")
	stranger.do("GET", "/jobs/shown", nil).code(401, "UNAUTHORIZED")
	if log := s.log.String(); strings.Contains(log, all[len(all)-26:]) || !strings.Contains(log, "/shared/"+id+"…/files/notes.txt") {
		t.Errorf("the log tells more of the link than its id, or less")
	}

	s.kill()
	s.start()
	moved := func(url string) string { return url[strings.Index(url, "/shared/"):] }
	stranger.do("GET", moved(all)+"/archive", nil).want(200)
	ann.do("DELETE", "/shares/"+id, nil).want(204)
	stranger.do("GET", moved(all), nil).code(404, "NOT_FOUND")
	var audited []struct{ Action, Object, Result string }
	for _, line := range strings.Split(strings.TrimSpace(s.ok("audit", "--json")), "\n") {
		var one struct{ Action, Object, Result string }
		if json.Unmarshal([]byte(line), &one) == nil && strings.HasPrefix(one.Action, "share.") {
			audited = append(audited, one)
		}
	}
	if len(audited) != 3 || audited[0].Object != "shown" && audited[0].Object != id {
		t.Errorf("audited: %+v", audited)
	}

	stranger.do("GET", moved(part), nil).want(200)
	s.ok("key", "disable", strings.Split(ann.key, "_")[1])
	stranger.do("GET", moved(part), nil).code(404, "NOT_FOUND")
}
