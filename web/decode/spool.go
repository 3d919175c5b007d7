package decode

import (
	"io"
	"sync"
)

// The first chunks of a body are small, and each further chunk is as large as all chunks
// before it: most bodies are small, and many clients can send very little at the same
// time.
const (
	smallestChunk = 4 << 10
	largestChunk  = 256 << 10
)

// spool collects a body in chunks and reuses the large ones for later bodies. A doubling
// buffer would create as much garbage as the length of the body, even for bodies that
// turn out to be too long.
type spool struct {
	pool   *sync.Pool
	length int64    // declared length of the body, or -1 if unknown
	chunks [][]byte // each cut to the bytes read
	size   int
}

func (s *spool) readFrom(r io.Reader) error {
	for {
		n, err := io.ReadFull(r, s.next())
		last := &s.chunks[len(s.chunks)-1]
		*last = (*last)[:n]
		s.size += n
		if err == io.EOF || err == io.ErrUnexpectedEOF { // end of the body; a truncated body does not parse
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *spool) next() []byte {
	chunk := s.chunk(len(s.chunks))
	s.chunks = append(s.chunks, chunk)
	return chunk
}

// chunk returns a buffer for the i-th chunk of a body.
func (s *spool) chunk(i int) []byte {
	if i == 0 && s.length >= 0 && s.length < smallestChunk {
		return make([]byte, s.length+1) // one extra byte, to detect the end
	}
	if length := smallestChunk << min(max(i-1, 0), 8); length < largestChunk {
		return make([]byte, length)
	}
	if pooled, ok := s.pool.Get().(*[]byte); ok {
		return *pooled
	}
	return make([]byte, largestChunk)
}

// bytes returns the whole body.
func (s *spool) bytes() []byte {
	if len(s.chunks) == 1 && cap(s.chunks[0]) < largestChunk {
		return s.chunks[0] // not reused for other bodies
	}
	body := make([]byte, 0, s.size)
	for _, chunk := range s.chunks {
		body = append(body, chunk...)
	}
	return body
}

// release makes the large chunks available for other bodies.
func (s *spool) release() {
	for _, chunk := range s.chunks {
		if cap(chunk) == largestChunk {
			chunk = chunk[:largestChunk]
			s.pool.Put(&chunk)
		}
	}
	s.chunks = nil
}
