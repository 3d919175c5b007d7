package store

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
)

// WriteFile replaces a file by an atomic rename.
func WriteFile(path string, content []byte) error {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if err := os.WriteFile(temporary, content, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// WriteJSON writes a value as a JSON file.
func WriteJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, append(content, '\n'))
}

// WriteCSV writes a table as a CSV file.
func WriteCSV(path string, rows [][]string) error {
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		return err
	}
	return WriteFile(path, b.Bytes())
}

// WriteMatrix writes a CSV file without header, with at(i, j) in row i and column j.
// format and digits are as in strconv.FormatFloat.
func WriteMatrix(path string, rows, columns int, format byte, digits int, at func(i, j int) float64) error {
	var b []byte
	for i := range rows {
		for j := range columns {
			if j > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendFloat(b, at(i, j), format, digits, 64)
		}
		b = append(b, '\n')
	}
	return WriteFile(path, b)
}

// Number is rounded to four decimals in JSON; NaN and infinity become null.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) { return json.Marshal(n.rounded()) }

func (n Number) rounded() *float64 {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v = math.Round(v*1e4) / 1e4
	return &v
}

// Figure is rounded to five significant digits in JSON; NaN and infinity become null.
type Figure float64

// MarshalJSON implements json.Marshaler.
func (f Figure) MarshalJSON() ([]byte, error) {
	text := f.String()
	if text == "" {
		text = "null"
	}
	return []byte(text), nil
}

// String formats a number for a table. It returns "" for NaN and infinity.
func (f Figure) String() string {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64)
	if err != nil {
		return ""
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
