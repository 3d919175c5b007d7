package app

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// Config is every setting of the service. Each has a name in the TOML file, a
// variable MOLRUN_<SECTION>_<NAME> and, the first ones, a flag.
type Config struct {
	Data       string `toml:"data"`       // directory of all that is kept
	Listen     string `toml:"listen"`     // host:port of the API
	PublicURL  string `toml:"public_url"` // what links begin with; "": as the request says
	Algorithms string `toml:"algorithms"` // folder of the site's algorithm files; "": none

	Runner struct {
		Executor     string   `toml:"executor"`      // for algorithms that name none
		CPUs         int      `toml:"cpus"`          // 0: as detected
		Memory       Bytes    `toml:"memory"`        // 0: as detected
		GPUs         GPUList  `toml:"gpus"`          // auto, or devices by index or UUID
		ReserveAfter Duration `toml:"reserve_after"` // how long a job is passed over
		KeepFailed   Duration `toml:"keep_failed"`   // work directories of failed jobs
		Grace        Duration `toml:"grace"`         // from TERM to KILL
		LogLimit     Bytes    `toml:"log_limit"`     // of one attempt
		Sandbox      string   `toml:"sandbox"`       // auto, required or off
		Cgroup       string   `toml:"cgroup"`        // below which jobs get theirs; "": the service's own
		Processes    int      `toml:"processes"`     // that a job may have at once; 0: no limit
		FileSize     Bytes    `toml:"file_size"`     // of a job's file; 0: the disk's size

		// Rules say which jobs run elsewhere. They are in the file alone.
		Rules []RuleSettings `toml:"rules"`
	} `toml:"runner"`

	Slurm SlurmSettings `toml:"slurm"`

	Links struct {
		Upload Duration `toml:"upload"`
	} `toml:"links"`

	Database struct {
		MaxSize    Bytes  `toml:"max_size"`    // 0: as the disk allows
		FileSystem string `toml:"file_system"` // local, or any
	} `toml:"database"`

	Disk struct {
		Reserve Bytes `toml:"reserve"` // what uploads and new jobs leave free; 0: 1 GiB or 5 %
	} `toml:"disk"`

	Quota     QuotaSettings     `toml:"quota"`
	Retention RetentionSettings `toml:"retention"`

	// Organizations are exceptions for some. They are in the file alone.
	Organizations map[string]OrganizationSettings `toml:"organizations"`

	Stop struct {
		Requests Duration `toml:"requests"` // how long they may take after a stop was asked for
	} `toml:"stop"`

	Limits LimitSettings `toml:"limits"`
	Rates  RateSettings  `toml:"rates"`
	Proxy  ProxySettings `toml:"proxy"`
	CORS   CORSSettings  `toml:"cors"`
	TLS    TLSSettings   `toml:"tls"`
	Audit  AuditSettings `toml:"audit"`

	Log struct {
		Level  string `toml:"level"`  // debug, info, warn, error
		Format string `toml:"format"` // auto, pretty, json
	} `toml:"log"`
}

// DefaultConfig is what holds where nothing else is said.
func DefaultConfig() Config {
	var c Config
	c.Data = "molrun-data"
	c.Listen = "127.0.0.1:8080"
	c.Runner.Executor = "local"
	c.Runner.GPUs = GPUList{"auto"}
	c.Runner.ReserveAfter = Duration(10 * time.Minute)
	c.Runner.KeepFailed = Duration(72 * time.Hour)
	c.Runner.Grace = Duration(10 * time.Second)
	c.Runner.LogLimit = 16 << 20
	c.Runner.Sandbox = "auto"
	c.Runner.Processes = 4096
	c.Links.Upload = Duration(DefaultUploadTTL)
	c.Database.FileSystem = "local"
	c.Retention.KeepLastOf = "user"
	c.Stop.Requests = Duration(20 * time.Second)
	c.setSlurmDefaults()
	c.setSecurityDefaults()
	c.Log.Level = "info"
	c.Log.Format = "auto"
	return c
}

