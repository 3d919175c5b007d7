package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

// as returns a client of a new member of an organization.
func (s *server) as(organization string) *client.Client {
	s.t.Helper()
	made, err := client.NewControl(filepath.Join(s.data, "control.sock")).
		CreateKey(s.t.Context(), client.KeyRequest{Organization: organization, Email: "eve@" + organization + ".example", Role: "member"})
	must.OK(s.t, err)
	c := client.NewWith(s.base, made.Secret, &http.Transport{MaxIdleConnsPerHost: 16})
	s.t.Cleanup(c.Close)
	return c
}

// TestAnnouncedLengthsTakeNoSpaceFromOthers has three concurrent uploads announce more
// than their user is allowed to store, which is nearly the whole disk. Another
// organization must still be able to upload.
func TestAnnouncedLengthsTakeNoSpaceFromOthers(t *testing.T) {
	t.Parallel()
	folder := mountDisk(t, 256<<20)
	s := newServer(t, filepath.Join(folder, "data"), "[disk]\nreserve = \"32MiB\"\n[organizations.\"other\"]\nquota = { storage = \"10MiB\" }\n")
	s.start()
	attacker, victim := s.as("other"), s.client()
	length := strconv.FormatInt(freeSpace(t, folder)-40<<20, 10)
	tries := 40 * *attacks
	var left atomic.Int64
	left.Store(int64(tries))
	var threads sync.WaitGroup
	for i := range 3 {
		threads.Go(func() {
			for n := left.Add(-1); n >= 0; n = left.Add(-1) {
				if status, err := announce(t.Context(), attacker, fmt.Sprintf("%d-%d", i, n), length); status != http.StatusForbidden || err != nil {
					t.Errorf("an upload of %s bytes: status %d, %v", length, status, err)
				}
			}
		})
	}
	sent := 0
	for ; left.Load() > 0; sent++ {
		if _, err := victim.UploadBytes(t.Context(), "", fmt.Sprint("own-", sent), []byte("text")); err != nil {
			t.Errorf("upload %d of another organization: %v", sent, err)
		}
	}
	threads.Wait()
	if sent == 0 {
		t.Error("the other organization sent nothing during that time")
	}
	t.Logf("%d announcements, %d uploads of another organization", tries, sent)
}

// announce begins an upload whose first part announces its total length.
func announce(ctx context.Context, c *client.Client, name, length string) (status int, err error) {
	u, err := c.CreateUpload(ctx, "", name)
	if err != nil {
		return 0, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPut, u.UploadURL, strings.NewReader("x"))
	if err != nil {
		return 0, err
	}
	for key, value := range u.Instructions.Headers {
		q.Header.Set(key, value)
	}
	q.Header.Set("Upload-Complete", "?0")
	q.Header.Set("Upload-Length", length)
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err
	}
	return a.StatusCode, errors.Join(a.Body.Close(), c.DeleteFile(ctx, u.FileID))
}

// TestOthersSubmitWhileABatchIsCancelled counts how many jobs other users can submit
// between the request to cancel a batch and the end of its last job.
func TestOthersSubmitWhileABatchIsCancelled(t *testing.T) {
	t.Parallel()
	rows := min(2000**attacks, 10_000)
	s := newServer(t, "", "[runner]\ncpus = 1\nmemory = \"64MiB\"\n[limits]\nbatch_body = \"64MiB\"\n")
	s.start()
	owner, other := s.client(), s.as("lab")
	must.OK(t, must.Error2(owner.Post(t.Context(), map[string]string{"reason": "the rows wait"}, "admin", "drain")))
	b := client.BatchSubmission{Name: "large", Type: plainDiary.typ}
	for range rows {
		b.Settings = append(b.Settings, json.RawMessage(`{"page":"p"}`))
	}
	must.OK(t, must.Error2(owner.SubmitBatch(t.Context(), b)))
	cancelled := make(chan error, 1)
	go func() { cancelled <- must.Error2(owner.Cancel(t.Context(), "large")) }()
	submitted, took := 0, []time.Duration{}
	for ended := false; !ended; {
		begun := time.Now()
		must.OK(t, must.Error2(other.Submit(t.Context(), client.Submission{Name: fmt.Sprint("other-", submitted), Type: plainDiary.typ, Settings: json.RawMessage(`{"page":"p"}`)})))
		took = append(took, time.Since(begun))
		j, err := owner.Job(t.Context(), "large")
		must.OK(t, err)
		if ended = j.Status == "FAILED"; !ended {
			submitted++
		}
	}
	must.OK(t, <-cancelled)
	slices.Sort(took)
	t.Logf("%d jobs were submitted while %d rows were cancelled, 99%% of them within %v", submitted, rows, took[len(took)*99/100])
	if submitted < rows/400 {
		t.Errorf("only %d jobs were submitted while %d rows were cancelled", submitted, rows)
	}
}
