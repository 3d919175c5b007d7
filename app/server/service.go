package server

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/folder"
	"molrun/app/algorithm/validator"
	"molrun/app/base/fault"
	"molrun/app/executor/local"
	"molrun/app/executor/local/gpu"
	"molrun/app/executor/slurm"
	"molrun/app/job/access"
	"molrun/app/job/audit"
	"molrun/app/job/delivery"
	"molrun/app/job/listing"
	"molrun/app/job/output"
	"molrun/app/job/retention"
	"molrun/app/job/upload"
	"molrun/app/job/usage"
	"molrun/app/server/backup"
	"molrun/app/server/config"
	"molrun/app/server/host"
	"molrun/app/server/metrics"
	"molrun/app/task/process"
	"molrun/blobs"
	"molrun/blobs/link"
	"molrun/storage"
	"molrun/storage/kv"
	"molrun/web"
)

// service holds the components that work on one data directory.
type service struct {
	config     config.Config
	log        zerolog.Logger
	store      *storage.Store
	files      *blobs.Dir
	executor   *local.Executor
	gpus       *gpu.Watcher      // of this machine
	gaps       []string          // restrictions that the sandbox of jobs lacks
	slurm      *slurm.Executor   // nil before openCluster, or without a cluster
	offered    []*algorithm.File // instead of the configured ones, unless nil
	catalogue  *algorithm.Catalogue
	offer      *offer
	folders    *folder.Store
	versions   *validator.Prober
	validators *validator.Pool
	app        *app.Service
	accounts   *access.Accounts
	uploads    *upload.Files
	lists      *listing.Lists
	outputs    *output.Outputs
	results    *output.Results
	shares     *output.Shares
	keeper     *retention.Keeper
	usage      *usage.Reports
	notices    *delivery.Webhooks
	audit      *audit.Log
	metrics    *metrics.Metrics
	isolation  web.Isolation // zero before isolate
	program    string        // path of this binary
	backups    *backup.Schedule
	version    string // version of this binary
}

// openService builds the parts bottom up. It locks the data directory until close.
func openService(c config.Config, log zerolog.Logger) (*service, error) {
	return openWith(c, Options{Log: log})
}

func openWith(c config.Config, o Options) (s *service, err error) {
	log := o.Log
	s = &service{config: c, log: log, offered: o.Algorithms, version: o.Version, metrics: metrics.New(cmp.Or(o.Version, "unknown"))}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
			s = nil
		}
	}()
	data, err := filepath.Abs(c.Data)
	if err != nil {
		return s, err
	}
	if err := host.PrepareData(data, o.Init, log); err != nil {
		return s, err
	}
	s.config.Data = data
	s.backups = &backup.Schedule{Config: s.config, Program: process.Self, Log: log, Now: time.Now}
	// The database comes first, because its lock keeps other processes out of the
	// directory.
	s.store, err = storage.Open(filepath.Join(data, host.Database), host.StorageOptions(c, log))
	if err != nil {
		return s, err
	}
	secret, err := link.LoadSecret(data)
	if err != nil {
		return s, err
	}
	if err := s.fitOpenFiles(); err != nil {
		return s, err
	}
	limits := s.config.Limits
	s.files, err = blobs.Open(data, blobs.Options{
		Now: time.Now, Secret: secret, Log: log,
		Reserve: int64(s.config.Disk.Reserve),
		Streams: limits.Streams, StreamsPerHolder: limits.StreamsPerKey, Idle: time.Duration(limits.TransferIdle),
		Partial: time.Duration(s.config.Links.Partial), Rejected: s.refused,
	})
	if err != nil {
		return s, err
	}
	s.audit, err = audit.Open(data, int64(c.Audit.MaxSize), c.Audit.Keep, log)
	if err != nil {
		return s, err
	}
	return s, s.joinParts(secret)
}

