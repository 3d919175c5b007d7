package web_test

import (
	"testing"
)

func TestWebhooksAreManagedByAdmins(t *testing.T) {
	s := start(t)
	hook := s.wantAs(s.root, 200, "POST", "/webhooks", `{"url":"https://hooks.example/molrun","events":["job.failed","job.started","job.failed"]}`).fields(t)
	id, secret := hook["webhookId"].(string), hook["secret"].(string)
	same(t, "made", []any{secret[:6], hook["events"], hook["createdBy"]}, []any{"whsec_", []any{"job.started", "job.failed"}, "root@lab.example"})
	s.wantAs(s.root, 200, "GET", "/webhooks", "").has(t, id).lacks(t, "whsec")
	changed := s.wantAs(s.root, 200, "PATCH", "/webhooks/"+id, `{"url":"https://other.example/","events":null,"disabled":true}`).fields(t)
	same(t, "changed", []any{changed["url"], changed["disabled"], changed["events"], changed["secret"]}, []any{"https://other.example/", true, hook["events"], nil})
	s.wantAs(s.root, 422, "POST", "/webhooks/"+id+"/test", "")
	s.as(s.root, "PATCH", "/webhooks/"+id, `{"disabled":false}`)
	s.wantAs(s.root, 200, "POST", "/webhooks/"+id+"/test", "").has(t, `"state":"pending"`, `"event":"webhook.test"`)
	log := s.wantAs(s.root, 200, "GET", "/webhooks/"+id+"/deliveries?limit=1", "").fields(t)["deliveries"].([]any)
	same(t, "delivered", []any{len(log), log[0].(map[string]any)["target"]}, []any{1, "https://other.example/"})
	rotated := s.wantAs(s.root, 200, "POST", "/webhooks/"+id+"/rotate", `{"overlapSeconds":60}`).has(t, "oldSecretUntil").fields(t)
	same(t, "the old secret", rotated["secret"] == secret, false)
	s.wantAs(s.root, 204, "DELETE", "/webhooks/"+id, "")
	s.wantAs(s.root, 404, "GET", "/webhooks/"+id+"/deliveries", "")
}

func TestWebhookOfSubmissionsOnlyHasASecretAndALog(t *testing.T) {
	s := start(t)
	s.wantAs(s.root, 200, "POST", "/webhooks/submissions/rotate", "").has(t, `"webhookId":"submissions"`, `"secret":"whsec_`)
	s.wantAs(s.root, 200, "GET", "/webhooks", "").has(t, `{"webhooks":[]}`)
	s.wantAs(s.root, 200, "GET", "/webhooks/submissions/deliveries", "")
}

func TestInvalidWebhooksAreRejected(t *testing.T) {
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
		same(t, body, s.wantAs(s.root, 422, "POST", "/webhooks", body).faults(t), []string{want})
	}
	for range 20 {
		s.as(s.root, "POST", "/webhooks", `{"url":"https://hooks.example/"}`)
	}
	s.refused(s.root, 403, "QUOTA_EXCEEDED", "POST", "/webhooks", `{"url":"https://hooks.example/"}`)
}

func TestSubmissionsSayWhomToTell(t *testing.T) {
	s := start(t)
	body := `{"jobName":"a","type":"echo","settings":{}`
	notices := func(job string) []int {
		t.Helper()
		f := s.want(200, "GET", "/jobs/"+job+"/notices", "").fields(t)
		return []int{len(f["notify"].([]any)), len(f["deliveries"].([]any))}
	}
	s.want(200, "POST", "/submit-job", body+`,"notify":["https://hooks.example/a","mailto:ann@lab.example","mailto:x@partner.example"]}`).lacks(t, "hooks.example")
	s.want(200, "POST", "/submit-job", body+`,"notify":["https://hooks.example/other"]}`).has(t, `"created":false`)
	same(t, "addresses and messages", notices("a"), []int{3, 0})
	s.run("a", map[string]string{"a.txt": "a"})
	same(t, "at the end", notices("a"), []int{3, 3})
	s.wantAs(s.root, 200, "GET", "/jobs/a/notices", "")
	s.wantAs(s.bob, 403, "GET", "/jobs/a/notices", "").lacks(t, "hooks")
	for body, want := range map[string]string{
		`{"notify":["https://127.0.0.1/"]}`:                          "body.notify.0 value",
		`{"notify":["https://a.example/","mailto:bob@lab.example"]}`: "body.notify.1 value",
		`{"notify":"https://a.example/"}`:                            "body.notify type",
		`{"notify":[7]}`:                                             "body.notify.0 type",
	} {
		same(t, body, s.want(422, "PATCH", "/jobs/a", body).faults(t), []string{want})
		same(t, body, s.want(422, "POST", "/submit-job", `{"jobName":"b","type":"echo","settings":{},`+body[1:]).faults(t), []string{want})
	}
	s.want(200, "PATCH", "/jobs/a", `{"note":"kept"}`)
	same(t, "after another change", notices("a"), []int{3, 3})
	s.want(200, "PATCH", "/jobs/a", `{"notify":[]}`)
	same(t, "without addresses", notices("a"), []int{0, 3})

	same(t, "a table", s.sendTable("batchName=t&type=echo&notify=https://hooks.example/t", "steps\n1\n2\n").status, 200)
	for _, row := range []string{"t-1", "t-2"} {
		s.run(row, map[string]string{"a.txt": "a"})
	}
	same(t, "of a batch", notices("t"), []int{1, 1})
}
