package whole

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// MSAFile is an algorithm file of type msa that searches nothing: its alignments reflect
// the request (see UnirefOf, EnvOf and PairedOf). A chain that begins with MN has no
// environmental sequences, and a chain that begins with MFAIL makes the job fail.
const MSAFile = `
format = 1
type = "msa"
version = "1"
title = "Stand-in for a search"
retries = 3
max_runtime = "1h"
command = ["sh", "-c", '''
/bin/mkdir out/alignments out/paired || exit 1
n=0
while read -r line; do
	case $line in ">"*) continue ;; MFAIL*) echo "molrun: The database is damaged." >&2; exit 1 ;; esac
	n=$((n + 1))
	i=$(printf %03d "$n")
	printf ">chain %s\n%s\n>UniRef100_%s\t95\n%s-\n" "$n" "$line" "$line" "${{line%?}}" >"out/alignments/$i.uniref.a3m" || exit 1
	printf ">chain %s\n%s\n" "$n" "$line" >"out/alignments/$i.a3m" || exit 1
	case $3$line in
	trueMN* | false*) ;;
	*) printf ">chain %s\n%s\n>env_%s\t50\n%s" "$n" "$line" "$2" "$line" >"out/alignments/$i.env.a3m" || exit 1 ;;
	esac
	[ "$2" = none ] || printf ">chain %s\n%s\n>%s\t9606\n%s\n" "$n" "$line" "$2" "$line" >"out/paired/$i.a3m" || exit 1
done <"$1"
sleep 0.1
echo "{{}}" >out/search.json
''', "sh", "{files.sequences}", "{settings.pair}", "{settings.env}"]

[resources]
memory = "16MiB"

[[parameters]]
name = "sequences"
file = [".fasta"]
content = "protein-sequences"
max_records = 9
max_residues = 200
any_text = true
required = true

[[parameters]]
name = "pair"
type = "string"
enum = ["none", "greedy", "complete"]
default = "none"

[[parameters]]
name = "env"
type = "boolean"
default = true

[[parameters]]
name = "filter"
type = "boolean"
default = true
`

// UnirefOf returns the UniRef alignment that MSAFile produces for a chain with the name
// given by the client.
func UnirefOf(name, chain string) string {
	return fmt.Sprintf(">%s\n%s\n>UniRef100_%s\t95\n%s-\n", name, chain, chain, chain[:len(chain)-1])
}

// EnvOf returns the alignment from the environmental database.
func EnvOf(name, chain, pair string) string {
	if strings.HasPrefix(chain, "MN") {
		return fmt.Sprintf(">%s\n%s\n", name, chain)
	}
	return fmt.Sprintf(">%s\n%s\n>env_%s\t50\n%s\n", name, chain, pair, chain)
}

// PairedOf returns the alignment paired by species.
func PairedOf(name, chain, pair string) string {
	return fmt.Sprintf(">%s\n%s\n>%s\t9606\n%s\n", name, chain, pair, chain)
}

// MSAClient sends the same requests to an alignment server as ColabFold, Boltz, Chai-1
// and Protenix do in run_mmseqs2, with shorter pauses.
type MSAClient struct {
	Base    func() string // without the slash after /msa
	Request func(*http.Request)
	Pause   time.Duration
	HTTP    *http.Client
}

// MSAResult is what a client received.
type MSAResult struct {
	Ticket   string
	Statuses []string
	Files    map[string]string
}

type msaTicket struct{ ID, Status string }

// Run requests the alignments of chains and waits for them.
func (c MSAClient) Run(ctx context.Context, path, fasta, mode string) (r MSAResult, err error) {
	submit := func() (t msaTicket, err error) {
		form := url.Values{"q": {fasta}, "mode": {mode}}.Encode()
		return c.status(ctx, http.MethodPost, "/"+path, form)
	}
	for {
		t, err := submit()
		for err == nil && (t.Status == "UNKNOWN" || t.Status == "RATELIMIT") {
			r.Statuses = append(r.Statuses, t.Status)
			time.Sleep(c.Pause)
			t, err = submit()
		}
		if err == nil && t.Status == "MAINTENANCE" {
			err = errors.New("MMseqs2 API is undergoing maintenance")
		}
		r.Ticket = t.ID
		for err == nil && slices.Contains([]string{"UNKNOWN", "RUNNING", "PENDING"}, t.Status) {
			r.Statuses = append(r.Statuses, t.Status)
			time.Sleep(c.Pause)
			t, err = c.status(ctx, http.MethodGet, "/ticket/"+r.Ticket, "")
		}
		switch {
		case err != nil:
			return r, err
		case t.Status == "COMPLETE":
			r.Statuses = append(r.Statuses, t.Status)
			content, err := c.do(ctx, http.MethodGet, "/result/download/"+r.Ticket, "")
			if err == nil {
				r.Files, err = unpacked(content)
			}
			return r, err
		}
	}
}

// status sends a request and returns the ticket in the response. A response that is not
// JSON is printed, and counts as status ERROR.
func (c MSAClient) status(ctx context.Context, method, path, form string) (t msaTicket, err error) {
	text, err := c.do(ctx, method, path, form)
	if err == nil && json.Unmarshal(text, &t) != nil {
		err = fmt.Errorf("server didn't reply with json: %s", bytes.TrimSpace(text))
	}
	return t, err
}

// do sends a request repeatedly until it gets a complete response, with any HTTP status.
func (c MSAClient) do(ctx context.Context, method, path, form string) ([]byte, error) {
	for {
		r, err := http.NewRequestWithContext(ctx, method, c.Base()+path, strings.NewReader(form))
		if err != nil {
			return nil, err
		}
		if form != "" {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		r.Header.Set("User-Agent", "colabfold/1.6.2")
		if c.Request != nil {
			c.Request(r)
		}
		resp, err := c.HTTP.Do(r)
		if err == nil {
			var content []byte
			content, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close() // only read from
			if err == nil {
				return content, nil
			}
		}
		if ctx.Err() != nil {
			return nil, err
		}
		time.Sleep(c.Pause)
	}
}

// unpacked returns the content of the files in a tar.gz archive, by name.
func unpacked(content []byte) (map[string]string, error) {
	zip, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%w: %.200q", err, content)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		files[h.Name] = string(text)
	}
}

// Chains returns the alignments in a file by the name of their query. Like the clients,
// it splits the file at the first header after a NUL.
func Chains(file string) map[string]string {
	found, name, begins := map[string]string{}, "", true
	for line := range strings.Lines(file) {
		if strings.Contains(line, "\x00") {
			line, begins = strings.ReplaceAll(line, "\x00", ""), true
		}
		if strings.HasPrefix(line, ">") && begins {
			name, begins = strings.TrimSpace(line[1:]), false
		}
		found[name] += line
	}
	return found
}
