package algorithm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/algorithm/placement"
	"molrun/app/test/must"
)

func TestMissing(t *testing.T) {
	dir := t.TempDir()
	program, text := filepath.Join(dir, "prog"), filepath.Join(dir, "text")
	for path, mode := range map[string]os.FileMode{program: 0o755, text: 0o644} {
		must.OK(t, os.WriteFile(path, nil, mode))
	}
	t.Setenv("PATH", dir)
	here := placement.Machine{CPUs: 4, MemoryBytes: 8 << 30, GPUs: 1, Local: true}
	elsewhere := placement.Machine{}
	const sized = "[[parameters]]\nname = \"cores\"\ntype = \"integer\"\nminimum = 8\ndefault = 8\n[resources]\ncpus = \"{settings.cores}\"\n"
	tests := []struct {
		name, command, more string
		machine             placement.Machine
		want                string // the only message; "" if none
	}{
		{"there", `"prog"`, "", here, ""},
		{"there by path", `"` + program + `"`, "", here, ""},
		{"this program", `"{molrun}"`, "", here, ""},
		{"not on PATH", `"nosuch"`, "", here, "the program nosuch is not installed"},
		{"not at its path", `"/nosuch/prog"`, "", here, "the program /nosuch/prog does not exist"},
		{"no program", `"text"`, "", here, "the program text is not installed"},
		{"folder", `"` + dir + `"`, "", here, "does not exist or is not executable"},
		{"elsewhere", `"nosuch"`, "[sandbox]\nread = [\"/nosuch\"]\n", elsewhere, ""},
		{"sandbox", `"prog"`, "[sandbox]\nread = [\"" + dir + "\", \"/nosuch\"]\n", here, "/nosuch, listed in the algorithm's [sandbox], does not exist"},
		{"validator", `"nosuch"`, "[validate]\ncommand = [\"nosuch\"]\n", elsewhere, "the program nosuch is not installed"},
		{"CPUs", `"prog"`, "[resources]\ncpus = 5\n", here, "it needs at least 5 CPUs, but there are only 4"},
		{"least CPUs of a setting", `"prog"`, sized, here, "it needs at least 8 CPUs"},
		{"least choice of a setting", `"prog"`, strings.Replace(sized, "minimum = 8", "enum = [16, 8]", 1), here, "it needs at least 8 CPUs"},
		{"fewer CPUs by a setting", `"prog"`, strings.Replace(sized, "minimum = 8", "minimum = 1", 1), here, ""},
		{"memory", `"prog"`, "[resources]\nmemory = \"16GiB\"\n", here, "it needs at least 16.0 GiB of memory, but there are only 8.0 GiB"},
		{"GPU", `"prog"`, "[resources]\ngpus = 2\n", here, "it needs at least 2 GPUs, but there are only 1"},
		{"GPU of an unknown machine", `"prog"`, "[resources]\ngpus = 2\n", elsewhere, ""},
		{"GPU of a cluster without", `"prog"`, "[resources]\ngpus = 2\n", placement.Machine{CPUs: 64}, "it needs at least 2 GPUs, but there are only 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := parseOK(t, strings.Replace(head, `"true"`, tt.command, 1)+tt.more)
			got := a.Missing(tt.machine)
			if len(got) > 1 || strings.Join(got, "") == "" != (tt.want == "") || !strings.Contains(strings.Join(got, ""), tt.want) {
				t.Errorf("Missing = %q, want %q", got, tt.want)
			}
			view := a.View(a.Missing(tt.machine), []string{"1"})
			if view.Ready != (tt.want == "") {
				t.Errorf("ready %v with %q missing", view.Ready, got)
			}
		})
	}
}

func TestPipesThatHideFailuresAreDoubtful(t *testing.T) {
	for command, doubtful := range map[string]bool{
		`"sh", "-c", "blastp -query {out}/a | sort > {out}/b"`: true,
		`"bash", "-c", "a || b"`:                               false,
		`"bash", "-c", "grep -E 'a|b' x"`:                      false,
		`"bash", "-o", "pipefail", "-c", "a | b"`:              false,
		`"bash", "-c", "set -euo pipefail; a | b"`:             false,
		`"awk", "{{ print | x }}"`:                             false,
	} {
		a := parseOK(t, strings.Replace(head, `"true"`, command, 1))
		if got := a.CommandWarnings(); len(got) > 0 != doubtful {
			t.Errorf("%s: %q", command, got)
		}
	}
}

// TestSandboxIsAContainerToo requires a sandbox on a machine without bubblewrap.
func TestSandboxIsAContainerToo(t *testing.T) {
	here := placement.Machine{Local: true, NoSandbox: func() string { return "bwrap is not on PATH" }}
	const text = "format = 1\ntype = \"a\"\nversion = \"1\"\ncommand = [\"prog\"]\n[sandbox]\nrequired = true\n"
	const image = "[container]\nimage = \"fold:1\"\n"
	for _, tt := range []struct{ text, want string }{
		{text + image, ""},
		{text + image + "[validate]\ncommand = [\"{molrun}\", \"check\"]\n", ""},
		{text + image + "[validate]\ncommand = [\"/bin/true\"]\n", "its validator, which is not part of the image, requires a sandbox, which is not available: bwrap is not on PATH"},
	} {
		must.Equal(t, tt.text+": missing", strings.Join(parseOK(t, tt.text).Missing(here), "; "), tt.want)
	}
	must.Contain(t, "without an image", strings.Join(parseOK(t, text).Missing(here), "; "), "its programs require a sandbox")
}