// LoadConfig reads the file, then the variables of environ (os.Environ) over
// it. An optional file may be absent. Call Check when the flags are in, too.
func LoadConfig(file string, optional bool, environ []string) (Config, error) {
	c := DefaultConfig()
	text, err := os.ReadFile(file)
	switch {
	case optional && errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return c, fmt.Errorf("read the configuration: %w", err)
	default:
		if err := c.decode(file, text); err != nil {
			return c, err
		}
	}
	return c, c.readEnvironment(environ)
}

func (c *Config) decode(file string, text []byte) error {
	decoder := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	err := decoder.Decode(c)
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		first := unknown.Errors[0]
		line, _ := first.Position()
		name := strings.Join(first.Key(), ".")
		return Errorf(Invalid, "%s:%d: there is no setting %q%s", file, line, name, suggestion(name, c.Names()))
	}
	var broken *toml.DecodeError
	if errors.As(err, &broken) {
		line, _ := broken.Position()
		return Errorf(Invalid, "%s:%d: %s", file, line, strings.TrimPrefix(broken.Error(), "toml: "))
	}
	return err
}

func suggestion(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; see config.example.toml"
}

// notSettings are variables of the same prefix that are none of the service's
// settings: the file itself, and what tasks find in their environment.
var notSettings = []string{"MOLRUN_CONFIG", "MOLRUN_TASK", "MOLRUN_CPUS"}

func (c *Config) readEnvironment(environ []string) error {
	places := map[string]reflect.Value{}
	var names []string
	c.walk(func(name string, place reflect.Value) {
		variable := "MOLRUN_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
		places[variable] = place
		names = append(names, variable)
	})
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "MOLRUN_") || slices.Contains(notSettings, name) {
			continue
		}
		place, ok := places[name]
		if !ok {
			return Errorf(Invalid, "there is no setting for the variable %s%s", name, suggestion(name, names))
		}
		if err := set(place, value); err != nil {
			return Errorf(Invalid, "%s: %v", name, err)
		}
	}
	return nil
}

func set(place reflect.Value, text string) error {
	switch target := place.Addr().Interface().(type) {
	case *string:
		*target = text
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is no whole number", text)
		}
		*target = n
	case *bool:
		on, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		*target = on
	case encoding.TextUnmarshaler:
		return target.UnmarshalText([]byte(text))
	}
	return nil
}

// Names lists all settings as section.name.
func (c *Config) Names() []string {
	var names []string
	c.walk(func(name string, _ reflect.Value) { names = append(names, name) })
	return names
}

// Text lists all settings with their exact values, one a line.
func (c *Config) Text() string {
	var b strings.Builder
	c.walk(func(name string, place reflect.Value) { fmt.Fprintf(&b, "%s = %#v\n", name, place.Interface()) })
	return b.String()
}

// walk visits every setting but those that are in the file alone.
func (c *Config) walk(visit func(name string, place reflect.Value)) {
	top := reflect.ValueOf(c).Elem()
	for i := range top.NumField() {
		name := top.Type().Field(i).Tag.Get("toml")
		switch top.Field(i).Kind() {
		case reflect.Map:
			continue
		case reflect.Struct:
		default:
			visit(name, top.Field(i))
			continue
		}
		section := top.Field(i)
		for k := range section.NumField() {
			if _, rules := section.Field(k).Interface().([]RuleSettings); !rules {
				visit(name+"."+section.Type().Field(k).Tag.Get("toml"), section.Field(k))
			}
		}
	}
}

