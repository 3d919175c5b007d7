package blobs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/upload"
)

// bufferSize is the size of the chunks in which an upload is written.
const bufferSize = 256 << 10

// finishTime limits the time to record a received file.
const finishTime = time.Minute

// putUpload responds to a PUT once its body is stored and recorded.
func (h *Links) putUpload(s *sender, r *http.Request, l app.Link, a *access) error {
	if err := checkPut(r, l.ContentType); err != nil {
		return err
	}
	f, err := h.store(s, r, app.UploadID(l.ID), a)
	if err != nil {
		return err
	}
	return answerReceived(s, f)
}

// answerReceived confirms that all bytes of a file are stored.
func answerReceived(s *sender, f app.StoredFile) error {
	body, err := json.Marshal(struct {
		Status string `json:"status"`
		Size   int64  `json:"size"`
		SHA256 string `json:"sha256"`
	}{"received", f.Size, f.SHA256})
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	s.Header().Set("Content-Type", "application/json")
	s.Header().Set("ETag", `"`+f.SHA256+`"`)
	s.extendDeadline()
	_, _ = s.Write(append(body, '\n')) // s.err keeps the client's error
	return nil
}

// checkPut rejects a request whose headers do not describe the plain file that the link
// expects.
func checkPut(r *http.Request, want string) error {
	given := r.Header.Values("Content-Type")
	if len(given) == 0 || len(given) == 1 && sameType(given[0], want) {
		return checkEncoding(r)
	}
	return fault.Errorf(fault.LinkInvalid, "This link accepts only Content-Type %s, but the request has %s; send the accepted type or omit the header.%s",
		want, strings.Join(given, ", "), typeHint(given))
}

// typeHint explains a media type that a client sends by default.
func typeHint(given []string) string {
	if !slices.Contains(given, "application/x-www-form-urlencoded") {
		return ""
	}
	return " curl sends this type with -d and --data-binary: use -T FILE, which sends none, or add -H 'Content-Type:'. " +
		"Don't use -d, which drops the line breaks of the file."
}

func checkEncoding(r *http.Request) error {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return fault.Errorf(fault.UnsupportedMediaType, "Send the file unencoded, without Content-Encoding.")
	}
	return nil
}

// sameType compares media types, ignoring case and spaces.
func sameType(a, b string) bool {
	aType, aParams, aErr := mime.ParseMediaType(a)
	bType, bParams, bErr := mime.ParseMediaType(b)
	if err := errors.Join(aErr, bErr); err != nil {
		return a == b
	}
	return mime.FormatMediaType(aType, aParams) == mime.FormatMediaType(bType, bParams)
}

// store receives a request's body, publishes it as a new generation of an upload and
// records it.
func (h *Links) store(s *sender, r *http.Request, id app.UploadID, a *access) (f app.StoredFile, err error) {
	generation, quota, err := h.svc.BeginUpload(r.Context(), id, r.ContentLength)
	if err != nil {
		return f, err
	}
	defer quota.Release()
	in, err := h.dir.receive(r.ContentLength)
	if err != nil {
		return f, err
	}
	defer func() {
		a.received = in.size
		if err := in.discard(); err != nil {
			h.dir.options.Log.Error().Err(err).Msg("could not remove a temporary file")
		}
	}()
	whole, err := expect(r.Header, "Content-Digest", "Repr-Digest") // the body is the whole file
	if err != nil {
		return f, err
	}
	in.digest = whole.on(in.digest)
	if err := h.copyBody(s, r, in, quota); err != nil {
		return f, err
	}
	if err := whole.check(in.digest.Sum(nil)); err != nil {
		return f, err
	}
	generation, err = in.publish(id, generation)
	if err != nil {
		return f, err
	}
	f = app.StoredFile{Generation: generation, Size: in.size, SHA256: in.sum(), CRC32: in.crc}
	return f, h.finish(r.Context(), id, f)
}

// incoming is a file being received. It has a temporary name until publish links it to
// the name of a generation.
type incoming struct {
	dir    *Dir
	file   *os.File // nil once closed
	name   string   // temporary name in tmpDir
	claim  claim
	size   int64
	digest hash.Hash
	crc    uint32
}

// receive creates a file. It reserves a known length, at least 0, so that a full disk is
// detected before the bytes are sent. The caller must call discard.
func (d *Dir) receive(length int64) (*incoming, error) {
	name := d.run + "." + rand.Text()
	f, err := d.tmp.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, diskError("receive file", err)
	}
	in := &incoming{dir: d, file: f, name: name, claim: claim{dir: d}, digest: sha256.New()}
	if err := in.claim.reserve(f, 0, max(length, 0)); err != nil {
		return nil, errors.Join(err, in.discard())
	}
	return in, nil
}

