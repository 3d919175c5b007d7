package decode

import (
	"io"
	"sync"
)

// The first chunks of a body are small, and the next ones as large as all before
// them: most bodies are small, and many clients may send very little at the same
// time.
const (
	smallestChunk = 4 << 10
	largestChunk  = 256 << 10
)

// spool collects a body in chunks and reuses the large ones for later bodies.
// A buffer that doubles would leave as much garbage as the body is long, even
// for bodies that turn out to be too long.
type spool struct {
	pool   *sync.Pool
	length int64    // of the body by its own account, -1 if unknown
	chunks [][]byte // filled to their length
	size   int
}

// readFrom reads r to its end.
func (s *spool) readFrom(r io.Reader) error {
	for {
		n, err := io.ReadFull(r, s.next())
		last := &s.chunks[len(s.chunks)-1]
		*last = (*last)[:n]
		s.size += n
		if err == io.EOF || err == io.ErrUnexpectedEOF { // the end; a body cut short does not parse
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// next adds a chunk.
func (s *spool) next() []byte {
	chunk := s.chunk(len(s.chunks))
	s.chunks = append(s.chunks, chunk)
	return chunk
}

// chunk returns space for the i-th part of a body.
func (s *spool) chunk(i int) []byte {
	if i == 0 && s.length >= 0 && s.length < smallestChunk {
		return make([]byte, s.length+1) // one more, to meet the end
	}
	if length := smallestChunk << min(max(i-1, 0), 8); length < largestChunk {
		return make([]byte, length)
	}
	if pooled, ok := s.pool.Get().(*[]byte); ok {
		return *pooled
	}
	return make([]byte, largestChunk)
}

// bytes returns the body in one piece.
func (s *spool) bytes() []byte {
	if len(s.chunks) == 1 && cap(s.chunks[0]) < largestChunk {
		return s.chunks[0] // no other body gets it
	}
	body := make([]byte, 0, s.size)
	for _, chunk := range s.chunks {
		body = append(body, chunk...)
	}
	return body
}

// release hands the large chunks on to other bodies.
func (s *spool) release() {
	for _, chunk := range s.chunks {
		if cap(chunk) == largestChunk {
			chunk = chunk[:largestChunk]
			s.pool.Put(&chunk)
		}
	}
	s.chunks = nil
}
