package faults

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
)

// disk is a disk that forgets what was not flushed when its power is cut. It
// speaks NBD (the newstyle handshake, simple replies), so that a virtual
// machine can use it. What it has flushed lies in a file.
type disk struct {
	file *os.File
	size int64

	mu      sync.Mutex
	cache   map[int64][]byte // sectors that a power cut may take away, by number
	lies    bool             // it answers flushes and does not do them: for control
	meta    bool             // the last page of a commit of bbolt is in it
	writes  int              // so far
	flushes int
	dark    chan struct{} // not nil: the next flush is not done, closes this, and nothing is answered any more
	patient bool          // not the next, but the next with meta
}

var errDark = errors.New("the power is gone")

const sectorSize = 512 // what a disk writes whole or not at all

const boltMagic = 0xed0cdaed // of the page that a commit of bbolt writes last, 16 bytes into it

func openDisk(t *testing.T, path string) *disk {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	must(t, err)
	return &disk{file: f, size: info.Size(), cache: map[int64][]byte{}}
}

// serve answers one machine until its connection ends.
func (d *disk) serve(conn net.Conn) error {
	defer conn.Close()
	if err := d.greet(conn); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	for {
		err := d.answer(conn)
		if errors.Is(err, errDark) {
			_, _ = io.Copy(io.Discard, conn) // until the machine is off
			return nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// The numbers of the protocol that are used here.
const (
	nbdMagic       = 0x4e42444d41474943 // NBDMAGIC
	nbdOption      = 0x49484156454f5054 // IHAVEOPT
	nbdOptionReply = 0x0003e889045565a9
	nbdRequest     = 0x25609513
	nbdReply       = 0x67446698
	nbdFlags       = 1 | 1<<2 | 1<<3 // there are flags: flush, force unit access
	nbdOptionGo    = 7
	nbdRepAck      = 1
	nbdRepInfo     = 3
	nbdRepUnknown  = 1<<31 + 1

	nbdRead       = 0
	nbdWrite      = 1
	nbdDisconnect = 2
	nbdFlush      = 3
)

// greet agrees on the one export there is.
func (d *disk) greet(conn io.ReadWriter) error {
	if err := send(conn, uint64(nbdMagic), uint64(nbdOption), uint16(1)); err != nil {
		return err
	}
	var flags uint32
	if err := binary.Read(conn, binary.BigEndian, &flags); err != nil {
		return err
	}
	for {
		var option struct {
			Magic        uint64
			Option, Size uint32
		}
		if err := binary.Read(conn, binary.BigEndian, &option); err != nil {
			return err
		}
		if option.Magic != nbdOption || option.Size > 1<<16 {
			return fmt.Errorf("option %+v", option)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(option.Size)); err != nil {
			return err
		}
		if option.Option != nbdOptionGo {
			if err := send(conn, uint64(nbdOptionReply), option.Option, uint32(nbdRepUnknown), uint32(0)); err != nil {
				return err
			}
			continue
		}
		return send(conn,
			uint64(nbdOptionReply), option.Option, uint32(nbdRepInfo), uint32(12), uint16(0), uint64(d.size), uint16(nbdFlags),
			uint64(nbdOptionReply), option.Option, uint32(nbdRepAck), uint32(0))
	}
}

// send writes numbers as the protocol does.
func send(w io.Writer, values ...any) error {
	var message []byte
	for _, v := range values {
		var err error
		if message, err = binary.Append(message, binary.BigEndian, v); err != nil {
			return err
		}
	}
	_, err := w.Write(message)
	return err
}

// answer does what one request asks for.
func (d *disk) answer(conn io.ReadWriter) error {
	var r struct {
		Magic       uint32
		Flags, Kind uint16
		Handle      uint64
		Offset      int64
		Length      uint32
	}
	if err := binary.Read(conn, binary.BigEndian, &r); err != nil {
		return err
	}
	if r.Magic != nbdRequest || r.Offset%sectorSize != 0 || r.Length%sectorSize != 0 || r.Length > 64<<20 {
		return fmt.Errorf("request %+v", r)
	}
	done := []any{uint32(nbdReply), uint32(0), r.Handle}
	data := make([]byte, r.Length)
	var err error
	switch r.Kind {
	case nbdRead:
		if err = d.read(data, r.Offset/sectorSize); err == nil {
			done = append(done, data)
		}
	case nbdWrite:
		if _, err = io.ReadFull(conn, data); err == nil {
			d.write(data, r.Offset/sectorSize)
		}
		if err == nil && r.Flags&1 != 0 {
			err = d.flush()
		}
	case nbdFlush:
		err = d.flush()
	case nbdDisconnect:
		return io.EOF
	default:
		return fmt.Errorf("request %+v", r)
	}
	if err != nil {
		return err
	}
	return send(conn, done...)
}

func (d *disk) read(data []byte, sector int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.file.ReadAt(data, sector*sectorSize); err != nil {
		return err
	}
	for at := int64(0); at*sectorSize < int64(len(data)); at++ {
		if cached := d.cache[sector+at]; cached != nil {
			copy(data[at*sectorSize:], cached)
		}
	}
	return nil
}

func (d *disk) write(data []byte, sector int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	for at := int64(0); at*sectorSize < int64(len(data)); at++ {
		one := data[at*sectorSize : (at+1)*sectorSize]
		d.cache[sector+at] = one
		d.meta = d.meta || binary.LittleEndian.Uint32(one[16:]) == boltMagic
	}
}

func (d *disk) flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flushes++
	if d.dark != nil && (d.meta || !d.patient) {
		close(d.dark)
		d.dark = nil
		return errDark
	}
	if d.lies {
		return nil
	}
	return d.settle(func() bool { return true })
}

// settle writes the cached sectors that keep likes and forgets the others.
func (d *disk) settle(keep func() bool) error {
	for sector, data := range d.cache {
		if !keep() {
			continue
		}
		if _, err := d.file.WriteAt(data, sector*sectorSize); err != nil {
			return err
		}
	}
	clear(d.cache)
	d.meta = false
	return nil
}

// darken makes the power go at the next flush, when most is at stake, or at
// the next of those that end a commit of the database. The channel is closed
// then.
func (d *disk) darken(commit bool) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dark, d.patient = make(chan struct{}), commit
	return d.dark
}

// cut takes the power away: of what was not flushed nothing is left, or all,
// or any part, for a disk may write in any order. It tells how many sectors
// were at stake.
func (d *disk) cut(r *rand.Rand) (cached int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cached, d.dark = len(d.cache), nil
	share := []float64{0, 0.5, 1}[r.IntN(3)]
	if d.lies {
		share = 0
	}
	return cached, d.settle(func() bool { return r.Float64() < share })
}
