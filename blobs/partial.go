package blobs

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"time"

	"molrun/app"
	"molrun/app/base/durable"
	"molrun/app/job/upload"
)

// saveInterval limits how long slowly arriving bytes stay unsaved, and so how many a
// crash can lose.
const saveInterval = 30 * time.Second

// partial is the file of a resumable upload, open for the next part. Its bytes up to
// state.Offset are durable and recorded, together with the state of their digest. Any
// bytes after that are truncated when the file is reopened.
type partial struct {
	dir       *Dir
	svc       Service
	id        app.UploadID
	file      *os.File
	first     app.Partial // state at the start of the request
	state     app.Partial // state recorded now
	size      int64
	digest    hash.Hash
	crc       uint32
	saved     time.Time
	announced bool // the client knows of more than first
	claim     claim
	quota     *upload.Reservation
}

func partialName(id app.UploadID, generation int) string {
	return path.Join(partialDir, string(id)+"."+strconv.Itoa(generation))
}

// beginPartial creates the file of a resumable upload, replacing any earlier one. A known
// length is reserved once the quota allows it, so that a full disk is detected before the
// bytes are sent.
func (h *Links) beginPartial(ctx context.Context, id app.UploadID, t part) (*partial, error) {
	generation, quota, err := h.svc.BeginPart(ctx, id, max(t.length, t.size), 0)
	if err != nil {
		return nil, err
	}
	state := app.Partial{Generation: generation, Expected: t.expected}
	if t.length >= 0 {
		state.Length = &t.length
	}
	p := &partial{dir: h.dir, svc: h.svc, id: id, digest: sha256.New(), saved: time.Now(), claim: claim{dir: h.dir}, quota: quota}
	if state.Digest, err = p.digest.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
		return nil, errors.Join(fmt.Errorf("begin partial upload: %w", err), p.close())
	}
	p.first, p.state = state, state
	if err = p.create(t); err == nil {
		err = h.svc.BeginPartial(ctx, id, &state)
	}
	if err != nil {
		return nil, errors.Join(err, p.close(), h.dir.RemovePartial(id, generation))
	}
	p.quota.Recorded(p.state.Reserved())
	return p, nil
}

// create makes the file and its name durable.
func (p *partial) create(t part) (err error) {
	if p.file, err = p.dir.root.OpenFile(partialName(p.id, p.state.Generation), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return diskError("begin partial upload", err)
	}
	if err := p.reserve(t); err != nil {
		return err
	}
	return diskError("begin partial upload", durable.SyncDir(p.dir.root, partialDir))
}

// reserve reserves space for the whole file if its length is known, and otherwise for the
// part.
func (p *partial) reserve(t part) error {
	if t.length < 0 {
		return p.claim.promise(max(t.size, 0))
	}
	return p.claim.reserve(p.file, p.state.Offset, t.length)
}

// close closes the file and releases the request's reservations.
func (p *partial) close() (err error) {
	if p.file != nil {
		err = p.file.Close()
	}
	p.claim.release()
	p.quota.Release()
	return err
}

