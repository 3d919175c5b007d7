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

	"molrun/app/test/must"
)

// disk simulates a disk that loses unflushed writes in a power failure. It is an NBD
// server (newstyle handshake, simple replies), so that a virtual machine can use it.
// Flushed sectors are stored in a file.
type disk struct {
	file *os.File
	size int64

	mu        sync.Mutex
	cache     map[int64][]byte // sectors by number that are not flushed and can be lost
	lies      bool             // acknowledges flushes without performing them, to check that the tests detect the loss
	meta      bool             // the cache contains a bbolt meta page, which is the last page of a commit
	writes    int
	flushes   int
	powerCut  chan struct{} // if not nil, the next flush closes it instead of writing, and the disk stops responding
	awaitMeta bool          // only a flush with a meta page triggers powerCut
}

var errPowerCut = errors.New("power cut")

const sectorSize = 512 // a disk writes sectors atomically

const boltMagic = 0xed0cdaed // in bbolt's meta pages, at offset 16

func openDisk(t *testing.T, path string) *disk {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must.OK(t, err)
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	must.OK(t, err)
	return &disk{file: f, size: info.Size(), cache: map[int64][]byte{}}
}

// serve serves one virtual machine until its connection ends.
func (d *disk) serve(conn net.Conn) error {
	defer conn.Close()
	if err := d.greet(conn); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	for {
		err := d.answer(conn)
		if errors.Is(err, errPowerCut) {
			_, _ = io.Copy(io.Discard, conn) // until the machine is powered off
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

// Constants of the NBD protocol.
const (
	nbdMagic       = 0x4e42444d41474943 // NBDMAGIC
	nbdOption      = 0x49484156454f5054 // IHAVEOPT
	nbdOptionReply = 0x0003e889045565a9
	nbdRequest     = 0x25609513
	nbdReply       = 0x67446698
	nbdFlags       = 1 | 1<<2 | 1<<3 // has flags, flush, force unit access
	nbdOptionGo    = 7
	nbdRepAck      = 1
	nbdRepInfo     = 3
	nbdRepUnknown  = 1<<31 + 1

	nbdRead       = 0
	nbdWrite      = 1
	nbdDisconnect = 2
	nbdFlush      = 3
)

// greet performs the handshake; there is only one export.
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

// send writes integers in network byte order.
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

// answer handles one request.
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
	if d.powerCut != nil && (d.meta || !d.awaitMeta) {
		close(d.powerCut)
		d.powerCut = nil
		return errPowerCut
	}
	if d.lies {
		return nil
	}
	return d.writeBack(func() bool { return true })
}

// writeBack writes the cached sectors for which keep returns true and drops the rest.
func (d *disk) writeBack(keep func() bool) error {
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

// cutAtFlush cuts the power at the next flush, when the cache is fullest, or, with
// commit, at the next flush that completes a database commit. The returned channel is
// closed at that point.
func (d *disk) cutAtFlush(commit bool) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.powerCut, d.awaitMeta = make(chan struct{}), commit
	return d.powerCut
}

// cut cuts the power. Either all unflushed sectors are lost, or all are written, or a
// random selection is written, because a disk can write in any order. It returns the
// number of unflushed sectors.
func (d *disk) cut(r *rand.Rand) (cached int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cached, d.powerCut = len(d.cache), nil
	share := []float64{0, 0.5, 1}[r.IntN(3)]
	if d.lies {
		share = 0
	}
	return cached, d.writeBack(func() bool { return r.Float64() < share })
}
