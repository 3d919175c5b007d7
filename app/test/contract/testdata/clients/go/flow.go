// The main flow, as a user of oapi-codegen would write it: upload a file, submit a job
// that uses the file, list jobs, wait, and download the result.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"clients/api"
)

const text = "one two three\n"

func main() {
	key := func(_ context.Context, r *http.Request) error {
		r.Header.Set("x-api-key", os.Getenv("MOLRUN_KEY"))
		return nil
	}
	client, err := api.NewClientWithResponses(os.Getenv("MOLRUN_URL"), api.WithRequestEditorFn(key))
	must(err)
	f := flow{client, context.Background()}
	const name = "from go"
	f.submit(name, f.upload())
	f.list(name)
	f.wait(name)
	f.download(name)
	f.refusals(name)
	fmt.Println("done")
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func same[T comparable](got, want T, what string) {
	if got != want {
		log.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// need returns the body of a response with status 200.
func need[T any](body *T, raw []byte) *T {
	if body == nil {
		log.Fatalf("the service answered %s", raw)
	}
	return body
}

type flow struct {
	*api.ClientWithResponses
	ctx context.Context
}

func (f flow) upload() (reference string) {
	folder := "from go"
	answer, err := f.CreateUploadWithResponse(f.ctx, "words.txt", &api.CreateUploadParams{Folder: &folder}, api.CreateUploadJSONRequestBody{})
	must(err)
	created := need(answer.JSON200, answer.Body)
	put, err := http.NewRequest(http.MethodPut, created.UploadUrl, strings.NewReader(text))
	must(err)
	put.Header.Set("Content-Type", created.Instructions.Headers.ContentType)
	sent, err := http.DefaultClient.Do(put)
	must(err)
	sent.Body.Close()
	same(sent.StatusCode, 200, "the status of the PUT")
	size := int64(len(text))
	completed, err := f.CompleteUploadWithResponse(f.ctx, created.FileId, api.CompleteUploadJSONRequestBody{Size: &size})
	must(err)
	file := need(completed.JSON200, completed.Body)
	same(file.Size, size, "the size")
	return file.Folder + "/" + file.Filename
}

func (f flow) submit(name, input string) {
	priority := -1
	body := api.SubmitJobJSONRequestBody{
		JobName: name, Type: "shell", Priority: &priority,
		Settings: map[string]any{"script": "cat in/* > out/copy.txt; echo copied", "input": input},
	}
	for _, created := range []bool{true, false} {
		answer, err := f.SubmitJobWithResponse(f.ctx, body)
		must(err)
		job := need(answer.JSON200, answer.Body)
		same(job.Created, created, "created")
		same((*job.Settings)["script"], body.Settings["script"], "the script in the record")
	}
}

func (f flow) list(name string) {
	limit, algorithm := 1, "shell"
	answer, err := f.ListJobsWithResponse(f.ctx, &api.ListJobsParams{Limit: &limit, Algorithm: &algorithm})
	must(err)
	page := need(answer.JSON200, answer.Body)
	same(len(page.Jobs), 1, "the number of jobs")
	same(page.Jobs[0].JobName, name, "the newest job")
}

func (f flow) wait(name string) {
	for long := "30s"; ; {
		answer, err := f.GetJobWithResponse(f.ctx, name, &api.GetJobParams{Wait: &long})
		must(err)
		switch job := need(answer.JSON200, answer.Body); job.Status {
		case api.COMPLETED:
			return
		case api.FAILED:
			log.Fatalf("the job failed: %v", job.Failure)
		}
	}
}

func (f flow) download(name string) {
	file := "copy.txt"
	answer, err := f.GetResultWithResponse(f.ctx, api.GetResultJSONRequestBody{JobName: name, FileName: &file})
	must(err)
	got, err := http.Get(need(answer.JSON200, answer.Body).DownloadUrl)
	must(err)
	defer got.Body.Close()
	content, err := io.ReadAll(got.Body)
	must(err)
	same(string(content), text, "the result")
	logged, err := f.GetLogWithResponse(f.ctx, name, nil)
	must(err)
	same(string(logged.Body), "copied\n", "the log")
}

func (f flow) refusals(name string) {
	missing, err := f.GetJobWithResponse(f.ctx, "none", nil)
	must(err)
	same(need(missing.JSON404, missing.Body).Error.Code, api.ErrorCode("NOT_FOUND"), "the code")
	var body api.ValidateJobJSONRequestBody
	must((*api.ValidateJobJSONBody)(&body).FromSubmission(api.Submission{JobName: "a/b", Type: "shell", Settings: map[string]any{"cpus": 0}}))
	answer, err := f.ValidateJobWithResponse(f.ctx, body)
	must(err)
	checked := need(answer.JSON200, answer.Body)
	same(checked.Valid, false, "valid")
	place, err := checked.Detail[0].Loc[0].AsFieldErrorLoc0()
	must(err)
	same(place, "body", "the place of a fault")
	taken, err := f.SubmitJobWithResponse(f.ctx, api.SubmitJobJSONRequestBody{JobName: name, Type: "shell", Settings: map[string]any{"script": "false"}})
	must(err)
	same(need(taken.JSON409, taken.Body).Error.Code, api.ErrorCode("JOB_ALREADY_EXISTS"), "the code of another job of that name")
}
