package cgidp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"molrun/app/engine/cgidp/md"
)

// Layout of a DCD file: records of int32 length, payload, length again, all
// little-endian, as CHARMM and NAMD write them.
const (
	dcdHeaderSize     = 276
	dcdFramesOffset   = 8          // number of frames
	dcdLastStepOffset = 20         // last saved step
	dcdTimeUnit       = 0.04888821 // ps
	angstrom          = 10.0       // per nm
)

// trajectory is a DCD file, which is readable after every frame.
type trajectory struct {
	file   *os.File
	beads  int
	every  int64 // steps between frames
	frames int64
	buffer []byte // one frame
}

func newTrajectory(beads int, every int64) *trajectory {
	return &trajectory{beads: beads, every: every, buffer: make([]byte, dcdFrameSize(beads))}
}

// create writes a file without frames.
func (t *trajectory) create(path, title string) error {
	var err error
	if t.file, err = os.Create(path); err != nil {
		return err
	}
	_, err = t.file.WriteAt(dcdHeader(title, t.beads, t.every), 0)
	return err
}

// resume opens the file again and removes the frames after the known ones.
func (t *trajectory) resume(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	t.file = file
	size := dcdHeaderSize + t.frames*int64(dcdFrameSize(t.beads))
	if info, err := file.Stat(); err != nil || info.Size() < size {
		return errors.Join(err, fmt.Errorf("%s lacks some of its frames", filepath.Base(path)))
	}
	return errors.Join(file.Truncate(size), t.writeCounts())
}

func (t *trajectory) close() error { return errors.Join(t.file.Sync(), t.file.Close()) }

// dcdFrameSize is that of three records of float32.
func dcdFrameSize(beads int) int { return 3 * (4*beads + 8) }

func dcdHeader(title string, beads int, every int64) []byte {
	little := binary.LittleEndian
	b := make([]byte, 0, dcdHeaderSize)
	b = little.AppendUint32(b, 84)
	b = append(b, "CORD"...)
	var words [20]uint32
	words[1] = uint32(every)
	words[2] = uint32(every)
	words[9] = math.Float32bits(float32(md.TimeStep / dcdTimeUnit))
	words[19] = 24 // CHARMM version, which marks the format
	for _, w := range words {
		b = little.AppendUint32(b, w)
	}
	b = little.AppendUint32(b, 84)

	b = little.AppendUint32(b, 164)
	b = little.AppendUint32(b, 2)
	b = fmt.Appendf(b, "%-80.80s", title)
	b = fmt.Appendf(b, "%-80.80s", fmt.Sprintf("%s %s, %s, one bead per residue", engineName, engineVersion, modelName))
	b = little.AppendUint32(b, 164)

	b = little.AppendUint32(b, 4)
	b = little.AppendUint32(b, uint32(beads))
	return little.AppendUint32(b, 4)
}

// append adds a frame of positions in nm, moved by -centre. The counts in the
// header are written after the frame, so they never promise too much.
func (t *trajectory) append(x []md.Vec, centre md.Vec) error {
	little := binary.LittleEndian
	b := t.buffer[:0]
	for axis := range 3 {
		b = little.AppendUint32(b, uint32(4*t.beads))
		for i := range x {
			d := x[i].Sub(centre)
			value := [3]float64{d.X, d.Y, d.Z}[axis] * angstrom
			b = little.AppendUint32(b, math.Float32bits(float32(value)))
		}
		b = little.AppendUint32(b, uint32(4*t.beads))
	}
	if _, err := t.file.WriteAt(b, dcdHeaderSize+t.frames*int64(len(b))); err != nil {
		return err
	}
	t.frames++
	return t.writeCounts()
}

func (t *trajectory) writeCounts() error {
	var word [4]byte
	binary.LittleEndian.PutUint32(word[:], uint32(t.frames))
	if _, err := t.file.WriteAt(word[:], dcdFramesOffset); err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(word[:], uint32(t.frames*t.every))
	_, err := t.file.WriteAt(word[:], dcdLastStepOffset)
	return err
}

// readFrame returns the positions of a frame, counted from 0, in Å.
func readFrame(file *os.File, beads int, frame int64) ([]md.Vec, error) {
	size := dcdFrameSize(beads)
	b := make([]byte, size)
	if _, err := file.ReadAt(b, dcdHeaderSize+frame*int64(size)); err != nil {
		return nil, err
	}
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
