package container

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is a container runtime.
type Kind string

// The runtimes.
const (
	Podman    Kind = "podman"
	Docker    Kind = "docker"
	Apptainer Kind = "apptainer"
)

// The labels of a container, by which cleanup after a crash finds it.
const (
	labelDir     = "molrun.dir"
	labelJob     = "molrun.job"
	labelAttempt = "molrun.attempt"
)

// Inside is the folder in a container that holds what molrun adds.
const Inside = "/.molrun"

// Box describes the container of one step. Paths are host paths; bind mounts have the
// same path inside.
type Box struct {
	Name    string
	Image   string // a result of Runnable
	Dir     string // of the attempt
	Job     string
	Attempt int

	Program  string   // mounted as Inside/molrun, the first process
	Socket   string   // mounted as Inside/socket, to which Program connects
	Work     string   // readable and writable
	Temp     string   // mounted as /tmp and /var/tmp
	ReadOnly []string // below Work
	Read     []string // folders and files to add to those of the image
	Wide     []string // like Read, but with hidden paths below, which Covers hide
	Covers   []Cover
	Network  bool
	GPUs     []string // devices of the task

	UID, GID          int
	OpenFiles         Limit
	CPUs              []int // to which the container is pinned; only for Docker
	Processes         Limit // of the account; only for Podman
	MostProcesses     int64 // of the container; like MemoryBytes only for Docker
	MemoryBytes       int64
	SharedMemoryBytes int64 // 0 means the runtime's default
	Environment       []string
}

// Cover mounts an empty folder or file of the host over the path that it hides.
type Cover struct{ From, To string }

// Check rejects paths that can't appear in the runtimes' command lines.
func (b Box) Check() error {
	paths := slices.Concat([]string{b.Program, b.Socket, b.Work}, b.Read, b.Wide)
	for _, c := range b.Covers {
		paths = append(paths, c.From, c.To)
	}
	for _, path := range paths {
		if strings.ContainsAny(path, ",\"\n") {
			return fmt.Errorf("%q can't be mounted in a container; use a path without commas, quotes and line breaks", path)
		}
	}
	return nil
}

// Limit is a kernel resource limit.
type Limit struct{ Soft, Hard uint64 }

func (l Limit) String() string { return fmt.Sprintf("%d:%d", l.Soft, l.Hard) }

// RunArguments returns the arguments that run the first process in a new container, as
// the user of this process, without capabilities and with only those host paths that the
// box lists. The runtime removes the container when it exits.
func (k Kind) RunArguments(b Box) []string {
	args := map[Kind]func(Box) []string{Podman: podmanRun, Docker: dockerRun, Apptainer: apptainerRun}[k](b)
	for _, m := range b.mounts() {
		args = append(args, "--mount", m)
	}
	if k != Apptainer {
		args = append(args, "--entrypoint", Inside+"/molrun", b.Image)
	} else {
		args = append(args, b.Image, Inside+"/molrun")
	}
	return append(args, "task", "--inside", "--connect", Inside+"/socket")
}

// mounts returns the values of --mount, which are the same for all runtimes. A path
// follows the paths that contain it.
func (b Box) mounts() []string {
	bind := func(from, to string) string { return "type=bind,source=" + from + ",destination=" + to }
	mounts := []string{bind(b.Temp, "/tmp"), bind(b.Temp, "/var/tmp")}
	covered := slices.Clone(b.Covers)
	for _, path := range b.Wide {
		covered = append(covered, Cover{path, path})
	}
	slices.SortFunc(covered, func(a, b Cover) int { return strings.Compare(a.To, b.To) })
	for _, c := range covered {
		mounts = append(mounts, bind(c.From, c.To)+",ro")
	}
	mounts = append(mounts, bind(b.Work, b.Work))
	for _, path := range slices.Concat(b.ReadOnly, b.Read) {
		mounts = append(mounts, bind(path, path)+",ro")
	}
	return append(mounts, bind(b.Program, Inside+"/molrun")+",ro", bind(b.Socket, Inside+"/socket"))
}

