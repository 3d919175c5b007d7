package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/base/fault"
	"molrun/app/executor/local"
	"molrun/app/server"
	"molrun/app/server/config"
)

// unitTemplate is the unit file. These settings are omitted on purpose:
//
//   - PrivateTmp would empty /tmp under jobs that outlive the service, and RemoveIPC would
//     remove their shared memory.
//   - RestrictNamespaces, ProcSubset, ProtectKernelTunables, ProtectKernelLogs and
//     ProtectControlGroups keep bubblewrap from creating the namespaces of a job's sandbox,
//     its /proc, or the cgroup with its limits, although some kernels allow it.
//   - PrivateDevices and DeviceAllow hide GPUs, and so does ProtectClock, which implies
//     DeviceAllow. A list would miss devices whose driver is loaded later.
//   - AmbientCapabilities: bubblewrap refuses to run with capabilities.
//   - MemoryDenyWriteExecute breaks just-in-time compilation, as in CUDA, PyTorch and Java.
//   - DelegateSubgroup requires systemd 254. ExecStopPost does the same everywhere.
//
// System call filters, PrivateUsers and similar settings imply NoNewPrivileges for a
// service that is not root. Rootless Podman can't work with that: newuidmap is a setuid
// program.
var unitTemplate = template.Must(template.New("unit").Parse(`# Written by molrun systemd-unit. Save it as /etc/systemd/system/molrun.service, then:
#   systemctl daemon-reload && systemctl enable --now molrun

[Unit]
Description=molrun, protein and molecular-simulation jobs
Wants=network-online.target
After=network-online.target remote-fs.target
RequiresMountsFor={{.Data}}

[Service]
Type=notify
User={{.User}}
ExecStart={{.Program}} serve --init{{.Flags}}
ExecReload=/bin/kill -HUP $MAINPID

# Jobs keep running while the service is stopped, upgraded or restarted.
KillMode=process
Restart=always
RestartSec=2
# Restarting does not fix wrong usage or configuration.
RestartPreventExitStatus=2 5
# An upgrade may have indexes to build.
TimeoutStartSec=15min
TimeoutStopSec={{.StopSeconds}}
WatchdogSec=60

# Each job gets its own cgroup. Their limits would prevent systemd from restarting the
# service while jobs run.
Delegate=yes
ExecStopPost=-{{.Program}} make-room
LimitNOFILE=65536

# The following applies to the service and to its jobs.
UMask=0077
ProtectSystem=strict
ReadWritePaths={{.Data}} /tmp /var/tmp{{if .Shared}} -{{.Shared}}{{end}}{{if .Backups}} -{{.Backups}}{{end}}
ProtectHome=read-only
ProtectProc=invisible
PrivateMounts=yes
{{- if .Podman}}
# newuidmap and newgidmap give Podman the users of /etc/subuid.
CapabilityBoundingSet=CAP_SETUID CAP_SETGID
NoNewPrivileges=no
{{- else}}
CapabilityBoundingSet=
NoNewPrivileges=yes
PrivateUsers=yes
ProtectHostname=yes
ProtectKernelModules=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
# System calls that current programs do not need fail with "operation not permitted".
SystemCallFilter=~@clock @cpu-emulation @debug @module @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
# 32-bit programs do not run; to allow them, empty this line (systemctl edit molrun).
SystemCallArchitectures=native
{{- end}}

[Install]
WantedBy=multi-user.target
`))

// systemdUnit is the data of the template.
type systemdUnit struct {
	User, Program, Flags, Data string
	Shared, Backups            string // directories that may be mounted later; "" means none
	StopSeconds                int
	Podman                     bool // jobs run in rootless Podman containers
}

func unitCommand() *cobra.Command {
	var user string
	var podman bool
	c := &cobra.Command{
		Use:   "systemd-unit",
		Short: "Print a systemd unit file for the service",
		Long: `Print a systemd unit file for this program and configuration. The user must exist and own the
data directory:

  useradd --system --no-create-home molrun
  install -d -m 700 -o molrun /srv/molrun

Create keys as the same user: sudo -u molrun molrun key create --data /srv/molrun …

The unit denies the service and its jobs access to what they do not need: other users' processes,
capabilities, rare system calls and 32-bit programs. Rootless Podman needs setuid programs,
which only a unit made with --podman allows; it restricts less.`,
		Example: "  molrun systemd-unit --data /srv/molrun > /etc/systemd/system/molrun.service",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&user, "user", "molrun", "system user that runs the service")
	c.Flags().BoolVar(&podman, "podman", false, "allow rootless Podman containers")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := flags.loadConfig()
		if err != nil {
			return err
		}
		u, err := newUnit(config, flags, user)
		if err != nil {
			return err
		}
		u.Podman = podman
		return unitTemplate.Execute(c.OutOrStdout(), u)
	}
	return c
}

// makeRoomCommand returns the command that the unit runs as ExecStopPost.
func makeRoomCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "make-room",
		Short:  "Let systemd restart the service while jobs keep running",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return local.DisableControllers() },
	}
}

func newUnit(c config.Config, flags *configFlags, user string) (u systemdUnit, err error) {
	u = systemdUnit{User: user, StopSeconds: int((server.StopTimeout(c) + time.Second - 1) / time.Second)}
	if u.Program, err = os.Executable(); err != nil {
		return u, fmt.Errorf("find this program: %w", err)
	}
	if u.Data, err = filepath.Abs(c.Data); err != nil {
		return u, err
	}
	u.Shared = c.Slurm.SharedDir
	if c.Backup.To != "" {
		if u.Backups, err = filepath.Abs(c.Backup.To); err != nil {
			return u, err
		}
	}
	words := []string{"--data", u.Data}
	file, named := flags.configFile()
	if _, err := os.Stat(file); named || err == nil {
		if file, err = filepath.Abs(file); err != nil {
			return u, err
		}
		words = append([]string{"--config", file}, words...)
	}
	for _, word := range append([]string{user, u.Program, u.Shared, u.Backups}, words...) {
		if strings.ContainsAny(word, " \t\n\"'\\%$;") {
			return u, fault.Errorf(fault.Invalid, "%q can't be used in a unit file; use a path or name without spaces, quotes, $, %% and ;", word)
		}
	}
	u.Flags = " " + strings.Join(words, " ")
	return u, nil
}
