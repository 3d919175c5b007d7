package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"molrun/app/test/must"
	"molrun/app/test/whole"
)

const msaServer = `
catalogue = "none"
[runner]
cpus = 8
[msa]
networks = "127.0.0.1"
organization = "site"
`

func (s *instance) msa(change func(*http.Request)) whole.MSAClient {
	return whole.MSAClient{Base: func() string { return s.base + "/msa" }, Request: change, Pause: 20 * time.Millisecond, HTTP: s.http}
}

func (s *instance) aligned(c whole.MSAClient, path, fasta, mode string) whole.MSAResult {
	s.t.Helper()
	r, err := c.Run(s.t.Context(), path, fasta, mode)
	must.OK(s.t, err)
	return r
}

const (
	chainA = "MKTAYIAKQRQISFVKSHFSRQ"
	chainB = "GSHMLEDPVDAFKLWNRE"
)

// Requests as sent by four clients, each with its own headers, names and modes.
func TestAlignmentsForTheFourClients(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: msaServer, algorithms: map[string]string{"msa.toml": whole.MSAFile}})
	ann := s.user("lab", "ann@lab.example")
	key := func(r *http.Request) { r.Header.Set("X-API-Key", ann.key) }
	password := func(r *http.Request) { r.SetBasicAuth("key", ann.key) }
	protenix := func(r *http.Request) { r.SetBasicAuth("example_user", "example_password") }
	two, names := ">101\n"+chainA+"\n>102\n"+chainB+"\n", [2]string{"101", "102"}
	tests := []struct {
		client, path, fasta, mode string
		names                     [2]string
		caller                    func(*http.Request)
		organization, email       string
		pair                      string
	}{
		{"colabfold", "ticket/msa", two, "env", names, nil, "site", "msa@localhost", ""},
		{"colabfold, pairs", "ticket/pair", two, "pairgreedy", names, nil, "site", "msa@localhost", "greedy"},
		{"boltz", "ticket/msa", two, "env", names, key, "lab", "ann@lab.example", ""},
		{"boltz, pairs", "ticket/pair", two, "paircomplete-env", names, password, "lab", "ann@lab.example", "complete"},
		{"chai", "ticket/msa", two, "env", names, password, "lab", "ann@lab.example", ""},
		{"protenix", "ticket/msa", ">query_0\n" + chainA + "\n>query_1\n" + chainB, "env", [2]string{"query_0", "query_1"}, protenix, "site", "msa@localhost", ""},
		{"protenix, pairs", "ticket/pair", ">query_0\n" + chainA + "\n>query_1\n" + chainB, "pairgreedy", [2]string{"query_0", "query_1"}, protenix, "site", "msa@localhost", "greedy"},
	}
	for _, tt := range tests {
		t.Run(tt.client, func(t *testing.T) {
			c := s.msa(tt.caller)
			r := s.aligned(c, tt.path, tt.fasta, tt.mode)
			file := func(name string) map[string]string { return whole.Chains(r.Files[name]) }
			both := func(of func(name, chain string) string) map[string]string {
				return map[string]string{tt.names[0]: of(tt.names[0], chainA), tt.names[1]: of(tt.names[1], chainB)}
			}
			if tt.pair != "" {
				want := both(func(name, chain string) string { return whole.PairedOf(name, chain, tt.pair) })
				if diff := cmp.Diff(want, file("pair.a3m")); diff != "" {
					t.Errorf("pair.a3m (-want +got)\n%s", diff)
				}
			} else {
				if diff := cmp.Diff(both(whole.UnirefOf), file("uniref.a3m")); diff != "" {
					t.Errorf("uniref.a3m (-want +got)\n%s", diff)
				}
				want := both(func(name, chain string) string { return whole.EnvOf(name, chain, "none") })
				if diff := cmp.Diff(want, file("bfd.mgnify30.metaeuk30.smag30.a3m")); diff != "" {
					t.Errorf("environmental (-want +got)\n%s", diff)
				}
				if pdb, found := r.Files["pdb70.m8"]; !found || pdb != "" {
					t.Errorf("pdb70.m8: %q, %v", pdb, found)
				}
			}
			again := s.aligned(c, tt.path, tt.fasta, tt.mode)
			if got := strings.Join(again.Statuses, " "); got != "COMPLETE" || again.Ticket != r.Ticket {
				t.Errorf("an equal query has the ticket %s, not %s, and the statuses %s", again.Ticket, r.Ticket, got)
			}
			by := ann
			if tt.organization != "lab" {
				by = s.user(tt.organization, "bob@lab.example")
			}
			job := by.job(r.Ticket[:len("msa-")+32])
			if job.Organization != tt.organization || job.JobEmail != tt.email || job.Attempts != 1 {
				t.Errorf("the job is %+v", job)
			}
		})
	}
	for organization, want := range map[string]int{"lab": 2, "site": 2} {
		var list struct{ Jobs []record }
		s.user(organization, "bob@lab.example").do("GET", "/jobs?organization=true", nil).want(200).into(&list)
		if len(list.Jobs) != want {
			t.Errorf("%s has %d jobs, not %d", organization, len(list.Jobs), want)
		}
	}
}