// Check refuses values that no service could run with.
func (c *Config) Check() error {
	checks := []settingCheck{
		{c.Data == "", "data: name a directory"},
		{c.Listen == "", "listen: give host:port, such as 127.0.0.1:8080"},
		{c.Runner.CPUs < 0, "runner.cpus: give 0 (as detected) or more"},
		{c.Runner.ReserveAfter <= 0, "runner.reserve_after: give a time above 0, such as 10m"},
		{c.Runner.KeepFailed < 0, "runner.keep_failed: give 0 or more, such as 72h"},
		{c.Runner.Grace <= 0, "runner.grace: give a time above 0, such as 10s"},
		{c.Runner.LogLimit < 64<<10, "runner.log_limit: give at least 64KiB"},
		{!slices.Contains([]string{"auto", "required", "off"}, c.Runner.Sandbox), "runner.sandbox: use auto, required or off"},
		{c.Runner.Cgroup != "" && !filepath.IsAbs(c.Runner.Cgroup), "runner.cgroup: give an absolute path, such as /sys/fs/cgroup/molrun.slice"},
		{c.Runner.Processes < 0 || c.Runner.Processes > 0 && c.Runner.Processes < 16, "runner.processes: give 0 (no limit) or at least 16"},
		{c.Runner.FileSize > 0 && c.Runner.FileSize < 1<<20, "runner.file_size: give 0 (the disk's size) or at least 1MiB"},
		{c.Links.Upload < Duration(time.Minute) || c.Links.Upload > Duration(7*24*time.Hour), "links.upload: give 1m to 7d"},
		{c.Database.MaxSize != 0 && c.Database.MaxSize < 16<<20, "database.max_size: give 0 (no bound) or at least 16MiB"},
		{!slices.Contains([]string{"local", "any"}, c.Database.FileSystem), "database.file_system: use local or any"},
		{c.Stop.Requests <= 0 || c.Stop.Requests > Duration(time.Hour), "stop.requests: give a time above 0 up to 1h, such as 20s"},
		{!slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level), "log.level: use debug, info, warn or error"},
		{!slices.Contains([]string{"auto", "pretty", "json"}, c.Log.Format), "log.format: use auto, pretty or json"},
	}
	for _, check := range append(checks, c.securityChecks()...) {
		if check.bad {
			return Errorf(Invalid, "%s", check.msg)
		}
	}
	if err := c.checkKept(); err != nil {
		return err
	}
	if err := c.checkSlurm(); err != nil {
		return err
	}
	return c.checkPublicURL()
}

func (c *Config) checkPublicURL() error {
	if c.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return Errorf(Invalid, "public_url: give an address such as https://molrun.lab.example or https://lab.example/molrun")
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	return nil
}

// Duration is a time.Duration that is written as 90s, 10m, 72h or 30d.
type Duration time.Duration

// UnmarshalText reads the text form.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 0 || n > 36500 {
			return fmt.Errorf("%q is no time; write 90s, 10m, 72h or 30d", s)
		}
		*d = Duration(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is no time; write 90s, 10m, 72h or 30d", s)
	}
	*d = Duration(parsed)
	return nil
}

// Bytes is a size that is written as 500, 64KiB, 16MiB, 2GB and so on.
type Bytes int64

var byteUnits = []struct {
	suffix string
	size   int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

// UnmarshalText reads the text form.
func (b *Bytes) UnmarshalText(text []byte) error {
	number, unit := strings.TrimSpace(string(text)), int64(1)
	for _, u := range byteUnits {
		if head, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = strings.TrimSpace(head), u.size
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n < 0 || n*float64(unit) > 1<<62 {
		return fmt.Errorf("%q is no size; write 64KiB, 16MiB, 2GiB or a number of bytes", text)
	}
	*b = Bytes(n * float64(unit))
	return nil
}

// String writes a size as people do, with one decimal in the largest unit that
// fits.
func (b Bytes) String() string {
	const units = "KMGTPE"
	if b < 1<<10 {
		return fmt.Sprintf("%d bytes", int64(b))
	}
	size, unit := float64(b)/(1<<10), 0
	for size >= 1<<10 && unit < len(units)-1 {
		size, unit = size/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %ciB", size, units[unit])
}

// GPUList names GPU devices, or is the one word auto.
type GPUList []string

// UnmarshalText reads a list with commas between, for the variable.
func (g *GPUList) UnmarshalText(text []byte) error {
	*g = GPUList{}
	for part := range strings.SplitSeq(string(text), ",") {
		if part = strings.TrimSpace(part); part != "" {
			*g = append(*g, part)
		}
	}
	return nil
}

// Auto reports whether the devices are to be detected.
func (g GPUList) Auto() bool { return len(g) == 1 && g[0] == "auto" }
