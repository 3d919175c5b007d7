package web

import (
	"io"
	"sync"
)

// Chunks of a body begin small, since most bodies are, and clients that send
// hardly anything are many.
const (
	smallestChunk = 4 << 10
	largestChunk  = 256 << 10
)

// pile is a body while it is read: chunks, the larger ones of which serve one
// body after the other. A buffer that doubles would leave as much garbage as
// the body is long, also for bodies that turn out to be too long.
type pile struct {
	pool   *sync.Pool
	chunks [][]byte // filled to their length
	size   int
}

// from reads to the end.
func (p *pile) from(r io.Reader) error {
	for {
		n, err := io.ReadFull(r, p.next())
		last := &p.chunks[len(p.chunks)-1]
		*last = (*last)[:n]
		p.size += n
		if err == io.EOF || err == io.ErrUnexpectedEOF { // of ReadFull alone, see readAll
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// next adds a chunk.
func (p *pile) next() []byte {
	chunk := p.chunk(len(p.chunks))
	p.chunks = append(p.chunks, chunk)
	return chunk
}

// chunk gives room for the i-th part of a body.
func (p *pile) chunk(i int) []byte {
	if length := smallestChunk << (2 * min(i, 8)); length < largestChunk {
		return make([]byte, length)
	}
	if pooled, ok := p.pool.Get().(*[]byte); ok {
		return *pooled
	}
	return make([]byte, largestChunk)
}

// joined gives the body in one piece.
func (p *pile) joined() []byte {
	body := make([]byte, 0, p.size)
	for _, chunk := range p.chunks {
		body = append(body, chunk...)
	}
	return body
}

// free gives the chunks to other bodies.
func (p *pile) free() {
	for _, chunk := range p.chunks {
		if cap(chunk) == largestChunk {
			chunk = chunk[:largestChunk]
			p.pool.Put(&chunk)
		}
	}
	p.chunks = nil
}
