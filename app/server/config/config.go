// Package config defines the settings of the service: their names, defaults and checks.
package config

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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
	"molrun/app/base/unit"
)

// Config holds every setting of the service. Each has a name in the TOML file and an
// environment variable MOLRUN_<SECTION>_<NAME>. The first ones also have a flag.
type Config struct {
	Data       string   `toml:"data"`       // data directory
	Listen     string   `toml:"listen"`     // host:port of the API
	PublicURL  string   `toml:"public_url"` // prefix of links; "" derives it from the request
	Algorithms string   `toml:"algorithms"` // directory of the site's algorithm files; "" means none
	Catalogue  NameList `toml:"catalogue"`  // types of the built-in catalogue: all, none or names
	Compat     bool     `toml:"compat"`     // serve the API of a hosted service at /compat/

	Runner struct {
		Executor     string        `toml:"executor"`      // default for algorithms that name none
		CPUs         int           `toml:"cpus"`          // 0 means as many as detected
		Memory       unit.Bytes    `toml:"memory"`        // 0 means as much as detected
		GPUs         GPUList       `toml:"gpus"`          // auto, or devices by index or UUID
		PinCPUs      bool          `toml:"pin_cpus"`      // pin each job to its own CPUs
		ReserveAfter unit.Duration `toml:"reserve_after"` // how long a job can be passed over
		KeepFailed   unit.Duration `toml:"keep_failed"`   // how long to keep work directories of failed jobs
		Grace        unit.Duration `toml:"grace"`         // time from SIGTERM to SIGKILL
		LogLimit     unit.Bytes    `toml:"log_limit"`     // maximum size of an attempt's log
		Sandbox      string        `toml:"sandbox"`       // auto, required or off
		Cgroup       string        `toml:"cgroup"`        // parent of the jobs' cgroups; "" means the service's own
		Processes    int           `toml:"processes"`     // maximum per job; 0 means no limit
		FileSize     unit.Bytes    `toml:"file_size"`     // maximum size of a job's file; 0 means the disk's size

		// Rules select jobs to run elsewhere. Only the file can set them.
		Rules []Rule `toml:"rules"`
	} `toml:"runner"`

	Site struct {
		// Paths maps names to the site's paths for algorithms. Only the file can set
		// them.
		Paths map[string]string `toml:"paths"`
	} `toml:"site"`

	Containers struct {
		Runtime string     `toml:"runtime"` // auto, podman, docker, apptainer or off
		Pull    string     `toml:"pull"`    // never or missing
		Env     OptionList `toml:"env"`     // environment of the runtime's command, NAME=VALUE
	} `toml:"containers"`

	Modules struct {
		Init string `toml:"init"` // script that defines the module command; "" means an installed one
	} `toml:"modules"`

	Slurm Slurm `toml:"slurm"`

	Validators struct {
		AtOnce  int           `toml:"at_once"` // maximum number at once; 0 means the number of CPUs, at least 2
		Memory  unit.Bytes    `toml:"memory"`  // limit of each validator process; 0 means no limit
		Wait    unit.Duration `toml:"wait"`    // time to wait for a free slot
		Timeout unit.Duration `toml:"timeout"` // time to check up to 100 documents
	} `toml:"validators"`

	Links struct {
		Upload  unit.Duration `toml:"upload"`
		Partial unit.Duration `toml:"partial"` // how long unfinished resumable uploads are kept
	} `toml:"links"`

	Database struct {
		MaxSize    unit.Bytes `toml:"max_size"`    // 0 means limited only by the disk
		FileSystem string     `toml:"file_system"` // local or any
	} `toml:"database"`

	Disk struct {
		Reserve unit.Bytes `toml:"reserve"` // free space that uploads and new jobs leave; 0 means 1 GiB or 5 %
	} `toml:"disk"`

	Backup Backup `toml:"backup"`

	Quota     Quota     `toml:"quota"`
	UserQuota Quota     `toml:"user_quota"`
	Retention Retention `toml:"retention"`

	// Organizations overrides policies for some organizations. Only the file can set it.
	Organizations map[string]Organization `toml:"organizations"`

	Notify Notify `toml:"notify"`
	Mail   Mail   `toml:"mail"`

	Stop struct {
		Requests unit.Duration `toml:"requests"` // time for requests to finish after a stop is requested
	} `toml:"stop"`

	Limits Limits `toml:"limits"`
	Rates  Rates  `toml:"rates"`
	Proxy  Proxy  `toml:"proxy"`
	SignIn SignIn `toml:"sign_in"`
	MSA    MSA    `toml:"msa"`
	CORS   CORS   `toml:"cors"`
	TLS    TLS    `toml:"tls"`
	Audit  Audit  `toml:"audit"`

	// File is the path of the configuration file, if it exists.
	File string `toml:"-"`

	Log struct {
		Level  string `toml:"level"`  // debug, info, warn or error
		Format string `toml:"format"` // auto, pretty or json
	} `toml:"log"`
}

