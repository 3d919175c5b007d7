package through

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"molrun/app/cli/doctor"
)

// grant is what the service says to an upload.
type grant struct {
	FileID       string
	UploadURL    string
	DownloadURL  string
	Instructions struct{ Headers map[string]string }
}

// content makes the same bytes each time, which can't be compressed.
func content(size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{byte(size)}), size)
}

// begin asks for the links of a file. Their beginning is checked, and replaced by the URL
// that is examined.
func (p *probe) begin(size int64) (*grant, error) {
	var g grant
	if err := p.call(http.MethodPut, fmt.Sprintf("/upload/through-%d-%d.bin?folder=through", time.Now().UnixNano(), size), "", &g); err != nil {
		return nil, err
	}
	p.files = append(p.files, g.FileID)
	for _, link := range []*string{&g.UploadURL, &g.DownloadURL} {
		i := strings.Index(*link, "/blobs/")
		if i < 0 {
			return nil, fmt.Errorf("the link %.80s… is none of molrun's", *link)
		}
		if (*link)[:i] != p.base && len(p.files) == 1 && link == &g.UploadURL {
			p.blame("links", linkAddress, "links begin with %s, not with %s", (*link)[:i], p.base)
		}
		*link = p.base + (*link)[i:]
	}
	return &g, nil
}

// transfer sends a file up, and gets it back in one piece and in parts.
func (p *probe) transfer(size int64) bool {
	check := fmt.Sprintf("%d MB", size/1e6)
	g, err := p.begin(size)
	if err != nil {
		p.say(doctor.Problem, check, "no upload can begin: %v", err)
		return false
	}
	return p.sent(check, g, size) && p.fetched(check, g, size) && p.ranged(check, g, size)
}

// sent sends the file.
func (p *probe) sent(check string, g *grant, size int64) bool {
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	var headers []string
	for name, value := range g.Instructions.Headers {
		headers = append(headers, name, value)
	}
	r, err := p.request(ctx, http.MethodPut, g.UploadURL, content(size), headers...)
	if err != nil {
		p.say(doctor.Problem, check, "%v", err)
		return false
	}
	r.ContentLength = size
	response, err := p.http.Do(r)
	if err != nil {
		// A proxy may close the connection instead of reading a body that it refuses.
		p.blame(check, bodySize, "the upload of %d bytes breaks: %v", size, err)
		return false
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16)) // the status says enough
	a := &answer{response, text}
	switch {
	case a.StatusCode/100 == 2:
	case a.ours():
		p.say(doctor.Problem, check, "the upload of %d bytes is refused: %s", size, a)
		return false
	case a.StatusCode == http.StatusRequestEntityTooLarge,
		p.proxy == caddy && a.StatusCode == http.StatusBadGateway: // so it says that a limit cut the body off
		p.blame(check, bodySize, "bodies of %d bytes do not get through: %s", size, a)
		return false
	default:
		p.blame(check, transferTime, "the upload of %d bytes fails: %s", size, a)
		return false
	}
	if err := p.call(http.MethodPost, "/upload/"+g.FileID+"/complete", fmt.Sprintf(`{"size":%d}`, size), nil); err != nil {
		p.say(doctor.Problem, check, "the upload of %d bytes did not arrive whole: %v", size, err)
		return false
	}
	return true
}

// fetched gets the file back.
func (p *probe) fetched(check string, g *grant, size int64) bool {
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	r, err := p.request(ctx, http.MethodGet, g.DownloadURL, nil)
	if err != nil {
		p.say(doctor.Problem, check, "%v", err)
		return false
	}
	response, err := p.http.Do(r)
	if err != nil {
		p.blame(check, transferTime, "the download of %d bytes fails: %v", size, err)
		return false
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		p.blame(check, transferTime, "the download of %d bytes fails: %s", size, &answer{response, nil})
		return false
	}
	got := sha256.New()
	n, err := io.Copy(got, response.Body)
	if want := digest(content(size)); err != nil || n != size || sum(got) != want {
		p.blame(check, transferTime, "of %d bytes, %d come down (%v), or others than went up", size, n, err)
		return false
	}
	return true
}

func digest(r io.Reader) string {
	h := sha256.New()
	_, _ = io.Copy(h, r) // neither can fail
	return sum(h)
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// ranged gets the last bytes of the file, as a client does that goes on with a download.
func (p *probe) ranged(check string, g *grant, size int64) bool {
	const last = 1000
	from := strconv.FormatInt(size-last, 10)
	a, err := p.ask(http.MethodGet, g.DownloadURL, nil, "Range", "bytes="+from+"-")
	if err != nil || a.StatusCode != http.StatusPartialContent {
		p.blame(check, ranges, "a part of a download does not come alone: %s", failure(a, err))
		return false
	}
	all := content(size)
	_, _ = io.CopyN(io.Discard, all, size-last) // it does not fail
	if want, _ := io.ReadAll(all); !bytes.Equal(a.body, want) || !strings.HasPrefix(a.Header.Get("Content-Range"), "bytes "+from+"-") {
		p.blame(check, ranges, "a part of a download has other bytes than it should")
		return false
	}
	p.say(doctor.OK, check, "%d bytes go up and come down, whole and in part", size)
	return true
}

// partBytes is what is sent of an upload before the connection breaks.
const partBytes = 4 << 20

// streamedUpload breaks an upload off. What a proxy had buffered then never reaches the
// service, so that no interrupted upload could be resumed.
func (p *probe) streamedUpload() {
	const check = "interrupted upload"
	g, err := p.begin(4 * partBytes)
	if err != nil {
		p.say(doctor.Problem, check, "no upload can begin: %v", err)
		return
	}
	p.breakOff(g)
	for end := time.Now().Add(prompt); ; time.Sleep(200 * time.Millisecond) {
		a, err := p.ask(http.MethodHead, g.UploadURL, nil)
		if err == nil {
			if at, _ := strconv.ParseInt(a.Header.Get("Upload-Offset"), 10, 64); at > 0 {
				p.say(doctor.OK, check, "%d of %d bytes of a broken upload have reached the service", at, partBytes)
				return
			}
		}
		if time.Now().After(end) || p.ctx.Err() != nil {
			p.blame(check, requestBuffering, "nothing of a broken upload reaches the service (%s): the proxy keeps requests until they are whole", failure(a, err))
			return
		}
	}
}

// breakOff sends the first part of an upload, and nothing more.
func (p *probe) breakOff(g *grant) {
	ctx, cancel := context.WithTimeout(p.ctx, prompt)
	defer cancel()
	body := &stalling{from: content(partBytes), ctx: ctx, stalled: func() { time.AfterFunc(time.Second, cancel) }}
	r, err := p.request(ctx, http.MethodPut, g.UploadURL, body, "Upload-Complete", "?1")
	if err != nil {
		return // begin has checked the link
	}
	r.ContentLength = 4 * partBytes
	if response, err := p.http.Do(r); err == nil {
		response.Body.Close() // refused: nothing has arrived, which is what counts
	}
}

// stalling is a body that does not end.
type stalling struct {
	from    io.Reader
	ctx     context.Context
	stalled func()
}

func (s *stalling) Read(b []byte) (int, error) {
	n, err := s.from.Read(b)
	if n > 0 || err == nil {
		return n, nil
	}
	s.stalled()
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}