// joinParts creates the executor of this machine and the use cases.
func (s *service) joinParts(secret *link.Secret) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	s.program = program
	s.gpus = host.WatchGPUs(s.config, s.log)
	here, err := host.InspectWith(s.config, s.gpus)
	if err != nil {
		s.log.Warn().Err(err).Msg("hardware detection incomplete")
	}
	capacity := here.Capacity
	s.executor = local.New(local.Options{
		CPUs: capacity.CPUs, MemoryBytes: capacity.MemoryBytes, GPUs: s.gpus, Cores: capacity.Cores,
		SandboxOf: s.sandboxOf, ConfinedMemory: int64(s.config.Validators.Memory),
	})
	s.catalogue, err = s.algorithms()
	if err != nil {
		return err
	}
	s.offer.catalogue = s.catalogue
	debug.FreeOSMemory() // reading the catalogue leaves more garbage than an idle service uses
	s.folders = folder.NewStore(filepath.Join(s.config.Data, host.Algorithms))
	s.catalogue.KeepFoldersIn(s.folders)
	s.keepFolders()
	s.catalogue.SetSitePaths(s.config.Site.Paths)
	s.versions = validator.NewProber(s.executor.Confine, validator.SearchPath())
	v := s.config.Validators
	s.validators = validator.NewPool(validator.PoolOptions{
		Concurrency: v.AtOnce, Wait: time.Duration(v.Wait), Timeout: time.Duration(v.Timeout), TempDir: s.files.TempDir, Confine: s.executor.Confine, Builtin: s.builtin,
	})
	s.app, err = app.NewService(s.store, s.files, s.catalogue, app.Options{
		Now:        time.Now,
		Routing:    s.routing(here.Machines()),
		Program:    program,
		Validators: s.validators,
		Quota:      s.config.QuotaOf,
		Notices:    s.config.Notices(),
		Makers:     s.makers(),
	})
	if err != nil {
		return err
	}
	s.uploads = upload.New(s.store, s.files, upload.Options{Now: time.Now, LinkTTL: time.Duration(s.config.Links.Upload), Quota: s.config.QuotaOf})
	s.accounts = access.New(s.store, s.files, time.Now)
	if on := s.config.SignIn; on.Header != "" {
		s.accounts.AllowSignIn(access.SignIn{Organization: on.Organization, Create: on.Create})
	}
	if s.lists, err = listing.New(s.store, s.app.Jobs, secret.Derive("cursors")); err != nil {
		return err
	}
	s.outputs = output.NewOutputs(s.store, s.files, s.app, secret.Derive("cursors"))
	s.results = output.NewResults(s.store, s.files, s.app.Jobs, time.Now)
	s.usage = usage.New(s.store, time.Now)
	s.shares = output.NewShares(s.store, s.app.Jobs, s.results, time.Now)
	s.keeper = retention.New(s.store, s.files, s.app.Jobs, retention.Options{
		Now: time.Now, Rules: s.config.RulesOf, Quota: s.config.QuotaOf, Partial: time.Duration(s.config.Links.Partial),
	})
	s.notices = delivery.NewNotices(s.store, s.config.Notices(), time.Now)
	s.count()
	return nil
}

// count connects the metrics to the parts, before there are events to count.
func (s *service) count() {
	s.store.OnEvents(s.metrics.CountEvents)
	s.store.OnCommit(func(c kv.Commit) { s.metrics.Committed(c.Calls, c.Took, c.Err) })
	s.metrics.Offer(s.catalogue.Types)
}

// refused counts a rejected link.
func (s *service) refused(err error) {
	reason := fault.CodeOf(err)
	if link.Revoked(err) {
		reason = metrics.LinkRevoked
	}
	s.metrics.Refused(string(reason))
}

// algorithms returns the catalogue of the algorithms on offer.
func (s *service) algorithms() (*algorithm.Catalogue, error) {
	s.offer = &offer{config: s.config, log: s.log, fixed: s.offered != nil, keep: s.keepFolders}
	if s.offer.fixed {
		return algorithm.NewCatalogue(s.offered)
	}
	return s.offer.readFiles(nil)
}

// keepFolders copies the current folders of the site's algorithms, since they might be
// edited while the service runs. Folders of built-in algorithms are copied when a job
// needs them.
func (s *service) keepFolders() {
	for _, a := range s.catalogue.ReadNow() {
		if a.BuiltIn {
			continue
		}
		if _, err := a.Folder.Path(); err != nil {
			s.log.Error().Err(err).Str("type", a.Type).Str("version", a.Version).Msg("could not keep a copy of the algorithm's folder")
		}
	}
}

// close closes the parts, the executors first, and unlocks the data directory.
func (s *service) close() error {
	var errs []error
	if s.slurm != nil {
		errs = append(errs, s.slurm.Close())
	}
	if s.executor != nil {
		errs = append(errs, s.executor.Close())
	}
	if s.gpus != nil {
		if err := s.gpus.Close(); err != nil {
			s.log.Warn().Err(err).Msg("could not stop watching the GPUs")
		}
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.files != nil {
		errs = append(errs, s.files.Close())
	}
	if s.audit != nil {
		errs = append(errs, s.audit.Close())
	}
	return errors.Join(errs...)
}

// fitOpenFiles lowers the limits on connections and transfers to fit the open-file limit.
func (s *service) fitOpenFiles() error {
	files, err := host.OpenFiles()
	if err != nil {
		return fmt.Errorf("get the open-file limit: %w", err)
	}
	wanted := s.config.Limits
	s.config.Limits = host.FitOpenFiles(wanted, files)
	if got := s.config.Limits; got != wanted {
		s.log.Warn().Int("files", files).Int("connections", got.Connections).Int("streams", got.Streams).
			Msg("low open-file limit; reduced the limits on connections and transfers; raise it with LimitNOFILE or ulimit -n")
	}
	return nil
}
