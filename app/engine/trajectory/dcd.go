package trajectory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"molrun/app/engine/md"
)

// Angstrom is the number of ångströms per nm.
const Angstrom = 10.0

// Layout of a DCD file: records of int32 length, payload, length again, all
// little-endian, as written by CHARMM and NAMD.
const (
	HeaderSize        = 276        // bytes before the first frame
	dcdFramesOffset   = 8          // offset of the number of frames
	dcdLastStepOffset = 20         // offset of the last saved step
	dcdTimeUnit       = 0.04888821 // ps
)

// DCD is a trajectory file that is readable after every frame.
type DCD struct {
	Frames int64 // number in the file; set it before Resume
	file   *os.File
	beads  int
	every  int64  // steps between frames
	box    md.Vec // edges in nm, zero without a box
	buffer []byte // one frame
}

// NewDCD returns a trajectory without a file. every is the number of steps between
// frames. The box is orthorhombic, with its edges in nm, or zero for no box.
func NewDCD(beads int, every int64, box md.Vec) *DCD {
	return &DCD{beads: beads, every: every, box: box, buffer: make([]byte, FrameSize(beads, box))}
}

// Create writes a file without frames, with a title and a line of provenance.
func (t *DCD) Create(path, title, source string) error {
	var err error
	if t.file, err = os.Create(path); err != nil {
		return err
	}
	_, err = t.file.WriteAt(t.header(title, source), 0)
	return err
}

// Resume reopens the file and removes frames beyond Frames.
func (t *DCD) Resume(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	t.file = file
	size := HeaderSize + t.Frames*int64(FrameSize(t.beads, t.box))
	if info, err := file.Stat(); err != nil || info.Size() < size {
		return errors.Join(err, fmt.Errorf("%s is missing frames", filepath.Base(path)))
	}
	return errors.Join(file.Truncate(size), t.writeCounts())
}

// Sync commits the frames to stable storage.
func (t *DCD) Sync() error { return t.file.Sync() }

// Opened reports whether the file was opened.
func (t *DCD) Opened() bool { return t.file != nil }

// Close syncs and closes the file.
func (t *DCD) Close() error { return errors.Join(t.file.Sync(), t.file.Close()) }

// cellSize is the size of the unit cell record.
const cellSize = 6*8 + 8

// FrameSize returns the size of a frame: three records of float32, preceded by the unit
// cell if there is a box.
func FrameSize(beads int, box md.Vec) int {
	size := 3 * (4*beads + 8)
	if box != (md.Vec{}) {
		size += cellSize
	}
	return size
}

func (t *DCD) header(title, source string) []byte {
	little := binary.LittleEndian
	b := make([]byte, 0, HeaderSize)
	b = little.AppendUint32(b, 84)
	b = append(b, "CORD"...)
	var words [20]uint32
	words[1] = uint32(t.every)
	words[2] = uint32(t.every)
	words[9] = math.Float32bits(float32(md.TimeStep / dcdTimeUnit))
	if t.box != (md.Vec{}) {
		words[10] = 1
	}
	words[19] = 24 // CHARMM version, which identifies the format
	for _, w := range words {
		b = little.AppendUint32(b, w)
	}
	b = little.AppendUint32(b, 84)

	b = little.AppendUint32(b, 164)
	b = little.AppendUint32(b, 2)
	b = fmt.Appendf(b, "%-80.80s", title)
	b = fmt.Appendf(b, "%-80.80s", source)
	b = little.AppendUint32(b, 164)

	b = little.AppendUint32(b, 4)
	b = little.AppendUint32(b, uint32(t.beads))
	return little.AppendUint32(b, 4)
}

// Append adds a frame of positions in nm, shifted by -centre. The counts in the header
// are written after the frame, so they never exceed the frames present.
func (t *DCD) Append(x []md.Vec, centre md.Vec) error {
	little := binary.LittleEndian
	b := t.appendCell(t.buffer[:0])
	for axis := range 3 {
		b = little.AppendUint32(b, uint32(4*t.beads))
		for i := range x {
			d := x[i].Sub(centre)
			value := [3]float64{d.X, d.Y, d.Z}[axis] * Angstrom
			b = little.AppendUint32(b, math.Float32bits(float32(value)))
		}
		b = little.AppendUint32(b, uint32(4*t.beads))
	}
	if _, err := t.file.WriteAt(b, HeaderSize+t.Frames*int64(len(b))); err != nil {
		return err
	}
	t.Frames++
	return t.writeCounts()
}

func (t *DCD) writeCounts() error {
	var word [4]byte
	binary.LittleEndian.PutUint32(word[:], uint32(t.Frames))
	if _, err := t.file.WriteAt(word[:], dcdFramesOffset); err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(word[:], uint32(t.Frames*t.every))
	_, err := t.file.WriteAt(word[:], dcdLastStepOffset)
	return err
}

// appendCell writes the box edges in Å and the cosines of the angles.
func (t *DCD) appendCell(b []byte) []byte {
	if t.box == (md.Vec{}) {
		return b
	}
	little := binary.LittleEndian
	b = little.AppendUint32(b, cellSize-8)
	for _, v := range []float64{t.box.X, 0, t.box.Y, 0, 0, t.box.Z} {
		b = little.AppendUint64(b, math.Float64bits(v*Angstrom))
	}
	return little.AppendUint32(b, cellSize-8)
}

// Read returns the positions of a frame, counted from 0, in Å. The trajectory at path can
// be closed, or be written concurrently.
func (t *DCD) Read(path string, frame int64) ([]md.Vec, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	beads, size := t.beads, FrameSize(t.beads, t.box)
	b := make([]byte, size)
	if _, err := file.ReadAt(b, HeaderSize+frame*int64(size)); err != nil {
		return nil, err
	}
	b = b[size-FrameSize(beads, md.Vec{}):]
	axis := func(k, i int) float64 {
		at := k*(4*beads+8) + 4 + 4*i
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[at:])))
	}
	x := make([]md.Vec, beads)
	for i := range x {
		x[i] = md.Vec{X: axis(0, i), Y: axis(1, i), Z: axis(2, i)}
	}
	return x, nil
}
