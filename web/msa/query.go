package msa

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fasta"
	"molrun/app/base/plaintext"
)

// Limits on a query, in addition to those of the type msa.
const (
	maxChains = 999     // file names have three digits
	maxNames  = 4 << 10 // total bytes of all names, which are part of the ticket
)

// settings are the settings of an msa job.
type settings struct {
	Sequences string `json:"sequences"`
	Pair      string `json:"pair"`
	Env       bool   `json:"env"`
	Filter    bool   `json:"filter"`
	Cores     int    `json:"cores,omitempty"` // does not affect results
}

// query is a client's search request.
type query struct {
	settings settings
	chains   []string
	ticket   ticket
}

// ticket names a job and the format in which the client wants its result. It contains
// everything needed to respond, so that a restart loses nothing.
type ticket struct {
	job   string
	form  string   // of the archive
	names []string // chain names; nil means 101, 102, …
}

// The archive formats.
const (
	withTemplates    = "t" // what most clients want
	withoutTemplates = "n"
	paired           = "p"
)

func (t ticket) String() string {
	text := t.job + "-" + t.form
	if t.names != nil {
		text += "." + base64.RawURLEncoding.EncodeToString([]byte(strings.Join(t.names, "\n")))
	}
	return text
}

var ticketForm = regexp.MustCompile(`^(msa-[0-9a-f]{32})-([tnp])(?:\.([A-Za-z0-9_-]+))?$`)

func parseTicket(text string) (t ticket, ok bool) {
	parts := ticketForm.FindStringSubmatch(text)
	if parts == nil {
		return ticket{}, false
	}
	t = ticket{job: parts[1], form: parts[2]}
	if parts[3] != "" {
		names, err := base64.RawURLEncoding.DecodeString(parts[3])
		if err != nil {
			return ticket{}, false
		}
		t.names = strings.Split(string(names), "\n")
	}
	return t, true
}

// name returns the name of chain i, starting at 0.
func (t ticket) name(i int) string {
	if t.names == nil {
		return strconv.Itoa(101 + i)
	}
	return t.names[i]
}

// readQuery reads the form data of a request.
func (c *call) readQuery(pairing bool) (q query, err error) {
	text, mode, err := c.readForm()
	if err != nil {
		return query{}, err
	}
	if err := q.readMode(mode, pairing); err != nil {
		return query{}, err
	}
	if err := q.readChains(text); err != nil {
		return query{}, err
	}
	if len(q.chains) == 1 {
		q.settings.Pair = "none" // a single chain can't be paired
	}
	q.ticket.job = q.name(c.options.Databases())
	q.settings.Cores = c.options.Cores
	q.settings.Sequences = folder + "/" + q.ticket.job + ".fasta"
	return q, nil
}

// folder is the folder for queries among the user's files.
const folder = "msa"

func (c *call) readForm() (text, mode string, err error) {
	release, err := c.reading.Take(c.ctx(), c.r.Header.Get("x-api-key"))
	if err != nil {
		return "", "", err
	}
	defer release()
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(c.options.Arrive)) // on error, the server's deadline applies
	defer func() { _ = http.NewResponseController(c.w).SetReadDeadline(time.Time{}) }()
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, c.options.MaxBody)
	err = c.r.ParseForm()
	if err == nil {
		err = c.r.ParseMultipartForm(c.options.MaxBody)
	}
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return "", "", refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("The query is larger than the %d bytes that this service accepts; send fewer or shorter sequences.", c.options.MaxBody))
	}
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return "", "", refuse(http.StatusBadRequest, "The form did not arrive completely; send it again.")
	}
	return c.r.FormValue("q"), c.r.FormValue("mode"), nil
}

// modes are the words allowed in a mode, by whether the path is for pairing.
var modes = map[bool][]string{
	false: {"all", "env", "nofilter", "notemplates"},
	true:  {"pairgreedy", "paircomplete", "env"},
}

// readMode parses a mode such as env-nofilter or pairgreedy-env.
func (q *query) readMode(mode string, pairing bool) error {
	words := strings.Split(mode, "-")
	for _, word := range words {
		if word != "" && !slices.Contains(modes[pairing], word) {
			return refuse(http.StatusBadRequest, fmt.Sprintf("mode: this alignment server has no %q; it has %s.", plaintext.Cut(word, 30), strings.Join(modes[pairing], ", ")))
		}
	}
	has := func(word string) bool { return slices.Contains(words, word) }
	q.settings = settings{Pair: "none", Env: has("env"), Filter: !has("nofilter")}
	q.ticket.form = withTemplates
	switch {
	case pairing && has("paircomplete"):
		q.settings.Pair, q.ticket.form = "complete", paired
	case pairing:
		q.settings.Pair, q.ticket.form = "greedy", paired
	case has("notemplates"):
		q.ticket.form = withoutTemplates
	}
	return nil
}

// readChains reads the sequences. It leaves checking their letters to the msa job type.
func (q *query) readChains(text string) error {
	records := fasta.Parse(plaintext.Unix([]byte(text)), maxChains)
	if len(records) > maxChains {
		return refuse(http.StatusBadRequest, fmt.Sprintf("q: more than %d sequences; send fewer at a time.", maxChains))
	}
	if len(records) == 0 {
		return refuse(http.StatusBadRequest, "q: no sequence; send protein sequences as FASTA.")
	}
	numbered, size := true, 0
	var names []string
	for i, r := range records {
		name := strings.TrimSpace(r.Header)
		if name == "" || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return refuse(http.StatusBadRequest, fmt.Sprintf("q: line %d: sequence %d has no usable name; write >NAME above it.", r.Line, i+1))
		}
		q.chains = append(q.chains, r.Letters)
		names = append(names, name)
		size += len(name)
		numbered = numbered && name == strconv.Itoa(101+i)
	}
	switch {
	case numbered:
	case size > maxNames:
		return refuse(http.StatusBadRequest, fmt.Sprintf("q: the names of the sequences have more than %d bytes together; use short names.", maxNames))
	default:
		q.ticket.names = names
	}
	return nil
}

// name identifies the search. Equal searches share a job, whatever their chains are
// called, including searches started by predictors.
func (q *query) name(databases string) string {
	s := q.settings
	plain := fmt.Appendf(nil, `{"env":%t,"filter":%t,"pair":%q}`, s.Env, s.Filter, s.Pair)
	return app.WorkName(typ, databases, plain, app.SequencesDigest(q.chains))
}

// text returns the query as a FASTA file.
func (q *query) text() []byte {
	var out []byte
	for i, letters := range q.chains {
		out = fmt.Appendf(out, ">%d\n%s\n", 101+i, letters)
	}
	return out
}