// Requests for which there are no alignments.
func TestMissingAlignments(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: msaServer, algorithms: map[string]string{"msa.toml": whole.MSAFile}})
	c := s.msa(nil)

	r := s.aligned(c, "ticket/msa", ">101\nMN"+chainA+"\n", "env-notemplates")
	if got := r.Files["bfd.mgnify30.metaeuk30.smag30.a3m"]; got != ">101\nMN"+chainA+"\n\x00" || !strings.Contains(r.Files["msa.sh"], "No environmental database") {
		t.Errorf("without an environmental database: %q, %q", got, r.Files["msa.sh"])
	}
	if _, found := r.Files["pdb70.m8"]; found {
		t.Error("unrequested templates")
	}

	// Chai-1 requests paired alignments of a homodimer as if it were one chain.
	alone := s.aligned(c, "ticket/pair", ">101\nMN"+chainA+"\n", "pairgreedy-env")
	if got := alone.Files["pair.a3m"]; got != ">101\nMN"+chainA+"\n\x00" || len(alone.Statuses) != 1 {
		t.Errorf("pairs of one chain: %q after %v", got, alone.Statuses)
	}

	u := user{s, ""}
	if answer := u.do("GET", "/msa/template/4hhb_A,1abc_B", nil).want(200); len(answer.body) == 0 {
		t.Error("no archive of templates")
	}

	long := strings.Repeat("A", 201)
	for name, tt := range map[string]struct{ fasta, mode, want string }{
		"too long":         {">101\n" + long + "\n", "env", "200"},
		"no protein":       {">101\nATGATGATGGGCAATTAACCGGTT\n", "env", "looks like DNA"},
		"no letters":       {">101\nMKT4\n", "env", `"4" is not a valid amino acid`},
		"an empty one":     {">101\n\n>102\nMKT\n", "env", "record 1 (101) has no sequence"},
		"too many":         {strings.Repeat(">a\nMKTW\n", 10), "env", "9"},
		"nothing":          {"", "env", "no sequence"},
		"without a name":   {"MKTAYIAK\n", "env", "write >NAME"},
		"an unknown mode":  {">101\nMKTAYIAK\n", "env-m8output", "m8output"},
		"too large a body": {">101\n" + strings.Repeat("A", 2<<20), "env", "larger than"},
		"a failing search": {">101\nMFAIL\n", "env", "The database is damaged."},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Run(t.Context(), "ticket/msa", tt.fasta, tt.mode)
			if err == nil || !strings.HasPrefix(err.Error(), "server didn't reply with json: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want %q", err, tt.want)
			}
		})
	}
	for path, want := range map[string]int{
		"ticket/msa-00000000000000000000000000000000-t": 404, "ticket/x": 404, "result/download/" + r.Ticket + "x": 404, "queue": 404,
	} {
		if got := u.do("GET", "/msa/"+path, nil); got.status != want || strings.Contains(string(got.body), "UNKNOWN") {
			t.Errorf("%s: status %d, %s", path, got.status, got.body)
		}
	}
}

