package app_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/job/listing"
	"molrun/app/job/quota"
	"molrun/app/job/upload"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

// TestEveryErrorOfTheStoreIsReported makes each store call of a use case fail in turn. A
// failed use case changes nothing, so the next attempt starts with the same records.
func TestEveryErrorOfTheStoreIsReported(t *testing.T) {
	for name, use := range map[string]func(s *site) func(useCases) error{
		"submit": func(s *site) func(useCases) error {
			s.Upload(ann, "a.txt", "text")
			return func(v useCases) error {
				return must.Error3(v.Jobs.Submit(t.Context(), ann, submission(t, "a", `{"input":"inputs/a.txt"}`)))
			}
		},
		"submit with a file of a result": func(s *site) func(useCases) error {
			id := s.submit(ann, "source", `{}`).ID
			s.Complete(id, map[string]string{"a.txt": "12345"})
			return func(v useCases) error {
				return must.Error3(v.Jobs.Submit(t.Context(), ann, submission(t, "b", `{"input":"job:source/a.txt"}`)))
			}
		},
		"submit again": func(s *site) func(useCases) error {
			s.submit(ann, "a", `{}`)
			return func(v useCases) error { return must.Error3(v.Jobs.Submit(t.Context(), ann, submission(t, "a", `{}`))) }
		},
		"submit a batch": func(*site) func(useCases) error {
			return func(v useCases) error {
				return must.Error3(v.Jobs.SubmitBatch(t.Context(), ann, batchSubmission(t, "a", `{}`, `{}`)))
			}
		},
		"validate": func(s *site) func(useCases) error {
			s.Upload(ann, "a.txt", "text")
			return func(v useCases) error {
				return must.Error2(v.Jobs.Validate(t.Context(), ann, submission(t, "a", `{"input":"inputs/a.txt"}`)))
			}
		},
		"list": func(s *site) func(useCases) error {
			s.submitBatch(ann, "b", `{}`, `{}`)
			s.submit(ann, "a", `{}`)
			return func(v useCases) error {
				var all error
				for _, q := range []listing.Query{
					{Limit: 10},
					{Limit: 10, Statuses: true, Subjobs: true},
					{Limit: 10, Count: true, Statuses: true, Selection: listing.Selection{Batch: "b"}},
					{Limit: 10, Selection: listing.Selection{Batch: string(s.job(ann, "b").ID), Search: "b"}},
					{Limit: 10, Count: true, Selection: listing.Selection{ByCompletion: true}},
					{Limit: 10, Count: true},
					{Limit: 10, Count: true, Selection: listing.Selection{WholeOrganization: true}},
				} {
					_, list := v.Lists.Jobs(t.Context(), ann, q)
					_, sum := v.Lists.Summary(t.Context(), ann, q.Selection, nil)
					all = errors.Join(all, list, sum)
				}
				return all
			}
		},
		"table": func(s *site) func(useCases) error {
			s.submitBatch(ann, "b", `{}`, `{"steps":2}`)
			return func(v useCases) error {
				_, _, _, page := v.Lists.Table(t.Context(), ann, listing.TableQuery{Batch: "b", Limit: 10})
				_, rows, whole := v.Lists.WholeTable(t.Context(), ann, listing.TableQuery{Batch: "b", Limit: 10})
				if whole != nil {
					return errors.Join(page, whole)
				}
				for _, err := range rows {
					whole = errors.Join(whole, err)
				}
				return errors.Join(page, whole)
			}
		},
		"settle": func(s *site) func(useCases) error {
			s.Service = s.WithOptions(s.Store, app.Options{PropagationStep: 1}, echoFile)
			source := s.submit(ann, "a", `{}`).ID
			for _, name := range []string{"b", "c", "d"} {
				s.submitAfter(ann, name, app.After{Names: []string{"a"}})
			}
			s.complete(source, 5)
			return func(v useCases) error { return v.Runs.Propagate(t.Context()) }
		},
		"finish what others wait for": func(s *site) func(useCases) error {
			source := s.submit(ann, "a", `{}`).ID
			s.submitAfter(ann, "b", app.After{Names: []string{"a"}})
			s.Start(source)
			return func(v useCases) error { return v.Runs.Finish(t.Context(), source, 1, success()) }
		},
		"retry what failed others": func(s *site) func(useCases) error {
			source := s.submit(ann, "a", `{}`).ID
			s.submitAfter(ann, "b", app.After{Names: []string{"a"}})
			s.Run(source, failure())
			return func(v useCases) error { return must.Error2(v.Jobs.Retry(t.Context(), ann, "a")) }
		},
		"drain": func(*site) func(useCases) error {
			return func(v useCases) error { return must.Error2(v.Runs.Drain(t.Context(), chief, "new disks")) }
		},
		"get": func(s *site) func(useCases) error {
			s.complete(s.submit(ann, "a", `{}`).ID, 5)
			return func(v useCases) error { return must.Error2(v.Jobs.Get(t.Context(), ann, "a", time.Minute)) }
		},
		"cancel": func(s *site) func(useCases) error {
			s.submitBatch(ann, "b", `{}`, `{}`)
			s.Start(s.job(ann, "b-1").ID)
			return func(v useCases) error { return must.Error2(v.Jobs.Cancel(t.Context(), ann, "b")) }
		},
		"retry": func(s *site) func(useCases) error {
			s.Upload(ann, "a.txt", "text")
			s.submitBatch(ann, "b", `{"input":"inputs/a.txt"}`, `{}`)
			s.Run(s.job(ann, "b-1").ID, failure())
			s.Run(s.job(ann, "b-2").ID, success())
			return func(v useCases) error { return must.Error2(v.Jobs.Retry(t.Context(), ann, "b-1")) }
		},
		"pin": func(s *site) func(useCases) error {
			s.submit(ann, "a", `{}`)
			return func(v useCases) error { return must.Error2(v.Jobs.Pin(t.Context(), ann, "a")) }
		},
		"delete a batch": func(s *site) func(useCases) error {
			s.submitBatch(ann, "b", `{}`, `{}`)
			s.complete(s.job(ann, "b-1").ID, 5)
			s.complete(s.job(ann, "b-2").ID, 5)
			return func(v useCases) error { return v.Jobs.Delete(t.Context(), ann, "b") }
		},
		"read the definition": func(s *site) func(useCases) error {
			j := s.storedJob(s.submit(ann, "a", `{}`).ID)
			j.Version = "of the past"
			return func(v useCases) error { return must.Error2(v.Runs.AlgorithmOf(t.Context(), j)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			act := use(s)
			fixture.EachFault(t, func(arm func(*fixture.FaultyStore)) error {
				store, all := s.failing()
				arm(store)
				return act(all)
			})
		})
	}
}

// TestEveryErrorOnTheWayIsReported makes each store call in a sequence of use cases fail
// in turn. Steps before the failing call take effect, so each run starts with new
// records.
func TestEveryErrorOnTheWayIsReported(t *testing.T) {
	ctx, root, none := t.Context(), app.Operator(), netip.Addr{}
	for name, steps := range map[string]func(s *site, v useCases) error{
		"attempt": func(s *site, v useCases) error {
			s.submitBatch(ann, "b", `{}`, `{}`)
			row, other := s.job(ann, "b-1").ID, s.job(ann, "b-2").ID
			return inTurn(
				func() error { return must.Error3(v.Runs.Claim(ctx, row, placement.Devices{}, app.ClaimLimit{})) },
				func() error { return must.Error2(v.Runs.Active(ctx)) },
				func() error { return must.Error2(v.Runs.Claims(ctx)) },
				func() error { return v.Runs.Queue(ctx, "local", func(app.Waiting) app.Visit { return app.NextJob }) },
				func() error { return v.Runs.Started(ctx, row, 1, s.Now(), app.ClusterJob{}) },
				func() error { return must.Error2(v.Jobs.Log(ctx, ann, app.LogRequest{Name: "b-1"})) },
				func() error { return v.Runs.Finish(ctx, row, 1, success()) },
				func() error { return v.Runs.Reject(ctx, other, "It can't start.") },
			)
		},
		"upload": func(_ *site, v useCases) error {
			grant, err := v.Files.Create(ctx, ann, upload.Request{Filename: "a.txt"})
			if err != nil {
				return err
			}
			id := grant.Upload.ID
			return inTurn(
				func() error { return must.Error2(v.Files.Upload(ctx, id)) },
				func() error { return must.Error3(v.Files.BeginUpload(ctx, id, 5)) },
				func() error {
					return must.Error2(v.Files.FinishUpload(ctx, id, app.StoredFile{Generation: 1, Size: 5}))
				},
				func() error { return must.Error2(v.Files.Complete(ctx, ann, string(id), nil)) },
				func() error { return must.Error2(v.Lists.Files(ctx, ann, listing.FileQuery{Limit: 10})) },
				func() error { return v.Files.Delete(ctx, ann, string(id)) },
			)
		},
		"account": func(_ *site, v useCases) error {
			key, rec, err := v.Accounts.CreateKey(ctx, root, annsKey)
			if err != nil {
				return err
			}
			by := app.Caller{KeyID: rec.ID, Organization: rec.Organization, Email: rec.Email, Rights: rec.Rights()}
			return inTurn(
				func() error { return must.Error2(v.Accounts.Keys(ctx, root)) },
				func() error { return must.Error3(v.Accounts.CreateOwnKey(ctx, by, access.KeyRequest{})) },
				func() error {
					return must.Error2(v.Accounts.ChangeKey(ctx, root, rec.ID, access.KeyChange{Role: apikey.Viewer}))
				},
				func() error { return must.Error2(v.Accounts.Authenticate(ctx, key, none)) }, // no longer cached after the change
				func() error { return v.Accounts.SaveKeyUses(ctx) },
				func() error { return must.Error3(v.Accounts.RotateKey(ctx, root, rec.ID, time.Hour)) },
				func() error { return must.Error2(v.Accounts.DisableKey(ctx, root, rec.ID, true)) },
				func() error { return must.Error2(v.Accounts.Users(ctx, root)) },
				func() error {
					return must.Error2(v.Accounts.ChangeUser(ctx, root, rec.Organization, rec.Email, access.UserChange{Role: apikey.Viewer}))
				},
				func() error { return v.Accounts.DeleteKey(ctx, root, rec.ID) },
				func() error { return v.Accounts.DeleteUser(ctx, root, rec.Organization, rec.Email) },
			)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fixture.EachFault(t, func(arm func(*fixture.FaultyStore)) error {
				s := newSite(t)
				defer s.Close()
				store, all := s.failing()
				arm(store)
				return steps(s, all)
			})
		})
	}
}

// inTurn runs the steps in order up to the first error.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// failing returns the use cases on a store whose calls can be made to fail.
func (s *site) failing() (*fixture.FaultyStore, useCases) {
	s.t.Helper()
	store := &fixture.FaultyStore{Store: s.Store}
	quota := func(string, string) quota.Quota { return quota.Quota{Bytes: 1 << 30, Queued: 100} }
	service := s.WithOptions(store, app.Options{Quota: quota}, echoFile)
	return store, useCases{service, s.newFiles(store, quota), access.New(store, s.Blobs, s.Now), lists(s.t, store, service)}
}

// useCases holds the use cases of a service and of the packages in app/job.
type useCases struct {
	*app.Service
	Files    *upload.Files
	Accounts *access.Accounts
	Lists    *listing.Lists
}

var annsKey = access.KeyRequest{Organization: "lab", Email: "ann@lab.example", Role: apikey.Member}

// createUpload creates an upload without data.
func (s *site) createUpload() app.UploadID {
	s.t.Helper()
	grant, err := s.Files.Create(s.t.Context(), ann, upload.Request{Filename: "a.txt"})
	must.OK(s.t, err)
	return grant.Upload.ID
}
