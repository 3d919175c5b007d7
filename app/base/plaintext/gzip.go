package plaintext

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
)

// MaxUnpacked limits the unpacked size of a file in bytes.
const MaxUnpacked = 1 << 30

// ErrTooLarge means that unpacked text exceeds its size limit.
var ErrTooLarge = errors.New("exceeds the size that can be read")

// ErrDamaged is the error for a damaged gzip file.
type ErrDamaged struct{ Err error }

func (e ErrDamaged) Error() string { return "is a damaged gzip file: " + e.Err.Error() }

func (e ErrDamaged) Unwrap() error { return e.Err }

// Unpack returns the content of a file, unpacked if it is in gzip format, regardless of
// its name.
func Unpack(file io.Reader) (text io.Reader, packed bool, err error) {
	in := bufio.NewReaderSize(file, 64<<10)
	if magic, _ := in.Peek(2); string(magic) != "\x1f\x8b" { // Read reports the error
		return in, false, nil
	}
	packing := &source{Reader: in}
	content, err := gzip.NewReader(packing)
	if err != nil {
		if err = packing.wrap(err); err == io.EOF { //nolint:errorlint // the head of the packing is not whole
			err = ErrDamaged{io.ErrUnexpectedEOF}
		}
		return nil, true, err
	}
	return &unpacked{content, packing, MaxUnpacked}, true, nil
}

// source records errors reading a packed file, to distinguish them from damage.
type source struct {
	*bufio.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) { return s.keep(s.Reader.Read(p)) }

func (s *source) ReadByte() (byte, error) {
	b, err := s.Reader.ReadByte()
	_, _ = s.keep(0, err)
	return b, err
}

func (s *source) keep(n int, err error) (int, error) {
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func (s *source) wrap(err error) error {
	switch {
	case s.err != nil:
		return s.err
	case err == nil || err == io.EOF: //nolint:errorlint // the end as it is, not of a file that breaks off
		return err
	}
	return ErrDamaged{err}
}

// unpacked limits the unpacked size, because a small file can unpack to any size.
type unpacked struct {
	*gzip.Reader
	packing *source
	left    int64
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if u.left -= int64(n); u.left < 0 {
		return 0, ErrTooLarge
	}
	return n, u.packing.wrap(err)
}
