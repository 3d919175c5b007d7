package faults

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"molrun/app/client"
	"molrun/app/test/must"
	"molrun/app/test/whole"
)

// Eight clients use the alignment server while the service is killed repeatedly. Each
// must get the alignments for its query, and equal queries must share one job.
func TestAlignmentsSurviveKills(t *testing.T) {
	t.Parallel()
	s := newServer(t, "", "catalogue = \"none\"\n"+manyCPUs+"[msa]\nnetworks = \"127.0.0.1\"\norganization = \"lab\"\n")
	must.OK(t, os.WriteFile(s.path("algorithms", "msa.toml"), []byte(whole.MSAFile), 0o600))
	s.start()
	const clients = 8
	var base atomic.Value
	base.Store(s.base)
	answered := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			c := whole.MSAClient{Base: func() string { return base.Load().(string) + "/msa" }, Pause: 10 * time.Millisecond, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
			for i := range *queries / clients {
				if err := askAlignment(ctx, c, (i*clients+n)/2, i%3 == 0); err != nil {
					t.Error(err)
				}
				answered <- struct{}{}
			}
		})
	}
	total := *queries / clients * clients
	for i := range total {
		<-answered
		if i%16 == 15 && i+1 < total {
			s.kill()
			s.start()
			base.Store(s.base)
		}
	}
	all.Wait()
	made := map[string]int{}
	for job, err := range s.client().Jobs(t.Context(), client.JobFilter{WholeOrganization: true, Algorithm: "msa"}) {
		must.OK(t, err)
		made[job.Status]++
	}
	if diff := cmp.Diff(map[string]int{"COMPLETED": total / 2}, made); diff != "" {
		t.Errorf("jobs (-want +got)\n%s", diff)
	}
	s.stop()
	s.check()
}

// askAlignment sends the query with the given number and checks the response. Two clients
// send each query.
func askAlignment(ctx context.Context, c whole.MSAClient, number int, pairs bool) error {
	chains := [2]string{"MK" + strings.NewReplacer("0", "A", "1", "C", "2", "D", "3", "E", "4", "F", "5", "G", "6", "H", "7", "I", "8", "K", "9", "L").Replace(fmt.Sprint(number)), "WWRKQY"}
	fasta, path, mode := ">101\n"+chains[0]+"\n>102\n"+chains[1]+"\n", "ticket/msa", "env"
	if pairs {
		path, mode = "ticket/pair", "pairgreedy"
	}
	r, err := c.Run(ctx, path, fasta, mode)
	if err != nil {
		return fmt.Errorf("query %d: %w", number, err)
	}
	want := map[string]string{"uniref.a3m": "", "bfd.mgnify30.metaeuk30.smag30.a3m": ""}
	if pairs {
		want = map[string]string{"pair.a3m": ""}
	}
	for i, chain := range chains {
		name := fmt.Sprint(101 + i)
		if pairs {
			want["pair.a3m"] += whole.PairedOf(name, chain, "greedy") + "\x00"
			continue
		}
		want["uniref.a3m"] += whole.UnirefOf(name, chain) + "\x00"
		want["bfd.mgnify30.metaeuk30.smag30.a3m"] += whole.EnvOf(name, chain, "none") + "\x00"
	}
	for file, text := range want {
		if diff := cmp.Diff(text, r.Files[file]); diff != "" {
			return fmt.Errorf("query %d, %s (-want +got)\n%s", number, file, diff)
		}
	}
	return nil
}
