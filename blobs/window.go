package blobs

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"syscall"

	"molrun/app"
)

// smallFile is the size below which a file of an archive is copied into the
// buffer: gathered, many such files go out by one call.
const smallFile = 32 << 10

// window sends the bytes from one place of an archive to another. Its callers
// go through the whole archive in order; it drops what lies outside.
type window struct {
	ctx  context.Context
	w    *bufio.Writer
	off  int64 // first byte to send
	end  int64 // where to stop
	pos  int64 // where the next region begins
	sent int64
}

// passes skips a region of n bytes where none of it is to be sent.
func (w *window) passes(n int64) bool {
	if w.pos+n > w.off && w.pos < w.end {
		return false
	}
	w.pos += n
	return true
}

// clip gives the part of a region of n bytes that is to be sent.
func (w *window) clip(n int64) (from, to int64) {
	return max(w.off-w.pos, 0), min(w.end-w.pos, n)
}

// write sends what belongs in the window of the region b.
func (w *window) write(b []byte) error {
	if w.passes(int64(len(b))) {
		return nil
	}
	from, to := w.clip(int64(len(b)))
	w.pos += int64(len(b))
	n, err := w.w.Write(b[from:to])
	w.sent += int64(n)
	return err
}

// file sends what belongs in the window of an open file of the given size.
// A large part bypasses the buffer, so that the kernel copies it.
func (w *window) file(f *os.File, size int64) error {
	from, to := w.clip(size)
	w.pos += size
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return err
	}
	part := &io.LimitedReader{R: f, N: to - from}
	n, err := w.copy(part)
	w.sent += n
	if err == nil && n < to-from {
		err = errors.New("the file became shorter")
	}
	return err
}

func (w *window) copy(part *io.LimitedReader) (int64, error) {
	if part.N < smallFile {
		return w.w.ReadFrom(part)
	}
	if err := w.w.Flush(); err != nil {
		return 0, err
	}
	return w.w.ReadFrom(part) // on to the writer below, as the buffer is empty
}

// send writes n bytes of the archive from off on to w.
func (d *Dir) send(ctx context.Context, a *archive, w io.Writer, off, n int64) (int64, error) {
	win := &window{ctx: ctx, w: bufio.NewWriterSize(w, 2*smallFile), off: off, end: min(off+n, a.size())}
	err := d.sendParts(a, win)
	if err == nil {
		err = win.write(a.end.appendTo(nil))
	}
	if err == nil {
		err = win.w.Flush()
	}
	return win.sent, err
}

// sendParts sends the folders' files, then their central records.
func (d *Dir) sendParts(a *archive, w *window) error {
	for i := range a.parts {
		if err := d.sendFiles(&a.parts[i], w); err != nil {
			return fmt.Errorf("archive of job %s: %w", a.parts[i].folder.Job, err)
		}
	}
	for i := range a.parts {
		if err := d.sendRecords(&a.parts[i], w); err != nil {
			return fmt.Errorf("archive of job %s: %w", a.parts[i].folder.Job, err)
		}
	}
	return nil
}

func (d *Dir) sendFiles(p *part, w *window) error {
	if w.passes(p.size) {
		return nil
	}
	m, err := d.measured(p)
	if err != nil {
		return err
	}
	dir, err := d.root.OpenRoot(path.Join(jobsDir, string(p.folder.Job)))
	if err != nil {
		return err
	}
	defer dir.Close()
	var header []byte
	for f, e := range p.walk(m) {
		if w.passes(e.localLen() + e.size) {
			continue
		}
		header = appendLocal(header[:0], e)
		if err := w.write(header); err != nil {
			return err
		}
		if err := w.result(dir, f); err != nil {
			return err
		}
	}
	return nil
}

// result sends one file of a job, opened only now and closed before the next.
func (w *window) result(dir *os.Root, mf *app.ManifestFile) error {
	if err := w.ctx.Err(); err != nil || w.passes(mf.Size) {
		return err
	}
	f, err := openResult(dir, mf)
	if err != nil {
		return err
	}
	defer f.Close()
	return w.file(f, mf.Size)
}

func (d *Dir) sendRecords(p *part, w *window) error {
	if w.passes(p.central) {
		return nil
	}
	m, err := d.measured(p)
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

// measured reads the manifest again that the layout was made from.
func (d *Dir) measured(p *part) (*app.Manifest, error) {
	m, data, err := d.manifest(p.folder.Job)
	if err == nil && sha256.Sum256(data) != p.digest {
		err = errors.New("the manifest has changed")
	}
	return m, err
}

// openResult opens a file of a job's result if it still is what its manifest
// says. Links within the job's directory can't lead out of it, and what is no
// regular file is not waited for.
func openResult(dir *os.Root, mf *app.ManifestFile) (*os.File, error) {
	f, err := dir.OpenFile(mf.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() != mf.Size) {
		err = fmt.Errorf("%s has %d bytes, not the %d of its manifest", mf.Path, info.Size(), mf.Size)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// archiveContent makes an archive a file that http.ServeContent can serve.
type archiveContent struct {
	ctx     context.Context
	dir     *Dir
	archive *archive
	off     int64
	err     error // why sending broke off
}

// Seek implements io.Seeker.
func (c *archiveContent) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.off
	case io.SeekEnd:
		offset += c.archive.size()
	}
	if offset < 0 {
		return 0, errors.New("seek before the archive")
	}
	c.off = offset
	return offset, nil
}

// Read implements io.Reader for writers that don't know sendTo.
func (c *archiveContent) Read(p []byte) (int, error) {
	if c.off >= c.archive.size() {
		return 0, io.EOF
	}
	b := fixedBuffer{p: p}
	n, err := c.sendTo(&b, int64(len(p)))
	return int(n), err
}

// sendTo implements rangeSender.
func (c *archiveContent) sendTo(w io.Writer, n int64) (int64, error) {
	sent, err := c.dir.send(c.ctx, c.archive, w, c.off, n)
	c.off += sent
	c.err = err
	return sent, err
}

// fixedBuffer takes as many bytes as it is asked to hold.
type fixedBuffer struct{ p []byte }

func (b *fixedBuffer) Write(p []byte) (int, error) {
	n := copy(b.p, p)
	b.p = b.p[n:]
	return n, nil
}
