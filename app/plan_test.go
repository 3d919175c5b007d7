package app_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// greedyFile asks for what its settings say.
const greedyFile = `
format = 1
type = "greedy"
version = "1"
title = "Book what it is told"
command = ["true"]

[[parameters]]
name = "cores"
type = "integer"
default = 1

[[parameters]]
name = "memory_gb"
type = "integer"
default = 1

[[parameters]]
name = "cards"
type = "integer"
default = 0

[resources]
cpus = "{settings.cores}"
memory = "{settings.memory_gb}GiB"
gpus = "{settings.cards}"
`

func TestSettingThatAsksForTooMuchIsNamed(t *testing.T) {
	s := newSite(t, greedyFile)
	for settings, want := range map[string][]string{
		`{"cores":4,"memory_gb":8}`: nil,
		`{"cores":5}`:               {"[body settings cores] the job would need more than this server has: 5 CPUs of 4; ask for less"},
		`{"cores":5,"memory_gb":9,"cards":1}`: {
			"[body settings cores] the job would need more than this server has: 5 CPUs of 4; ask for less",
			"[body settings memory_gb] the job would need more than this server has: 9.0 GiB of memory of 8.0 GiB; ask for less",
			"[body settings cards] the job would need more than this server has: 1 GPUs of 0; ask for less",
		},
	} {
		sub := submission(t, "a", settings)
		sub.Type = "greedy"
		found, err := s.Jobs.Validate(t.Context(), ann, sub)
		must(t, err)
		var got []string
		for _, f := range found.Detail {
			got = append(got, fmt.Sprint(f.Loc, " ", f.Msg))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", settings, diff)
		}
	}
}
