package algorithm

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app/algorithm/placement"
	"molrun/app/test/must"
)

func TestSizes(t *testing.T) {
	tests := map[string]int64{
		"0": 0, "1048576": 1 << 20, "500MB": 500e6, "2GiB": 2 << 30, "1.5 GiB": 3 << 29, "1kB": 1000, "3TiB": 3 << 40,
	}
	for text, want := range tests {
		if got, ok := parseBytes(text); !ok || got != want {
			t.Errorf("parseBytes(%q) = %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "GiB", "2G", "-1", "1e40", "inf", "NaN", "2 GiBs", "0x10", "2000TiB"} {
		if got, ok := parseBytes(text); ok {
			t.Errorf("parseBytes(%q) = %d, want none", text, got)
		}
	}
}

func TestNeedsOfAJob(t *testing.T) {
	a := parseOK(t, head+`
[resources]
cpus = "{settings.cores}"
memory = "{settings.memory}"
gpus = "{settings.devices}"
[[parameters]]
name = "cores"
type = "integer"
default = 2
[[parameters]]
name = "memory"
type = "string"
default = "1.5GiB"
[[parameters]]
name = "devices"
type = "integer"
default = 0
`)
	gigabytes := parseOK(t, head+"[resources]\nmemory = \"{settings.gb}GB\"\n[[parameters]]\nname = \"gb\"\ntype = \"number\"\ndefault = 1\n")
	tests := []struct {
		name, settings string
		algorithm      *File
		want           placement.Resources
		faults         string
	}{
		{"defaults", `{}`, a, placement.Resources{CPUs: 2, MemoryBytes: 3 << 29, GPUs: 0}, "[]"},
		{"given", `{"cores":8,"memory":"500MB","devices":2}`, a, placement.Resources{CPUs: 8, MemoryBytes: 500e6, GPUs: 2}, "[]"},
		{"written as an exponent", `{"cores":1e1}`, a, placement.Resources{CPUs: 10, MemoryBytes: 3 << 29, GPUs: 0}, "[]"},
		{"no CPU", `{"cores":0}`, a, placement.Resources{CPUs: 0, MemoryBytes: 3 << 29, GPUs: 0}, "[cores: must be a whole number from 1 to 65536, got 0]"},
		{"too many", `{"cores":100000,"devices":-1}`, a, placement.Resources{CPUs: 0, MemoryBytes: 3 << 29, GPUs: 0}, "[cores: must be a whole number from 1 to 65536, got 100000 devices: must be a whole number from 0 to 1024, got -1]"},
		{"no size", `{"memory":"lots"}`, a, placement.Resources{CPUs: 2, MemoryBytes: 0, GPUs: 0}, `[memory: must be a size such as 2GiB, got "lots"]`},
		{"unit in the file", `{"gb":2.5}`, gigabytes, placement.Resources{CPUs: 1, MemoryBytes: 2500e6, GPUs: 0}, "[]"},
		{"negative size", `{"gb":-1}`, gigabytes, placement.Resources{CPUs: 1, MemoryBytes: 0, GPUs: 0}, "[gb: must be a size such as 2GiB, got -1GB]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			settings, faults := tt.algorithm.CheckSettings(parseJSON(t, tt.settings))
			must.Equal(t, "faults of the settings", len(faults), 0)
			got, faults := tt.algorithm.Needs(settings, nil)
			if got != tt.want || fmt.Sprint(faults) != tt.faults {
				t.Errorf("Needs(%s) = %+v, %v; want %+v, %s", tt.settings, got, faults, tt.want, tt.faults)
			}
		})
	}
}

// A job that needs more than the machine has is reported at the file whose size raises
// the need and at the setting that requests it.
func TestNeedsThatGrowWithAFile(t *testing.T) {
	for memory, want := range map[string]string{
		"2 * facts.alignment.records":                             "alignment",
		"max(settings.memory, facts.records)":                     "memory alignment",
		"max(settings.memory, facts.records + facts.records ^ 2)": "memory alignment",
		"30 + settings.memory":                                    "memory",
	} {
		a := parseOK(t, "format = 1\ntype = \"demo\"\nversion = \"1\"\ncommand = [\"true\"]\n[resources]\nmemory = \""+memory+`"
[[parameters]]
name = "alignment"
file = [".fasta"]
content = "alignment"
required = true
[[parameters]]
name = "memory"
type = "number"
default = 1
`)
		needs, faults := a.Needs(parseJSON(t, `{"alignment": "a", "memory": 1}`), Facts{"alignment": {"records": 30}})
		if len(faults) > 0 {
			t.Fatalf("%s: %v", memory, faults)
		}
		got := ""
		for _, f := range a.ExceededNeeds(needs, placement.Node{CPUs: 1, MemoryBytes: 16 << 30}, "this server has") {
			got += fmt.Sprint(" ", f.Loc[0])
			if f.Loc[0] == "alignment" && !strings.HasSuffix(f.Msg, "grows with this file; use a smaller one") {
				t.Errorf("%s: %s", memory, f.Msg)
			}
		}
		if got != " "+want {
			t.Errorf("%s: faults at%s, want %s", memory, got, want)
		}
	}
}
