package result

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"molrun/app"
)

// SmallFile is the size below which a file is copied through a buffer, so that many small
// files of an archive are sent in one call.
const SmallFile = 32 << 10

// Content is an io.ReadSeeker over an archive for http.ServeContent.
type Content struct {
	ctx     context.Context
	archive *Archive
	off     int64
	err     error
}

// Content returns the archive's content, from the beginning. Sending stops when ctx is
// done.
func (a *Archive) Content(ctx context.Context) *Content { return &Content{ctx: ctx, archive: a} }

// Err returns the error that ended the last send.
func (c *Content) Err() error { return c.err }

// Seek implements io.Seeker.
func (c *Content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.off
	case io.SeekEnd:
		offset += c.archive.Size()
	}
	if offset < 0 {
		return 0, errors.New("seek before the archive")
	}
	c.off = offset
	return offset, nil
}

// Read implements io.Reader for writers that do not use SendTo.
func (c *Content) Read(p []byte) (int, error) {
	if c.off >= c.archive.Size() {
		return 0, io.EOF
	}
	b := fixedBuffer{p: p}
	n, err := c.SendTo(&b, int64(len(p)))
	return int(n), err
}

// fixedBuffer accepts as many bytes as fit in p.
type fixedBuffer struct{ p []byte }

func (b *fixedBuffer) Write(p []byte) (int, error) {
	n := copy(b.p, p)
	b.p = b.p[n:]
	return n, nil
}

// SendTo writes the next n bytes to w. It passes large files to the ReadFrom of w, so
// that the kernel can copy them.
func (c *Content) SendTo(w io.Writer, n int64) (int64, error) {
	sent, err := c.archive.send(c.ctx, w, c.off, n)
	c.off += sent
	c.err = err
	return sent, err
}

// send writes n bytes of the archive to w, starting at off. It goes through the whole
// archive in order, and the window skips everything else.
func (a *Archive) send(ctx context.Context, w io.Writer, off, n int64) (int64, error) {
	win := &window{ctx: ctx, w: bufio.NewWriterSize(w, 2*SmallFile), off: off, end: min(off+n, a.Size())}
	for _, each := range []struct {
		folder func(*part, *Jobs, *window) error
		inputs func(*inputs, *window) error
	}{{(*part).sendFiles, (*inputs).sendFiles}, {(*part).sendRecords, (*inputs).sendRecords}} {
		for i := range a.parts {
			if err := each.folder(&a.parts[i], a.jobs, win); err != nil {
				return win.sent, fmt.Errorf("archive of job %s: %w", a.parts[i].folder.Job, err)
			}
		}
		if err := each.inputs(&a.inputs, win); err != nil {
			return win.sent, fmt.Errorf("archive: %w", err)
		}
	}
	if err := win.write(a.end.appendTo(nil)); err != nil {
		return win.sent, err
	}
	return win.sent, win.w.Flush()
}

// sendFiles sends the folder's local headers and files.
func (p *part) sendFiles(jobs *Jobs, w *window) error {
	if w.skip(p.size) {
		return nil
	}
	dir, err := jobs.Open(p.folder.Job)
	if err != nil {
		return err
	}
	defer dir.Close()
	m, err := p.manifest(dir)
	if err != nil {
		return err
	}
	var header []byte
	for f, e := range p.walk(m) {
		if w.skip(e.localLen() + e.size) {
			continue
		}
		header = appendLocal(header[:0], e)
		if err := w.write(header); err != nil {
			return err
		}
		if err := w.file(dir, f); err != nil {
			return err
		}
	}
	return nil
}

// sendRecords sends the folder's records of the central directory.
func (p *part) sendRecords(jobs *Jobs, w *window) error {
	if w.skip(p.central) {
		return nil
	}
	dir, err := jobs.Open(p.folder.Job)
	if err != nil {
		return err
	}
	defer dir.Close()
	m, err := p.manifest(dir)
	if err != nil {
		return err
	}
	var record []byte
	for _, e := range p.walk(m) {
		record = appendCentral(record[:0], e)
		if err := w.write(record); err != nil {
			return err
		}
	}
	return w.ctx.Err()
}

// manifest reads the manifest again and checks that the layout was based on it.
func (p *part) manifest(dir *os.Root) (*app.Manifest, error) {
	m, data, err := Manifest(dir, p.folder.Job)
	if err == nil && sha256.Sum256(data) != p.digest {
		err = errors.New("the manifest has changed")
	}
	return m, err
}

// window is the range of an archive to send. Its caller passes every region of the
// archive to skip, write or file, in order.
type window struct {
	ctx  context.Context
	w    *bufio.Writer
	off  int64 // first byte to send
	end  int64 // end of the range, exclusive
	pos  int64 // start of the next region
	sent int64
}

// skip skips a region of n bytes if it is outside the window, and reports whether it was.
func (w *window) skip(n int64) bool {
	if w.pos+n > w.off && w.pos < w.end {
		return false
	}
	w.pos += n
	return true
}

// advance advances past a region of n bytes and returns the range within it to send.
func (w *window) advance(n int64) (from, to int64) {
	from, to = max(w.off-w.pos, 0), min(w.end-w.pos, n)
	w.pos += n
	return from, to
}

// write sends the region b.
func (w *window) write(b []byte) error {
	if w.skip(int64(len(b))) {
		return nil
	}
	from, to := w.advance(int64(len(b)))
	n, err := w.w.Write(b[from:to])
	w.sent += int64(n)
	return err
}

// file sends a file of a job. It opens the file only now and closes it before the next
// one, so an archive never has more than one file open.
func (w *window) file(dir *os.Root, mf *app.ManifestFile) error {
	if err := w.ctx.Err(); err != nil || w.skip(mf.Size) {
		return err
	}
	f, err := OpenFile(dir, mf)
	if err != nil {
		return err
	}
	defer f.Close()
	from, to := w.advance(mf.Size)
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return err
	}
	if to-from >= SmallFile { // with an empty buffer, ReadFrom calls the underlying writer's
		if err := w.w.Flush(); err != nil {
			return err
		}
	}
	n, err := w.w.ReadFrom(&io.LimitedReader{R: f, N: to - from})
	w.sent += n
	if err == nil && n < to-from {
		err = errors.New("the file was truncated")
	}
	return err
}