// A client needs a key or an allowed network to request alignments.
func TestAlignmentsNeedAKeyOrANetwork(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, config string
		header       []string
		want         int
	}{
		{"no network is allowed", "", nil, 401},
		{"another network", "[msa]\nnetworks = \"10.0.0.0/8\"\norganization = \"site\"\n", nil, 401},
		{"the network", "[msa]\nnetworks = \"127.0.0.0/8\"\norganization = \"site\"\n", nil, 404},
		{"a wrong key", "[msa]\nnetworks = \"127.0.0.0/8\"\norganization = \"site\"\n", []string{"x-api-key", "molrun_wrong"}, 401},
		{"a page of another site", "[msa]\nnetworks = \"127.0.0.0/8\"\norganization = \"site\"\n", []string{"Origin", "https://evil.example"}, 401},
		{"a client of a trusted proxy", "[proxy]\ntrusted = \"127.0.0.1\"\n[msa]\nnetworks = \"10.0.0.0/8\"\norganization = \"site\"\n", []string{"X-Forwarded-For", "10.1.2.3"}, 404},
		{"a stranger behind a trusted proxy", "[proxy]\ntrusted = \"127.0.0.1\"\n[msa]\nnetworks = \"127.0.0.1\"\norganization = \"site\"\n", []string{"X-Forwarded-For", "192.0.2.1"}, 401},
		{"a forged address", "[msa]\nnetworks = \"10.0.0.0/8\"\norganization = \"site\"\n", []string{"X-Forwarded-For", "10.1.2.3"}, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, serverOptions{config: tt.config})
			if got := (user{s, ""}).do("GET", "/msa/ticket/none", nil, tt.header...); got.status != tt.want {
				t.Errorf("status %d, want %d: %s", got.status, tt.want, got.body)
			}
		})
	}
}

// Clients wait if a quota on queued jobs is reached. If the databases change, the same
// query is a different job.
func TestAlignmentsWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	databases := t.TempDir()
	s := startServer(t, serverOptions{
		config:     msaServer + "[user_quota]\nqueued = 1\n[site.paths]\nmsa = \"" + databases + "\"\n",
		algorithms: map[string]string{"msa.toml": whole.MSAFile},
	})
	s.ok("drain", "--data", s.data())
	c := s.msa(nil)
	results := make(chan whole.MSAResult)
	for _, chain := range []string{chainA, chainB} {
		go func() {
			r, err := c.Run(t.Context(), "ticket/msa", ">101\n"+chain+"\n", "all")
			if err != nil {
				t.Error(err)
			}
			results <- r
		}()
	}
	s.eventually("a client must wait", func() bool {
		return strings.Contains(s.log.String(), "/submit-job\",\"remote\":\"127.0.0.1\",\"status\":403")
	})
	s.ok("resume", "--data", s.data())
	statuses := ""
	for range 2 {
		statuses += strings.Join((<-results).Statuses, " ") + "\n"
	}
	if !strings.Contains(statuses, "RATELIMIT") || strings.Count(statuses, "COMPLETE") != 2 {
		t.Error(statuses)
	}

	first := s.aligned(c, "ticket/msa", ">101\n"+chainA+"\n", "all")
	must.Write(t, filepath.Join(databases, "databases.json"), "{}")
	if other := s.aligned(c, "ticket/msa", ">101\n"+chainA+"\n", "all"); other.Ticket == first.Ticket {
		t.Error("other databases have the same ticket")
	}
}
