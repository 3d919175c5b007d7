package sandbox

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestAccountsNameTheUserOfTheServiceOnce(t *testing.T) {
	d := &descriptors{}
	defer d.close()
	d.names(&view{network: true})
	if d.err != nil || len(d.files) != 2 {
		t.Fatalf("%d files, %v", len(d.files), d.err)
	}
	for i, id := range []int{os.Getuid(), os.Getgid()} {
		text, err := io.ReadAll(d.files[i])
		must.OK(t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		named := 0
		for _, line := range lines {
			if strings.Split(line, ":")[2] == fmt.Sprint(id) {
				named++
			}
		}
		want := 2 // root and nobody
		if id != 0 && id != 65534 {
			want = 3
		}
		if named != 1 || len(lines) != want {
			t.Errorf("%d is named %d times in %q, want once in %d lines", id, named, text, want)
		}
	}
}