// openPartial opens the existing file for another part.
func (h *Links) openPartial(ctx context.Context, u *app.Upload, t part) (*partial, error) {
	p := &partial{dir: h.dir, svc: h.svc, id: u.ID, first: *u.Partial, state: *u.Partial, size: u.Partial.Offset, digest: sha256.New(), crc: u.Partial.CRC32, saved: time.Now(), claim: claim{dir: h.dir}}
	if err := p.digest.(encoding.BinaryUnmarshaler).UnmarshalBinary(p.state.Digest); err != nil {
		return nil, fmt.Errorf("resume the digest of upload %s: %w", u.ID, err)
	}
	var err error
	if _, p.quota, err = h.svc.BeginPart(ctx, p.id, max(t.length, p.size+t.size), p.state.Reserved()); err != nil {
		return nil, err
	}
	if p.file, err = h.dir.root.OpenFile(partialName(p.id, p.state.Generation), os.O_RDWR, 0); err != nil {
		return nil, errors.Join(diskError("open partial upload", err), p.close())
	}
	if err = p.truncateUnrecorded(); err == nil && p.state.Length == nil {
		err = p.reserve(t)
	}
	if err == nil {
		err = p.recordFileInfo(ctx, t)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// recordFileInfo records the length and digests of the whole file if this part is the first to
// give them.
func (p *partial) recordFileInfo(ctx context.Context, t part) error {
	if t.expected == nil && (t.length < 0 || p.state.Length != nil) {
		return nil
	}
	if t.length >= 0 {
		p.first.Length = &t.length
	}
	if t.expected != nil {
		p.first.Expected = t.expected
	}
	if err := p.svc.SavePartial(ctx, p.id, &p.first); err != nil {
		return errors.Join(err, p.truncateUnrecorded()) // the file keeps its previous content
	}
	p.state = p.first
	p.quota.Recorded(p.state.Reserved())
	return nil
}

// checkPartial returns the partial upload in a record, or nil if there is none. If its
// file is lost, for example after a restore from a backup, checkPartial removes it from
// the record.
func (h *Links) checkPartial(ctx context.Context, u *app.Upload) (*app.Partial, error) {
	if u.Partial == nil {
		return nil, nil
	}
	info, err := h.dir.root.Lstat(partialName(u.ID, u.Partial.Generation))
	if err == nil && info.Mode().IsRegular() && info.Size() >= u.Partial.Offset {
		return u.Partial, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open partial upload: %w", err)
	}
	h.dir.options.Log.Warn().Str("id", string(u.ID)).Int64("offset", u.Partial.Offset).Msg("lost the file of a partial upload; the client must start again")
	return nil, h.svc.DropPartial(ctx, u.ID)
}

// truncateUnrecorded removes the bytes after the recorded ones.
func (p *partial) truncateUnrecorded() error {
	p.size = p.state.Offset
	if p.state.Length != nil {
		if err := p.claim.reserve(p.file, p.size, *p.state.Length); err != nil {
			return err
		}
	} else if err := p.file.Truncate(p.size); err != nil {
		return diskError("truncate partial upload", err)
	}
	_, err := p.file.Seek(p.size, io.SeekStart)
	return diskError("truncate partial upload", err)
}

// Write appends to the file and its digest.
func (p *partial) Write(b []byte) (int, error) {
	if len(b) == 0 { // without this, an empty write would look like unsynced bytes
		return 0, nil
	}
	n, err := p.claim.writeBlocks(p.file, b)
	p.digest.Write(b[:n])
	p.crc = crc32.Update(p.crc, crc32.IEEETable, b[:n])
	p.size += int64(n)
	return n, err
}

// due reports whether bytes should be saved now, to limit the loss in a crash.
func (p *partial) due() bool {
	return p.size-p.state.Offset >= p.dir.options.Block || p.size > p.state.Offset && time.Since(p.saved) > saveInterval
}

// saveProgress makes the bytes durable and records them, even if the client has
// disconnected.
func (p *partial) saveProgress(ctx context.Context) error {
	if p.size == p.state.Offset {
		return nil
	}
	if err := p.file.Sync(); err != nil {
		return diskError("store part", err)
	}
	next := p.state
	next.Offset, next.CRC32 = p.size, p.crc
	var err error
	if next.Digest, err = p.digest.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
		return fmt.Errorf("store part: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	if err := p.svc.SavePartial(ctx, p.id, &next); err != nil {
		return err
	}
	p.state, p.saved = next, time.Now()
	p.quota.Recorded(p.state.Reserved())
	return nil
}

// discardUnannounced discards the bytes added by the request, unless they were announced
// to the client.
func (p *partial) discardUnannounced(ctx context.Context) error {
	if p.state.Offset > p.first.Offset && !p.announced {
		if err := p.svc.SavePartial(ctx, p.id, &p.first); err != nil {
			return err
		}
		p.state = p.first
	}
	return p.truncateUnrecorded()
}

// sum returns the hex SHA-256 of the bytes written.
func (p *partial) sum() string { return hex.EncodeToString(p.digest.Sum(nil)) }

// checkDigests compares the whole file with the digests declared by the client.
func (p *partial) checkDigests() error {
	if want := p.state.Expected["sha-256"]; want != nil && string(want) != string(p.digest.Sum(nil)) {
		return digestMismatch("Repr-Digest", "sha-256", p.digest.Sum(nil))
	}
	want := p.state.Expected["sha-512"]
	if want == nil {
		return nil
	}
	whole := sha512.New()
	if _, err := io.Copy(whole, io.NewSectionReader(p.file, 0, p.size)); err != nil {
		return fmt.Errorf("read partial upload: %w", err)
	}
	if found := whole.Sum(nil); string(want) != string(found) {
		return digestMismatch("Repr-Digest", "sha-512", found)
	}
	return nil
}

// publish makes the whole file durable under the name of a generation, which it returns.
// The partial name remains until the record names that generation.
func (p *partial) publish() (generation int, err error) {
	if err := p.file.Sync(); err != nil {
		return 0, diskError("store file", err)
	}
	return p.dir.publish(partialName(p.id, p.state.Generation), p.id, p.state.Generation)
}
