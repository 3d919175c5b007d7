package app_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"molrun/app/algorithm/placement"

	"molrun/app"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/job/listing"
	"molrun/app/job/quota"
	"molrun/app/job/upload"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

// TestEveryErrorOfTheStoreIsReported makes each call that a use case makes to the
// store fail, one after the other. What fails changes nothing, so the next attempt
// begins with the same records.
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
			s.Service = s.Offering(s.Store, app.Options{SettleStep: 1}, echoFile)
			source := s.submit(ann, "a", `{}`).ID
			for _, name := range []string{"b", "c", "d"} {
				s.submitAfter(ann, name, app.After{Names: []string{"a"}})
			}
			s.complete(source, 5)
			return func(v useCases) error { return v.Runs.Settle(t.Context()) }
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
		"log": func(s *site) func(useCases) error {
			s.Start(s.submit(ann, "a", `{}`).ID)
			return func(v useCases) error { return must.Error2(v.Jobs.Log(t.Context(), ann, app.LogRequest{Name: "a"})) }
		},
		"read the attempts": func(s *site) func(useCases) error {
			s.Start(s.submit(ann, "a", `{}`).ID)
			s.submit(ann, "b", `{}`)
			return func(v useCases) error {
				_, active := v.Runs.Active(t.Context())
				_, claims := v.Runs.Claims(t.Context())
				queue := v.Runs.Queue(t.Context(), "local", func(app.Waiting) app.Visit { return app.NextJob })
				return errors.Join(active, claims, queue)
			}
		},
		"claim": func(s *site) func(useCases) error {
			id := s.submit(ann, "a", `{}`).ID
			return func(v useCases) error {
				return must.Error3(v.Runs.Claim(t.Context(), id, placement.Devices{}, app.Portion{}))
			}
		},
		"start": func(s *site) func(useCases) error {
			row := s.rowOfABatch()
			must.OK(t, must.Error3(s.Runs.Claim(t.Context(), row, placement.Devices{}, app.Portion{})))
			return func(v useCases) error { return v.Runs.Started(t.Context(), row, 1, s.Now()) }
		},
		"finish": func(s *site) func(useCases) error {
			row := s.rowOfABatch()
			s.Start(row)
			return func(v useCases) error { return v.Runs.Finish(t.Context(), row, 1, success()) }
		},
		"reject": func(s *site) func(useCases) error {
			row := s.rowOfABatch()
			return func(v useCases) error { return v.Runs.Reject(t.Context(), row, "It can't start.") }
		},
		"read the definition": func(s *site) func(useCases) error {
			j := s.storedJob(s.submit(ann, "a", `{}`).ID)
			j.Version = "of the past"
			return func(v useCases) error { return must.Error2(v.Runs.AlgorithmOf(t.Context(), j)) }
		},
		"create an upload": func(*site) func(useCases) error {
			return func(v useCases) error {
				return must.Error2(v.Files.Create(t.Context(), ann, upload.Request{Filename: "a.txt"}))
			}
		},
		"receive an upload": func(s *site) func(useCases) error {
			id := s.createUpload()
			return func(v useCases) error {
				_, err := v.Files.Upload(t.Context(), id)
				_, _, begun := v.Files.BeginUpload(t.Context(), id, 5)
				return errors.Join(err, begun)
			}
		},
		"finish an upload": func(s *site) func(useCases) error {
			id := s.createUpload()
			return func(v useCases) error {
				return must.Error2(v.Files.FinishUpload(t.Context(), id, app.StoredFile{Generation: 1, Size: 5}))
			}
		},
		"complete an upload": func(s *site) func(useCases) error {
			id := s.createUpload()
			must.OK(t, must.Error2(s.Files.FinishUpload(t.Context(), id, app.StoredFile{Generation: 1, Size: 5})))
			return func(v useCases) error { return must.Error2(v.Files.Complete(t.Context(), ann, string(id), nil)) }
		},
		"list uploads": func(s *site) func(useCases) error {
			s.Upload(ann, "a.txt", "text")
			return func(v useCases) error {
				return must.Error2(v.Lists.Files(t.Context(), ann, listing.FileQuery{Limit: 10}))
			}
		},
		"delete an upload": func(s *site) func(useCases) error {
			id := s.Upload(ann, "a.txt", "text").ID
			return func(v useCases) error { return v.Files.Delete(t.Context(), ann, string(id)) }
		},
		"create a key": func(*site) func(useCases) error {
			return func(v useCases) error { return must.Error3(v.Accounts.CreateKey(t.Context(), app.Operator(), annsKey)) }
		},
		"use a key": func(s *site) func(useCases) error {
			key, _, err := s.Accounts.CreateKey(t.Context(), app.Operator(), annsKey)
			must.OK(t, err)
			return func(v useCases) error {
				if _, err := v.Accounts.Authenticate(t.Context(), key, netip.Addr{}); err != nil {
					return err
				}
				return v.Accounts.SaveKeyUses(t.Context())
			}
		},
		"list keys": func(s *site) func(useCases) error {
			return func(v useCases) error { return must.Error2(v.Accounts.Keys(t.Context(), app.Operator())) }
		},
		"rotate a key": func(s *site) func(useCases) error {
			rec := s.annsKey()
			return func(v useCases) error {
				return must.Error3(v.Accounts.RotateKey(t.Context(), app.Operator(), rec.ID, time.Hour))
			}
		},
		"disable a key": func(s *site) func(useCases) error {
			rec := s.annsKey()
			return func(v useCases) error {
				return must.Error2(v.Accounts.DisableKey(t.Context(), app.Operator(), rec.ID, true))
			}
		},
		"change a key": func(s *site) func(useCases) error {
			rec := s.annsKey()
			return func(v useCases) error {
				return must.Error2(v.Accounts.ChangeKey(t.Context(), app.Operator(), rec.ID, access.KeyChange{Role: apikey.Viewer}))
			}
		},
		"make a key for oneself": func(s *site) func(useCases) error {
			rec := s.annsKey()
			by := app.Caller{KeyID: rec.ID, Organization: rec.Organization, Email: rec.Email, Rights: rec.Rights()}
			return func(v useCases) error {
				return must.Error3(v.Accounts.CreateOwnKey(t.Context(), by, access.KeyRequest{}))
			}
		},
		"list users": func(s *site) func(useCases) error {
			s.annsKey()
			return func(v useCases) error { return must.Error2(v.Accounts.Users(t.Context(), app.Operator())) }
		},
		"change a user": func(*site) func(useCases) error {
			return func(v useCases) error {
				return must.Error2(v.Accounts.ChangeUser(t.Context(), app.Operator(), "lab", "ann@lab.example", access.UserChange{Role: apikey.Viewer}))
			}
		},
		"delete a user": func(s *site) func(useCases) error {
			s.annsKey()
			must.OK(t, must.Error2(s.Accounts.ChangeUser(t.Context(), app.Operator(), "lab", "ann@lab.example", access.UserChange{})))
			return func(v useCases) error {
				return v.Accounts.DeleteUser(t.Context(), app.Operator(), "lab", "ann@lab.example")
			}
		},
		"delete a key": func(s *site) func(useCases) error {
			rec := s.annsKey()
			return func(v useCases) error { return v.Accounts.DeleteKey(t.Context(), app.Operator(), rec.ID) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			act := use(s)
			fixture.EachFault(t, func(arm func(*fixture.FaultyStore)) error {
				store := &fixture.FaultyStore{Store: s.Store}
				quota := func(string, string) quota.Quota { return quota.Quota{Bytes: 1 << 30, Queued: 100} }
				service := s.Offering(store, app.Options{Quota: quota}, echoFile)
				all := useCases{service, s.newFiles(store, quota), access.New(store, s.Blobs, s.Now), lists(t, store, service)}
				arm(store)
				return act(all)
			})
		})
	}
}

// useCases are those of a service and its lists.
type useCases struct {
	*app.Service
	Files    *upload.Files
	Accounts *access.Accounts
	Lists    *listing.Lists
}

var annsKey = access.KeyRequest{Organization: "lab", Email: "ann@lab.example", Role: apikey.Member}

// annsKey issues a key.
func (s *site) annsKey() *apikey.Key {
	s.t.Helper()
	_, rec, err := s.Accounts.CreateKey(s.t.Context(), app.Operator(), annsKey)
	must.OK(s.t, err)
	return rec
}

// rowOfABatch submits a batch and returns its first row.
func (s *site) rowOfABatch() app.JobID {
	s.t.Helper()
	s.submitBatch(ann, "b", `{}`, `{}`)
	return s.job(ann, "b-1").ID
}

// createUpload begins an upload of which nothing has arrived.
func (s *site) createUpload() app.UploadID {
	s.t.Helper()
	grant, err := s.Files.Create(s.t.Context(), ann, upload.Request{Filename: "a.txt"})
	must.OK(s.t, err)
	return grant.Upload.ID
}