// Default returns the default settings.
func Default() Config {
	var c Config
	c.Data = "molrun-data"
	c.Listen = "127.0.0.1:8080"
	c.Catalogue = NameList{"all"}
	c.Compat = true
	c.Runner.Executor = "local"
	c.Runner.GPUs = GPUList{"auto"}
	c.Runner.ReserveAfter = unit.Duration(10 * time.Minute)
	c.Runner.KeepFailed = unit.Duration(72 * time.Hour)
	c.Runner.Grace = unit.Duration(10 * time.Second)
	c.Runner.LogLimit = 16 << 20
	c.Runner.PinCPUs = true
	c.Runner.Sandbox = "auto"
	c.Runner.Processes = 4096
	c.Containers.Runtime = "auto"
	c.Containers.Pull = "never"
	c.Validators.Memory = 1 << 30
	c.Validators.Wait = unit.Duration(time.Minute)
	c.Validators.Timeout = unit.Duration(5 * time.Second)
	c.Links.Upload = unit.Duration(app.DefaultUploadTTL)
	c.Links.Partial = unit.Duration(24 * time.Hour)
	c.Database.FileSystem = "local"
	c.setBackupDefaults()
	c.Retention.KeepLastOf = "user"
	c.Mail = Mail{Port: 587, TLS: "starttls"}
	c.Stop.Requests = unit.Duration(20 * time.Second)
	c.setSlurmDefaults()
	c.setSecurityDefaults()
	c.Log.Level = "info"
	c.Log.Format = "auto"
	return c
}

// Load reads the file, then applies the variables of environ (os.Environ), which take
// precedence. An optional file can be absent. Call Check after applying the flags too.
func Load(file string, optional bool, environ []string) (Config, error) {
	c := Default()
	c.File = file
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
		return fault.Errorf(fault.Invalid, "%s:%d: unknown setting %q%s", file, line, name, suggestion(name, c.Names()))
	}
	var broken *toml.DecodeError
	if errors.As(err, &broken) {
		line, _ := broken.Position()
		return fault.Errorf(fault.Invalid, "%s:%d: %s", file, line, strings.TrimPrefix(broken.Error(), "toml: "))
	}
	return err
}

func suggestion(name string, known []string) string {
	if near := plaintext.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; see config.example.toml"
}

// notSettings lists variables with the same prefix that are not settings: the path of the
// file, and the environment of tasks.
var notSettings = []string{"MOLRUN_CONFIG", "MOLRUN_TASK", "MOLRUN_CPUS", "MOLRUN_SECONDS", "MOLRUN_SERVER", "MOLRUN_KEY", "MOLRUN_PROFILE"}

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
			return fault.Errorf(fault.Invalid, "unknown variable %s%s", name, suggestion(name, names))
		}
		if err := setValue(place, value); err != nil {
			return fault.Errorf(fault.Invalid, "%s: %v", name, err)
		}
	}
	return nil
}

