package tables

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"time"
)

// formatOf returns the usual format of a number.
func formatOf(v float64) byte {
	if m := math.Abs(v); m != 0 && (m < 1e-6 || m >= 1e15) {
		return 'e'
	}
	return 'f'
}

// date returns the date or time of day for a number in a workbook: days since the end of
// 1899, or since 1904. Excel has a February 29, 1900, so earlier dates are uncertain.
func (b *workbook) date(days float64) (string, error) {
	const first, last = 61, 2_958_466
	seconds := math.Round(days * 24 * 60 * 60)
	if days >= 0 && days < 1 {
		return time.Unix(int64(seconds), 0).UTC().Format(time.TimeOnly), nil
	}
	if days += float64(b.from); days < first || days >= last {
		return "", errors.New("is not a readable date: format it as text")
	}
	at := time.Date(1899, 12, 30+b.from, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
	if seconds == math.Trunc(seconds/86400)*86400 {
		return at.Format(time.DateOnly), nil
	}
	return at.Format("2006-01-02T15:04:05"), nil
}

// notOfDate matches what a format code can contain in addition to the letters for parts
// of a date: literal text, colors and conditions (but not [h], [m] and [s]), and the word
// General.
var notOfDate = regexp.MustCompile(`(?i)"[^"]*"|\\.|_.|\*.|\[[^\]]*[^hms\]][^\]]*\]|general`)

// isDate reports whether a format shows dates or times.
func isDate(id int, code string) bool {
	switch {
	case code != "":
		return strings.ContainsAny(strings.ToLower(notOfDate.ReplaceAllString(code, "")), "ymdhs")
	case id >= 14 && id <= 22, id >= 27 && id <= 36, id >= 45 && id <= 47, id >= 50 && id <= 58:
		return true
	}
	return false
}

// readStyles determines which styles are date formats.
func (b *workbook) readStyles() error {
	var styles struct {
		Formats []struct {
			ID   int    `xml:"numFmtId,attr"`
			Code string `xml:"formatCode,attr"`
		} `xml:"numFmts>numFmt"`
		Cells []struct {
			Format int `xml:"numFmtId,attr"`
		} `xml:"cellXfs>xf"`
	}
	if err := b.decode("xl/styles.xml", &styles); err != nil {
		return err
	}
	codes := map[int]string{}
	for _, f := range styles.Formats {
		codes[f.ID] = f.Code
	}
	for _, c := range styles.Cells {
		b.formats = append(b.formats, isDate(c.Format, codes[c.Format]))
	}
	return nil
}
