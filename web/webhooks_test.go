package web_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestWebhooksAreManagedByAdmins(t *testing.T) {
	s := start(t)
	made := s.as(s.root, "POST", "/webhooks", `{"url":"https://hooks.example/molrun","events":["job.failed","job.started","job.failed"]}`)
	hook := made.fields(t)
	id, _ := hook["webhookId"].(string)
	if made.status != 200 || !strings.HasPrefix(hook["secret"].(string), "whsec_") || len(hook["events"].([]any)) != 2 || hook["createdBy"] != "root@lab.example" {
		t.Fatalf("%d %s", made.status, made.body)
	}
	s.wantAs(s.root, 200, "GET", "/webhooks", "").has(t, id).lacks(t, "whsec")
	changed := s.as(s.root, "PATCH", "/webhooks/"+id, `{"url":"https://other.example/","events":null,"disabled":true}`)
	if f := changed.fields(t); changed.status != 200 || f["url"] != "https://other.example/" || f["disabled"] != true || len(f["events"].([]any)) != 2 || f["secret"] != nil {
		t.Errorf("%d %s", changed.status, changed.body)
	}
	s.wantAs(s.root, 422, "POST", "/webhooks/"+id+"/test", "")
	s.as(s.root, "PATCH", "/webhooks/"+id, `{"disabled":false}`)
	sent := s.as(s.root, "POST", "/webhooks/"+id+"/test", "")
	if f := sent.fields(t); sent.status != 200 || f["state"] != "pending" || f["event"] != "webhook.test" {
		t.Errorf("%d %s", sent.status, sent.body)
	}
	log := s.as(s.root, "GET", "/webhooks/"+id+"/deliveries?limit=1", "")
	if all := log.fields(t)["deliveries"].([]any); log.status != 200 || len(all) != 1 || all[0].(map[string]any)["target"] != "https://other.example/" {
		t.Errorf("%d %s", log.status, log.body)
	}
	rotated := s.as(s.root, "POST", "/webhooks/"+id+"/rotate", `{"overlapSeconds":60}`)
	if f := rotated.fields(t); rotated.status != 200 || f["secret"] == hook["secret"] || f["oldSecretUntil"] == nil {
		t.Errorf("%d %s", rotated.status, rotated.body)
	}
	s.wantAs(s.root, 204, "DELETE", "/webhooks/"+id, "")
	s.wantAs(s.root, 404, "GET", "/webhooks/"+id+"/deliveries", "")
}

func TestWebhookOfSubmissionsOnlyHasASecretAndALog(t *testing.T) {
	s := start(t)
	a := s.as(s.root, "POST", "/webhooks/submissions/rotate", "")
	if f := a.fields(t); a.status != 200 || f["webhookId"] != "submissions" || !strings.HasPrefix(f["secret"].(string), "whsec_") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := s.as(s.root, "GET", "/webhooks", ""); strings.TrimSpace(a.body) != `{"webhooks":[]}` {
		t.Errorf("%s", a.body)
	}
	s.wantAs(s.root, 200, "GET", "/webhooks/submissions/deliveries", "")
}

func TestWebhooksThatCannotBeAreFaults(t *testing.T) {
	s := start(t)
	for body, want := range map[string]string{
		`{}`:                              "body.url missing",
		`{"url":"http://hooks.example/"}`: "body.url value",
		`{"url":"https://10.0.0.1/"}`:     "body.url value",
		`{"url":7}`:                       "body.url type",
		`{"url":"https://hooks.example/","events":[]}`:               "body.events value",
		`{"url":"https://hooks.example/","events":["job.exploded"]}`: "body.events.0 value",
		`{"url":"https://hooks.example/","events":["webhook.test"]}`: "body.events.0 value",
		`{"url":"https://hooks.example/","disabled":"yes"}`:          "body.disabled type",
		`{"url":"https://hooks.example/","secret":"whsec_bWluZQ=="}`: "body.secret unknown",
	} {
		a := s.as(s.root, "POST", "/webhooks", body)
		if a.status != 422 || len(a.faults(t)) != 1 || a.faults(t)[0] != want {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	for range 20 {
		s.as(s.root, "POST", "/webhooks", `{"url":"https://hooks.example/"}`)
	}
	s.refused(s.root, 403, "QUOTA_EXCEEDED", "POST", "/webhooks", `{"url":"https://hooks.example/"}`)
}

func TestSubmissionsSayWhomToTell(t *testing.T) {
	s := start(t)
	body := `{"jobName":"a","type":"echo","settings":{}`
	first := s.want(200, "POST", "/submit-job", body+`,"notify":["https://hooks.example/a","mailto:ann@lab.example","mailto:x@partner.example"]}`)
	if strings.Contains(first.body, "hooks.example") {
		t.Errorf("the record shows the addresses: %s", first.body)
	}
	again := s.want(200, "POST", "/submit-job", body+`,"notify":["https://hooks.example/other"]}`)
	same(t, fmt.Sprintf("other addresses make other work: %s", again.body), again.fields(t)["created"], false)
	if a := s.want(200, "GET", "/jobs/a/notices", "").fields(t); len(a["notify"].([]any)) != 3 || len(a["deliveries"].([]any)) != 0 {
		t.Errorf("%v", a)
	}
	s.run("a", map[string]string{"a.txt": "a"})
	if a := s.want(200, "GET", "/jobs/a/notices", "").fields(t); len(a["deliveries"].([]any)) != 3 {
		t.Errorf("%v", a)
	}
	s.wantAs(s.root, 200, "GET", "/jobs/a/notices", "")
	s.wantAs(s.bob, 403, "GET", "/jobs/a/notices", "").lacks(t, "hooks")
	for body, want := range map[string]string{
		`{"notify":["https://127.0.0.1/"]}`:                          "body.notify.0 value",
		`{"notify":["https://a.example/","mailto:bob@lab.example"]}`: "body.notify.1 value",
		`{"notify":"https://a.example/"}`:                            "body.notify type",
		`{"notify":[7]}`:                                             "body.notify.0 type",
	} {
		if a := s.as(s.ann, "PATCH", "/jobs/a", body); a.status != 422 || a.faults(t)[0] != want {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
		submission := `{"jobName":"b","type":"echo","settings":{},` + body[1:]
		if a := s.as(s.ann, "POST", "/submit-job", submission); a.status != 422 || a.faults(t)[0] != want {
			t.Errorf("%s: %d %s", submission, a.status, a.body)
		}
	}
	s.want(200, "PATCH", "/jobs/a", `{"note":"kept"}`)
	same(t, "another change takes the addresses away", len(s.want(200, "GET", "/jobs/a/notices", "").fields(t)["notify"].([]any)), 3)
	s.want(200, "PATCH", "/jobs/a", `{"notify":[]}`)
	if a := s.want(200, "GET", "/jobs/a/notices", "").fields(t); len(a["notify"].([]any)) != 0 {
		t.Errorf("%v", a)
	}

	table := s.send("POST", "/submit-batch?batchName=t&type=echo&notify=https://hooks.example/t", "steps\n1\n2\n", "x-api-key", s.ann, "Content-Type", "text/csv")
	if table.status != 200 {
		t.Fatalf("%d %s", table.status, table.body)
	}
	same(t, "of a table", len(s.want(200, "GET", "/jobs/t/notices", "").fields(t)["notify"].([]any)), 1)
	for _, row := range []string{"t-1", "t-2"} {
		s.run(row, map[string]string{"a.txt": "a"})
	}
	same(t, "deliveries of a batch", len(s.want(200, "GET", "/jobs/t/notices", "").fields(t)["deliveries"].([]any)), 1)
}