func setValue(place reflect.Value, text string) error {
	switch target := place.Addr().Interface().(type) {
	case *string:
		*target = text
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not an integer", text)
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

// Names returns the names of all settings as section.name.
func (c *Config) Names() []string {
	var names []string
	c.walk(func(name string, _ reflect.Value) { names = append(names, name) })
	return names
}

// Setting is a setting with its value. Free reports whether the operator can choose any
// string.
type Setting struct {
	Name, Value string
	Free        bool
}

// Settings returns all settings except those that only the file can set.
func (c *Config) Settings() (all []Setting) {
	c.walk(func(name string, place reflect.Value) {
		s := Setting{Name: name, Value: fmt.Sprint(place.Interface())}
		s.Free = place.Kind() == reflect.String || place.Kind() == reflect.Slice
		all = append(all, s)
	})
	return all
}

// Text returns all settings with their exact values, one per line.
func (c *Config) Text() string {
	var b strings.Builder
	c.walk(func(name string, place reflect.Value) { fmt.Fprintf(&b, "%s = %#v\n", name, place.Interface()) })
	return b.String()
}

// walk visits every setting except those that only the file can set.
func (c *Config) walk(visit func(name string, place reflect.Value)) {
	top := reflect.ValueOf(c).Elem()
	for i := range top.NumField() {
		name := top.Type().Field(i).Tag.Get("toml")
		if name == "-" {
			continue
		}
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
			_, rules := section.Field(k).Interface().([]Rule)
			if !rules && section.Field(k).Kind() != reflect.Map {
				visit(name+"."+section.Type().Field(k).Tag.Get("toml"), section.Field(k))
			}
		}
	}
}

// Check rejects values with which the service cannot run.
func (c *Config) Check() error {
	checks := []settingCheck{
		{c.Data == "", "data: name a directory"},
		{c.Listen == "", "listen: must be host:port, such as 127.0.0.1:8080"},
		{c.Runner.CPUs < 0, "runner.cpus: must be at least 1, or 0 for all CPUs detected"},
		{c.Runner.ReserveAfter <= 0, "runner.reserve_after: must be a time above 0, such as 10m"},
		{c.Runner.KeepFailed < 0, "runner.keep_failed: must be 0 or more, such as 72h"},
		{c.Runner.Grace <= 0, "runner.grace: must be a time above 0, such as 10s"},
		{c.Runner.LogLimit < 64<<10, "runner.log_limit: must be at least 64KiB"},
		{!slices.Contains([]string{"auto", "required", "off"}, c.Runner.Sandbox), "runner.sandbox: use auto, required or off"},
		{c.Runner.Cgroup != "" && !filepath.IsAbs(c.Runner.Cgroup), "runner.cgroup: must be an absolute path, such as /sys/fs/cgroup/molrun.slice"},
		{c.Runner.Processes < 0 || c.Runner.Processes > 0 && c.Runner.Processes < 16, "runner.processes: must be at least 16, or 0 for no limit"},
		{c.Runner.FileSize > 0 && c.Runner.FileSize < 1<<20, "runner.file_size: must be at least 1MiB, or 0 for the size of the disk"},
		{!slices.Contains([]string{"auto", "podman", "docker", "apptainer", "off"}, c.Containers.Runtime), "containers.runtime: use auto, podman, docker, apptainer or off"},
		{!slices.Contains([]string{"never", "missing"}, c.Containers.Pull), "containers.pull: use never or missing"},
		{slices.ContainsFunc(c.Containers.Env, noVariable), "containers.env: use NAME=VALUE, such as DOCKER_HOST=unix:///run/user/1000/docker.sock"},
		{c.Modules.Init != "" && !filepath.IsAbs(c.Modules.Init), "modules.init: must be an absolute path, such as /etc/profile.d/modules.sh"},
		{c.Validators.AtOnce < 0 || c.Validators.AtOnce > 1000, "validators.at_once: must be 1 to 1000, or 0 for the number of CPUs"},
		{c.Validators.Memory > 0 && c.Validators.Memory < 16<<20, "validators.memory: must be at least 16MiB, or 0 for no limit"},
		{c.Validators.Wait < unit.Duration(time.Second) || c.Validators.Wait > unit.Duration(time.Hour), "validators.wait: must be 1s to 1h"},
		{c.Validators.Timeout < unit.Duration(time.Second) || c.Validators.Timeout > unit.Duration(time.Hour), "validators.timeout: must be 1s to 1h"},
		{c.Links.Upload < unit.Duration(time.Minute) || c.Links.Upload > unit.Duration(7*24*time.Hour), "links.upload: must be 1m to 7d"},
		{c.Links.Partial < unit.Duration(time.Minute) || c.Links.Partial > unit.Duration(30*24*time.Hour), "links.partial: must be 1m to 30d"},
		{c.Database.MaxSize != 0 && c.Database.MaxSize < 16<<20, "database.max_size: must be at least 16MiB, or 0 for no limit"},
		{!slices.Contains([]string{"local", "any"}, c.Database.FileSystem), "database.file_system: use local or any"},
		{c.Stop.Requests <= 0 || c.Stop.Requests > unit.Duration(time.Hour), "stop.requests: must be a time above 0, at most 1h, such as 20s"},
		{!slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level), "log.level: use debug, info, warn or error"},
		{!slices.Contains([]string{"auto", "pretty", "json"}, c.Log.Format), "log.format: use auto, pretty or json"},
	}
	for _, check := range slices.Concat(checks, c.securityChecks(), c.noticeChecks(), c.backupChecks()) {
		if check.bad {
			return fault.Errorf(fault.Invalid, "%s", check.msg)
		}
	}
	if err := c.checkSite(); err != nil {
		return err
	}
	if err := c.checkPolicies(); err != nil {
		return err
	}
	if err := c.checkSlurm(); err != nil {
		return err
	}
	return c.checkPublicURL()
}

