package app_test

import (
	"testing"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/upload"
	"molrun/app/test/must"
)

func TestUploadCanBeReplacedUntilItIsComplete(t *testing.T) {
	s := newSite(t)
	ctx := t.Context()
	grant, err := s.Files.Create(ctx, ann, upload.Request{Filename: "a.txt", Folder: "x/y"})
	must.OK(t, err)
	id := grant.Upload.ID
	wantCode(t, "complete before any bytes arrived", must.Error2(s.Files.Complete(ctx, ann, string(id), nil)), fault.UploadNotReceived)
	first, _, err := s.Files.BeginUpload(ctx, id, -1)
	must.OK(t, err)
	second, _, err := s.Files.BeginUpload(ctx, id, -1)
	must.OK(t, err)
	if first == second {
		t.Fatalf("two PUTs share generation %d", first)
	}
	stale, err := s.Files.FinishUpload(ctx, id, app.StoredFile{Generation: second, Size: 3})
	if err != nil || stale != 0 {
		t.Errorf("first bytes: stale generation %d, error %v; want none", stale, err)
	}
	stale, err = s.Files.FinishUpload(ctx, id, app.StoredFile{Generation: first, Size: 5})
	if err != nil || stale != second {
		t.Errorf("other bytes: stale generation %d, error %v; want %d", stale, err, second)
	}
	wrong, right := int64(3), int64(5)
	wantCode(t, "complete with another size", must.Error2(s.Files.Complete(ctx, ann, string(id), &wrong)), fault.Invalid)
	wantCode(t, "complete by another member", must.Error2(s.Files.Complete(ctx, bob, string(id), &right)), fault.Forbidden)
	completed, err := s.Files.Complete(ctx, ann, string(id), &right)
	must.OK(t, err)
	again, err := s.Files.Complete(ctx, ann, string(id), nil)
	must.OK(t, err)
	must.Equal(t, "completed twice", again, completed)
	wantCode(t, "PUT after complete", must.Error3(s.Files.BeginUpload(ctx, id, -1)), fault.UploadCompleted)
	wantCode(t, "PUT that ends after complete", must.Error2(s.Files.FinishUpload(ctx, id, app.StoredFile{Generation: second + 1})), fault.UploadCompleted)
}
