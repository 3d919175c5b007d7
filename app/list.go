package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"molrun/app/fault"
	"molrun/app/sortid"
	"molrun/app/strictjson"
)

// Limits of listings.
const (
	MaxPage          = 100
	DefaultPage      = 50
	maxShownSubjobs  = 1000    // of one batch
	maxListedSubjobs = 5000    // of all batches of a page
	EnoughBytes      = 4 << 20 // of a page: no more jobs are added
	enoughSubjobs    = 6 << 20 // bytes of those of a page, likewise
	// MaxWait is how long a client may wait for a job's change.
	MaxWait = time.Minute
)

// JobQuery selects and pages jobs; an empty field selects all.
type JobQuery struct {
	Name, Batch, Email, Algorithm string
	Status                        Status
	WholeOrganization             bool // else the caller's own, or those of Email
	Subjobs                       bool // batches carry up to 1,000 of their rows
	Statuses                      bool // the listing counts its jobs by status
	Limit                         int
	StartKey                      string
	Faults                        []fault.Field // found while decoding
}

// Listing is a page of records and the cursor of the next page, "" on the last.
type Listing struct {
	Records  []json.RawMessage
	StartKey string
	Statuses *Counts // where they were asked for: of the user, the organization or the batch, whatever the other filters
}

// List returns jobs, newest first.
func (s *Jobs) List(ctx context.Context, by Caller, q JobQuery) (*Listing, error) {
	f := JobFilter{
		Organization: by.Organization, Email: strings.ToLower(q.Email),
		Type: q.Algorithm, Status: q.Status, Name: q.Name,
	}
	if f.Email == "" && !q.WholeOrganization {
		f.Email = by.Email
	}
	listing := []string{"jobs", f.Organization, f.Email, f.Type, string(f.Status), f.Name, q.Batch}
	before, err := s.cursors.read(q.StartKey, q.Faults, listing...)
	if err != nil {
		return nil, err
	}
	var page JobPage
	var statuses *Counts
	subjobs := map[JobID]*subjobsView{}
	err = s.store.View(ctx, func(tx Tx) error {
		if q.Batch != "" {
			batch, err := findBatch(tx, by.Organization, q.Batch)
			if errors.Is(err, fault.NotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			f.Batch, statuses = batch.ID, batch.Counts
		}
		var err error
		if q.Statuses && q.Batch == "" {
			counts, err := tx.Statuses(f.Organization, f.Email)
			if err != nil {
				return err
			}
			statuses = &counts
		}
		if page, err = tx.Jobs(f, JobID(before), q.Limit); err != nil || !q.Subjobs {
			return err
		}
		return s.collectSubjobs(tx, page, subjobs)
	})
	if err != nil {
		return nil, err
	}
	out := &Listing{Records: make([]json.RawMessage, len(page.Jobs))}
	if q.Statuses {
		out.Statuses = cmp.Or(statuses, &Counts{}) // of no batch of that name, nothing
	}
	for i, j := range page.Jobs {
		out.Records[i] = subjobs[j.ID].addTo(s.show(j))
	}
	if page.More {
		out.StartKey = s.cursors.make(string(page.Jobs[len(page.Jobs)-1].ID), listing...)
	}
	return out, nil
}

// findBatch returns a batch of the organization by its name or ID.
func findBatch(tx Tx, organization, ref string) (*Job, error) {
	j, err := tx.JobNamed(organization, ref)
	if _, bad := sortid.Parse(ref); errors.Is(err, fault.NotFound) && bad == nil {
		if j, err = tx.Job(JobID(ref)); err == nil && j.Organization != organization {
			return nil, fault.NotFound
		}
	}
	if err == nil && !j.IsBatch() {
		return nil, fault.NotFound
	}
	return j, err
}

// subjobsView is the rows that the record of a batch carries.
type subjobsView struct {
	records   []json.RawMessage
	truncated bool
}

// addTo adds the rows to the record of a batch; a nil view adds nothing.
func (v *subjobsView) addTo(record json.RawMessage) json.RawMessage {
	if v == nil {
		return record
	}
	return strictjson.Append(strictjson.Append(record, "subjobs", v.records), "subjobsTruncated", v.truncated)
}

// collectSubjobs reads the rows of the batches on a page, up to 5,000 rows or
// some megabytes in all, so that the answer stays bounded.
func (s *Jobs) collectSubjobs(tx Tx, page JobPage, views map[JobID]*subjobsView) error {
	left, size := maxListedSubjobs, 0
	for _, j := range page.Jobs {
		var batch struct {
			Counts *Counts `json:"subjobCounts"`
		}
		if err := json.Unmarshal(j.JSON, &batch); err != nil {
			return err
		}
		if batch.Counts == nil {
			continue
		}
		view, err := s.subjobsOf(tx, j.ID, min(maxShownSubjobs, left), &size)
		if err != nil {
			return err
		}
		views[j.ID] = view
		left -= len(view.records)
	}
	return nil
}

// subjobsOf reads up to limit rows of a batch and adds their bytes to size.
func (s *Jobs) subjobsOf(tx Tx, batch JobID, limit int, size *int) (*subjobsView, error) {
	view := &subjobsView{records: []json.RawMessage{}}
	for sub, err := range tx.Subjobs(batch, "") {
		if err != nil {
			return nil, err
		}
		if len(view.records) >= limit || *size >= enoughSubjobs {
			view.truncated = true
			break
		}
		record, err := tx.JobJSON(sub.ID)
		if err != nil {
			return nil, err
		}
		*size += len(record)
		view.records = append(view.records, s.show(StoredJob{sub.ID, record}))
	}
	return view, nil
}

// Get returns the record of a job. With wait > 0 it returns when the status
// changes, when the job is finished, or when wait is over.
func (s *Jobs) Get(ctx context.Context, by Caller, name string, wait time.Duration) (Record, error) {
	j, err := s.read(ctx, by, name)
	if err != nil || wait <= 0 {
		return s.show(j), err
	}
	timer := time.NewTimer(min(wait, MaxWait))
	defer timer.Stop()
	before, _ := statusOf(j.JSON)
	for {
		changed, release := s.changes.watch(j.ID)
		j, err = s.read(ctx, by, name)
		if now, _ := statusOf(j.JSON); err != nil || now != before || now.Finished() {
			release()
			return s.show(j), err
		}
		select {
		case <-changed:
			release()
		case <-timer.C:
			release()
			return s.show(j), nil
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
}

// Record is a job's JSON as clients see it now, live state included.
type Record = json.RawMessage

// show adds a job's live state to its stored record.
func (c *core) show(j StoredJob) json.RawMessage {
	c.live.mu.Lock()
	progress, runs := c.live.progress[j.ID]
	reason, waits := c.live.reasons[j.ID]
	c.live.mu.Unlock()
	switch status, hasReason := statusOf(j.JSON); {
	case runs && status == Running:
		return strictjson.Append(j.JSON, "progress", progress)
	case status != Queued || hasReason:
	case waits:
		return strictjson.Append(j.JSON, "statusReason", reason)
	default:
		if e := executorOf(j.JSON); e != "" && !c.router.Has(e) {
			return strictjson.Append(j.JSON, "statusReason", "waiting: the executor "+e+" is no longer configured here; ask an administrator, or cancel the job and submit it again")
		}
	}
	return j.JSON
}

// statusOf reads the status out of a stored record, and whether it is followed by
// a statusReason. It goes by position: both members stand before everything that
// users write but names, whose quotes are escaped.
func statusOf(record []byte) (status Status, hasReason bool) {
	_, rest, _ := bytes.Cut(record, []byte(`"status":"`))
	text, rest, _ := bytes.Cut(rest, []byte(`"`))
	hasReason = bytes.HasPrefix(rest, []byte(`,"statusReason":`))
	for _, s := range Statuses {
		if string(text) == string(s) {
			return s, hasReason // without a copy
		}
	}
	return Status(text), hasReason
}

// executorOf reads the executor out of the record of a queued job, "" if the rows
// of a batch have several. Behind the last jobEmail, settings and inputs are over,
// so that no member of theirs can be taken for the record's own.
func executorOf(record []byte) string {
	_, rest, _ := bytes.Cut(record[max(0, bytes.LastIndex(record, []byte(`"jobEmail":"`))):], []byte(`"executor":"`))
	name, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(name)
}

// cursorKey signs cursors, so that a cursor works only for the listing that
// issued it.
type cursorKey []byte

const (
	cursorVersion = 1
	cursorMAC     = 16 // bytes kept of the HMAC
	cursorSize    = 1 + sortid.Size + cursorMAC
)

// make returns the cursor behind the item id of a listing. listing is its
// organization, scope and filters.
func (k cursorKey) make(id string, listing ...string) string {
	parsed, err := sortid.Parse(id)
	if err != nil {
		return ""
	}
	b := append(make([]byte, 0, cursorSize), cursorVersion)
	b = append(b, parsed[:]...)
	return base64.RawURLEncoding.EncodeToString(append(b, k.mac(b, listing)...))
}

// read returns the ID in a cursor of that listing, "" for no cursor. The error
// has the faults of the query that are known, and that of the cursor.
func (k cursorKey) read(cursor string, known []fault.Field, listing ...string) (string, error) {
	if cursor == "" {
		return "", fault.List(known...)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	garbage := err != nil || len(b) != cursorSize || b[0] != cursorVersion
	if garbage || !otherListing(known) && !hmac.Equal(b[1+sortid.Size:], k.mac(b[:1+sortid.Size], listing)) {
		return "", fault.List(append(slices.Clone(known), fault.Field{
			Loc: []any{"query", "startKey"}, Type: "value",
			Msg: "this startKey is not of this listing; use the one from the page before with the same filters, or leave it out",
		})...)
	}
	return sortid.ID(b[1 : 1+sortid.Size]).String(), fault.List(known...)
}

// otherListing reports whether the faults of a query may hide which listing was
// meant, so that nobody can tell whether a cursor belongs to it.
func otherListing(faults []fault.Field) bool {
	return slices.ContainsFunc(faults, func(f fault.Field) bool {
		return len(f.Loc) < 2 || !slices.Contains([]any{"limit", "includeSubjobs", "statuses"}, f.Loc[1])
	})
}

func (k cursorKey) mac(head []byte, listing []string) []byte {
	h := hmac.New(sha256.New, k)
	h.Write(head)
	var length [4]byte
	for _, s := range listing {
		binary.BigEndian.PutUint32(length[:], uint32(len(s)))
		h.Write(length[:])
		h.Write([]byte(s))
	}
	return h.Sum(nil)[:cursorMAC]
}