// copyBody copies the request's body within the quota and checks its length. While it
// receives and writes one buffer, the previous one is hashed.
func (h *Links) copyBody(s *sender, r *http.Request, in *incoming, quota *upload.Reservation) error {
	var buffers [2]*[]byte
	for k := range buffers {
		buffers[k] = h.buffers.Get().(*[]byte)
		defer h.buffers.Put(buffers[k])
	}
	add, summed := in.summing()
	defer summed()
	var readErr error
	for k := 0; readErr == nil; k = 1 - k {
		var n int
		n, readErr = fillBuffer(s, r.Body, *buffers[k])
		if err := quota.Grow(r.Context(), in.size+int64(n)); err != nil {
			return err
		}
		chunk := (*buffers[k])[:n]
		if err := in.writeChunk(chunk); err != nil {
			return err
		}
		add(chunk)
	}
	if readErr != io.EOF {
		return abortError{fmt.Errorf("receive body: %w", readErr)}
	}
	s.endReading()
	if r.ContentLength >= 0 && in.size != r.ContentLength {
		return abortError{fmt.Errorf("received %d bytes of %d", in.size, r.ContentLength)}
	}
	return nil
}

// fillBuffer reads until the buffer is full or the body ends. The idle timeout of a
// transfer applies to each read.
func fillBuffer(s *sender, body io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		s.extendReadDeadline()
		var more int
		more, err = body.Read(buffer[n:])
		n += more
	}
	return n, err
}

// writeChunk appends to the file.
func (in *incoming) writeChunk(p []byte) error {
	n, err := in.claim.writeBlocks(in.file, p)
	in.size += int64(n)
	return err
}

// summing starts computing the digest and the checksum concurrently with receiving. add
// waits until the previous chunk is hashed, then passes on its chunk, which must not
// change until the next call returns. end waits for the last chunk; the sums are final
// only after that.
func (in *incoming) summing() (add func(chunk []byte), end func()) {
	chunks, ended := make(chan []byte), make(chan struct{})
	go func() {
		defer close(ended)
		for chunk := range chunks {
			in.digest.Write(chunk)
			in.crc = crc32.Update(in.crc, crc32.IEEETable, chunk)
		}
	}()
	return func(chunk []byte) { chunks <- chunk }, func() {
		close(chunks)
		<-ended
	}
}

// sum returns the hex SHA-256 of the bytes written.
func (in *incoming) sum() string { return hex.EncodeToString(in.digest.Sum(nil)) }

// publish makes the file durable under the first unused generation, starting at the given
// one, and returns that generation. No record names it yet.
func (in *incoming) publish(id app.UploadID, generation int) (int, error) {
	err := errors.Join(in.file.Sync(), in.file.Close())
	in.file = nil
	if err != nil {
		return 0, diskError("store file", err)
	}
	return in.dir.publish(path.Join(tmpDir, in.name), id, generation)
}

// publish links a durable file to the name of a generation.
func (d *Dir) publish(name string, id app.UploadID, generation int) (int, error) {
	shard, err := d.openShard(shardOf(id))
	if err != nil {
		return 0, diskError("store file", err)
	}
	defer shard.close()
	generation, err = d.link(name, id, generation)
	if err == nil {
		err = shard.syncOrRemove(path.Base(uploadName(id, generation)))
	}
	return generation, diskError("store file", err)
}

// link links the file to its final name. A link, unlike a rename, never replaces a file,
// so two files cannot get the same generation. It skips generations left over by a crash.
// The caller removes the temporary name.
func (d *Dir) link(name string, id app.UploadID, generation int) (int, error) {
	for range 1000 {
		err := d.root.Link(name, uploadName(id, generation))
		if !errors.Is(err, fs.ErrExist) {
			return generation, err
		}
		generation++
	}
	return 0, fmt.Errorf("upload %s has too many unrecorded generations", id)
}

// finish records the stored file, even if the client has disconnected, since all bytes
// have arrived. It removes the generation that is no longer named by a record: the
// replaced one, or the new one if the service rejects it. After any other error the new
// one is left to CollectGarbage, because a record might name it.
func (h *Links) finish(ctx context.Context, id app.UploadID, f app.StoredFile) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	unnamed, err := h.svc.FinishUpload(ctx, id, f)
	if err != nil {
		unnamed = 0
		if fault.CodeOf(err) != fault.Internal {
			unnamed = f.Generation
		}
	}
	if unnamed > 0 {
		if err := h.dir.RemoveUpload(id, unnamed); err != nil {
			h.dir.options.Log.Error().Err(err).Str("id", string(id)).Msg("could not remove an upload")
		}
	}
	return err
}

// discard removes the temporary name, and with it the bytes unless they were published.
// It needs no new file descriptor.
func (in *incoming) discard() error {
	var err error
	if in.file != nil {
		err = in.file.Close()
		in.file = nil
	}
	err = errors.Join(err, in.dir.tmp.Remove(in.name))
	in.claim.release()
	return err
}