// noVariable reports whether text does not have the form NAME=VALUE.
func noVariable(text string) bool { return strings.Index(text, "=") < 1 }

func (c *Config) checkPublicURL() error {
	if c.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fault.Errorf(fault.Invalid, "public_url: must be an address such as https://molrun.lab.example or https://lab.example/molrun")
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	return nil
}

// NameList is a list of names.
type NameList []string

// UnmarshalText parses a list separated by commas or spaces.
func (l *NameList) UnmarshalText(text []byte) error {
	*l = strings.FieldsFunc(string(text), func(r rune) bool { return r == ',' || r == ' ' })
	return nil
}

// checkSite checks [site.paths].
func (c *Config) checkSite() error {
	for name, path := range c.Site.Paths {
		if !sitePattern.MatchString(name) {
			return fault.Errorf(fault.Invalid, "site.paths: %q is not a valid name: use at most 64 letters, digits, _ and -, starting with a letter or _", name)
		}
		if !filepath.IsAbs(path) {
			return fault.Errorf(fault.Invalid, "site.paths.%s: must be an absolute path, such as /data/%s", name, name)
		}
	}
	return nil
}

var sitePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// GPUList is a list of GPU devices, or the single word auto.
type GPUList []string

// UnmarshalText parses a comma-separated list, for the environment variable.
func (g *GPUList) UnmarshalText(text []byte) error {
	*g = GPUList{}
	for part := range strings.SplitSeq(string(text), ",") {
		if part = strings.TrimSpace(part); part != "" {
			*g = append(*g, part)
		}
	}
	return nil
}

// Auto reports whether to detect the devices.
func (g GPUList) Auto() bool { return len(g) == 1 && g[0] == "auto" }
