package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/access"
	"molrun/app/algorithm"
	"molrun/app/algorithm/validator"
	"molrun/app/algorithms"
	"molrun/app/audit"
	"molrun/app/config"
	"molrun/app/datadir"
	"molrun/app/executor/local"
	"molrun/app/executor/slurm"
	"molrun/app/host"
	"molrun/app/listing"
	"molrun/app/output"
	"molrun/app/retention"
	"molrun/app/upload"
	"molrun/blobs"
	"molrun/blobs/link"
	"molrun/storage"
	"molrun/web"
)

// service is the parts of molrun on one data directory.
type service struct {
	config     config.Config
	log        zerolog.Logger
	store      *storage.Store
	files      *blobs.Dir
	executor   *local.Executor
	slurm      *slurm.Executor // nil before openCluster, or without a cluster
	catalogue  *algorithm.Catalogue
	validators *validator.Pool
	app        *app.Service
	accounts   *access.Accounts
	uploads    *upload.Files
	lists      *listing.Lists
	outputs    *output.Outputs
	keeper     *retention.Keeper
	audit      *audit.Log
	isolation  web.Isolation // zero before isolate
	program    string        // path of this binary
	version    string        // of it
}

// open builds the parts bottom up. It locks the data directory until close.
func open(c config.Config, log zerolog.Logger) (s *service, err error) {
	s = &service{config: c, log: log}
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
	if err := datadir.Prepare(data, log); err != nil {
		return s, err
	}
	s.config.Data = data
	// The database first: its lock keeps others out of the directory.
	s.store, err = storage.Open(filepath.Join(data, datadir.Database), datadir.StorageOptions(c, log))
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
	})
	if err != nil {
		return s, err
	}
	s.audit, err = audit.Open(data, int64(c.Audit.MaxSize), c.Audit.Keep, log)
	if err != nil {
		return s, err
	}
	return s, s.join(secret)
}

// join makes the executor of this machine and the use cases.
func (s *service) join(secret *link.Secret) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	s.program = program
	here, err := host.Of(s.config)
	if err != nil {
		s.log.Warn().Err(err).Msg("not all of the machine could be detected")
	}
	capacity := here.Capacity
	s.executor = local.New(local.Options{
		CPUs: capacity.CPUs, MemoryBytes: capacity.MemoryBytes, GPUs: capacity.GPUs,
		SandboxOf: s.sandboxOf, ConfinedMemory: int64(s.config.Validators.Memory),
	})
	s.catalogue, err = algorithms.Catalogue(s.config.Algorithms, func(m algorithm.Mistake) {
		s.log.Error().Str("file", m.File).Int("line", m.Line).Msg("algorithm file left out: " + m.Msg)
	})
	if err != nil {
		return err
	}
	v := s.config.Validators
	s.validators = validator.NewPool(validator.Options{
		AtOnce: v.AtOnce, Wait: time.Duration(v.Wait), TempDir: s.files.TempDir, Confine: s.executor.Confine, Builtin: s.builtin,
	})
	s.app, err = app.NewService(s.store, s.files, s.catalogue, app.Options{
		Now:        time.Now,
		Routing:    s.routing(here.Machines()),
		Program:    program,
		Validators: s.validators,
		Quota:      s.config.QuotaOf,
	})
	if err != nil {
		return err
	}
	s.uploads = upload.New(s.store, s.files, upload.Options{Now: time.Now, LinkTTL: time.Duration(s.config.Links.Upload), Quota: s.config.QuotaOf})
	s.accounts = access.New(s.store, s.files, time.Now)
	if s.lists, err = listing.New(s.store, s.app.Jobs, secret.Derive("cursors")); err != nil {
		return err
	}
	s.outputs = output.New(s.store, s.files, s.app, secret.Derive("cursors"))
	s.keeper = retention.New(s.store, s.files, s.app.Jobs, retention.Options{
		Now: time.Now, Rules: s.config.RulesOf, Quota: s.config.QuotaOf,
	})
	return nil
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

// fitOpenFiles lowers the bounds on connections and transfers to the open-file
// limit.
func (s *service) fitOpenFiles() error {
	files, err := host.OpenFiles()
	if err != nil {
		return fmt.Errorf("ask how many files may be open: %w", err)
	}
	wanted := s.config.Limits
	s.config.Limits = host.FitOpenFiles(wanted, files)
	if got := s.config.Limits; got != wanted {
		s.log.Warn().Int("files", files).Int("connections", got.Connections).Int("streams", got.Streams).
			Msg("the system allows few open files, so fewer connections and transfers are taken; raise it (LimitNOFILE, ulimit -n) for more")
	}
	return nil
}