// common returns the arguments that Podman and Docker share. The container has no name
// server and only a loopback interface, unless it uses the host network.
func (b Box) common() []string {
	network := "none"
	if b.Network {
		network = "host"
	}
	args := []string{
		"run", "--rm", "--init=false", "--pull=never", "--log-driver=none", "--name=" + b.Name,
		"--label=" + labelDir + "=" + b.Dir, "--label=" + labelJob + "=" + b.Job, "--label=" + labelAttempt + "=" + strconv.Itoa(b.Attempt),
		"--network=" + network, "--user=" + fmt.Sprintf("%d:%d", b.UID, b.GID), "--cap-drop=all",
		"--security-opt=no-new-privileges", "--security-opt=label=disable", "--read-only", "--workdir=/",
		"--ulimit=core=0:0", "--ulimit=nofile=" + b.OpenFiles.String(),
	}
	if b.SharedMemoryBytes > 0 {
		args = append(args, "--shm-size="+strconv.FormatInt(b.SharedMemoryBytes, 10))
	}
	for _, name := range b.Environment {
		args = append(args, "--env="+name) // the value is in the runtime's own environment
	}
	return args
}

// podmanRun leaves the container in the task's cgroup, so that its limits apply.
func podmanRun(b Box) []string {
	args := append(b.common(), "--cgroups=disabled", "--ulimit=nproc="+b.Processes.String(), "--read-only-tmpfs=false",
		"--image-volume=ignore", "--systemd=false", "--http-proxy=false", "--no-healthcheck")
	if b.UID != 0 {
		args = append(args, "--userns=keep-id")
	}
	for _, gpu := range b.GPUs {
		args = append(args, "--device=nvidia.com/gpu="+gpu)
	}
	return args
}

// dockerRun has the daemon set the limits, because the container is not a child of the
// task.
func dockerRun(b Box) []string {
	args := append(b.common(), "--no-healthcheck")
	if b.MemoryBytes > 0 {
		memory := strconv.FormatInt(b.MemoryBytes, 10)
		args = append(args, "--memory="+memory, "--memory-swap="+memory)
	}
	if b.MostProcesses > 0 {
		args = append(args, "--pids-limit="+strconv.FormatInt(b.MostProcesses, 10))
	}
	if len(b.CPUs) > 0 {
		args = append(args, "--cpuset-cpus="+strings.Trim(strings.ReplaceAll(fmt.Sprint(b.CPUs), " ", ","), "[]"))
	}
	if len(b.GPUs) > 0 {
		args = append(args, `--gpus="device=`+strings.Join(b.GPUs, ",")+`"`)
	}
	return args
}

func apptainerRun(b Box) []string {
	args := []string{"exec", "--containall", "--cleanenv", "--no-home", "--no-init", "--no-privs", "--pwd=/"}
	if !b.Network {
		args = append(args, "--net", "--network=none")
	}
	if len(b.GPUs) > 0 {
		args = append(args, "--nv")
	}
	return args
}

// VisibleGPUs returns the names that a task's GPUs have inside a container, where no
// others are visible, or "" if they are the same as outside. Numbers start with the first
// GPU inside.
func (k Kind) VisibleGPUs(gpus []string) string {
	uuid := func(gpu string) bool { return strings.Contains(gpu, "-") }
	if k == Apptainer || slices.ContainsFunc(gpus, uuid) {
		return ""
	}
	var numbers []string
	for i := range gpus {
		numbers = append(numbers, strconv.Itoa(i))
	}
	return strings.Join(numbers, ",")
}

// Reference returns the image's name on the runtime's command line.
func (k Kind) Reference(image string) string {
	if k == Apptainer {
		return image
	}
	return strings.TrimPrefix(image, "docker://")
}

// Runnable returns the Image of a Box for an image that resolved to this ID.
func (k Kind) Runnable(image, id string) string {
	if k == Apptainer {
		return image
	}
	return strings.TrimPrefix(id, "sha256:")
}

// inspect returns the arguments that print the ID of a local image.
func (k Kind) inspect(image string) []string {
	return []string{"image", "inspect", "--format={{.Id}}", k.Reference(image)}
}

// listArguments returns the arguments that print the name and directory of every task
// container, one per line, including exited ones.
func (k Kind) listArguments() []string {
	label := `{{.Label "` + labelDir + `"}}`
	if k == Podman {
		label = `{{index .Labels "` + labelDir + `"}}`
	}
	return []string{"ps", "--all", "--filter=label=" + labelDir, "--format={{.Names}} " + label}
}

// remove returns the arguments that kill and remove a container.
func (k Kind) remove(name string) []string {
	args := []string{"rm", "--force", "--volumes"}
	if k == Podman {
		args = append(args, "--ignore", "--time=0")
	}
	return append(args, name)
}

// pull returns the arguments that pull an image.
func (k Kind) pull(image string) []string { return []string{"pull", "--quiet", k.Reference(image)} }

// IsFile reports whether an image is a file, which only Apptainer can run.
func IsFile(image string) bool { return strings.HasSuffix(image, ".sif") }
