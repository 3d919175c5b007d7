package cgidp

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A checkpoint is a line that names its format, the SHA-256 of the settings, an
// archive of the chain, and a CRC-32 of all that.
const (
	checkpointMark    = "molrun cg-idp checkpoint 1\n"
	checkpointFile    = "checkpoint.bin"
	oldCheckpointFile = "checkpoint.old.bin" // the one before, in case of damage
)

func newCheckpoint(settingsHash []byte, state func(*archive)) []byte {
	a := &archive{bytes: append([]byte(checkpointMark), settingsHash...)}
	state(a)
	return binary.LittleEndian.AppendUint32(a.bytes, crc32.ChecksumIEEE(a.bytes))
}

// openCheckpoint checks what surrounds the archive.
func openCheckpoint(content, settingsHash []byte) (*archive, error) {
	body, ok := bytes.CutPrefix(content, []byte(checkpointMark))
	if !ok || len(body) < sha256.Size+4 {
		return nil, errors.New("it is no checkpoint of this version")
	}
	end := len(content) - 4
	if crc32.ChecksumIEEE(content[:end]) != binary.LittleEndian.Uint32(content[end:]) {
		return nil, errors.New("it is damaged")
	}
	if !bytes.Equal(body[:sha256.Size], settingsHash) {
		return nil, errors.New("it belongs to other settings")
	}
	return &archive{bytes: body[sha256.Size : len(body)-4], reading: true}, nil
}

// settingsHash distinguishes settings that give different results. The number of
// cores makes no difference, and warnings follow from the rest.
func (s *system) settingsHash() []byte {
	settings := *s.settings
	settings.Cores = 0
	settings.Sequences = slices.Clone(settings.Sequences)
	for i := range settings.Sequences {
		settings.Sequences[i].Warnings = nil
	}
	text, err := json.Marshal([]any{engineVersion, s.index, settings})
	if err != nil {
		panic(err) // numbers and strings
	}
	hash := sha256.Sum256(text)
	return hash[:]
}

// writeCheckpoint makes content the checkpoint in a folder, and the last one the
// old one.
func writeCheckpoint(folder string, content []byte) error {
	current := filepath.Join(folder, checkpointFile)
	temporary, err := writeTemporary(current, content)
	if err != nil {
		return err
	}
	err = os.Rename(current, filepath.Join(folder, oldCheckpointFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(temporary, current); err != nil {
		return err
	}
	return syncFolder(folder)
}

func removeCheckpoints(folder string) error {
	for _, name := range []string{oldCheckpointFile, checkpointFile} {
		if err := os.Remove(filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
