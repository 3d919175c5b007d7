package store

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
)

// A checkpoint is a mark, which is a line that names its format, the SHA-256 of the
// settings, an archive of the state, and a CRC-32 of all that.
const (
	CheckpointFile    = "checkpoint.bin"
	OldCheckpointFile = "checkpoint.old.bin" // the one before, in case of damage
)

// NewCheckpoint returns the content of a checkpoint.
func NewCheckpoint(mark string, settingsHash []byte, state func(*Archive)) []byte {
	a := &Archive{bytes: append([]byte(mark), settingsHash...)}
	state(a)
	return binary.LittleEndian.AppendUint32(a.bytes, crc32.ChecksumIEEE(a.bytes))
}

// OpenCheckpoint checks what surrounds the archive.
func OpenCheckpoint(mark string, content, settingsHash []byte) (*Archive, error) {
	body, ok := bytes.CutPrefix(content, []byte(mark))
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
	return &Archive{bytes: body[sha256.Size : len(body)-4], reading: true}, nil
}

// WriteCheckpoint makes content the checkpoint in a folder, and the last one the
// old one.
func WriteCheckpoint(folder string, content []byte) error {
	current := filepath.Join(folder, CheckpointFile)
	temporary, err := writeTemporary(current, content)
	if err != nil {
		return err
	}
	err = os.Rename(current, filepath.Join(folder, OldCheckpointFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(temporary, current); err != nil {
		return err
	}
	return syncFolder(folder)
}

// RemoveCheckpoints removes both.
func RemoveCheckpoints(folder string) error {
	for _, name := range []string{OldCheckpointFile, CheckpointFile} {
		if err := os.Remove(filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// SettingsHash is the hash of what distinguishes settings that give different results.
func SettingsHash(settings ...any) []byte {
	text, err := json.Marshal(settings)
	if err != nil {
		panic(err) // numbers and strings
	}
	hash := sha256.Sum256(text)
	return hash[:]
}
