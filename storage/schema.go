package storage

import (
	"molrun/app"
	"molrun/app/job/notice"
	"molrun/storage/kv"
)

var schema = &kv.Schema{
	Buckets: []string{
		bucketJobs, bucketJobsPrivate, bucketUploads, bucketShares, bucketHooks, bucketDeliveries,
		bucketKeys, bucketUsers, bucketSessions, bucketDefinitions,
	},
	Tables:  []kv.AnyTable{&jobs, &uploads, &shares, &hooks, &deliveries},
	Journal: &kv.Journal{Bucket: bucketEvents, Entries: maxEvents, Bytes: maxEventBytes},
	Check:   checkJobs,
	Repair:  repairJobs,
}

var jobs = kv.Table[app.Job]{
	Bucket:       bucketJobs,
	Read:         readJob,
	Parts:        []string{bucketJobsPrivate},
	Decode:       decodeJob,
	CheckRecords: checkRecords,
	Derived: []kv.Derived[app.Job]{
		kv.Index[app.Job]{Bucket: indexJobsList, Entries: jobList},
		kv.Index[app.Job]{Bucket: indexJobsBatch, Entries: jobBatch},
		kv.Index[app.Job]{Bucket: indexJobsMetrics, Entries: jobMetrics},
		kv.Index[app.Job]{Bucket: indexJobsName, Entries: jobName},
		kv.Index[app.Job]{Bucket: indexJobsTag, Entries: jobTag},
		kv.Index[app.Job]{Bucket: indexJobsText, Entries: jobText},
		kv.Index[app.Job]{Bucket: indexJobsFile, Entries: jobFile},
		kv.Index[app.Job]{Bucket: indexJobsSource, Entries: jobSource},
		kv.Index[app.Job]{Bucket: indexJobsFinished, Entries: jobFinished},
		kv.Index[app.Job]{Bucket: indexJobsQueue, Entries: jobQueue},
		kv.Index[app.Job]{Bucket: indexJobsClaimed, Entries: jobClaimed},
		kv.Index[app.Job]{Bucket: indexJobsDependant, Entries: jobDependant},
		kv.Index[app.Job]{Bucket: indexJobsUnpropagated, Entries: jobUnpropagated},
		kv.Index[app.Job]{Bucket: indexJobsPendingBatch, Entries: jobPendingBatch},
		sum[app.Job]{sumJobsQueue, queueLine},
		sum[app.Job]{sumJobsTotal, jobTotal},
		sum[app.Job]{sumJobsUser, jobOfUser},
		sum[app.Job]{sumJobsUsage, jobUsage},
		sum[app.Job]{sumJobsExecutor, jobOfExecutor},
		sum[app.Job]{sumStatusesOrganization, statusesOfOrganization},
		sum[app.Job]{sumStatusesType, statusesOfType},
		tally[app.Job]{spentByJobs, bucketJobs, readJob, spentByJob},
		kv.Checksums[app.Job]{Bucket: "jobs.checksum", Parts: []string{bucketJobs, bucketJobsPrivate}},
	},
}

var uploads = kv.Table[app.Upload]{
	Bucket: bucketUploads,
	Read:   readUpload,
	Decode: decodeUpload,
	Derived: []kv.Derived[app.Upload]{
		kv.Index[app.Upload]{Bucket: indexUploadsList, Entries: uploadList},
		kv.Index[app.Upload]{Bucket: indexUploadsName, Entries: uploadName},
		kv.Index[app.Upload]{Bucket: indexUploadsDigest, Entries: uploadDigest},
		kv.Index[app.Upload]{Bucket: indexUploadsPartial, Entries: uploadPartial},
		sum[app.Upload]{sumUploadsTotal, uploadTotal},
		sum[app.Upload]{sumUploadsUser, uploadOfUser},
		sum[app.Upload]{sumUploadsUsage, uploadUsage},
		tally[app.Upload]{spentByUploads, bucketUploads, readUpload, spentByUpload},
		kv.Checksums[app.Upload]{Bucket: "uploads.checksum", Parts: []string{bucketUploads}},
	},
}

var shares = kv.Table[app.Share]{
	Bucket: bucketShares,
	Read:   storedShare,
	Derived: []kv.Derived[app.Share]{
		kv.Index[app.Share]{Bucket: indexSharesOrganization, Entries: shareOrganization},
		kv.Checksums[app.Share]{Bucket: "shares.checksum", Parts: []string{bucketShares}},
	},
}

var hooks = kv.Table[notice.Hook]{
	Bucket: bucketHooks,
	Read:   readHook,
	Derived: []kv.Derived[notice.Hook]{
		kv.Index[notice.Hook]{Bucket: indexHooksList, Entries: hookList},
		kv.Checksums[notice.Hook]{Bucket: "hooks.checksum", Parts: []string{bucketHooks}},
	},
}

var deliveries = kv.Table[notice.Delivery]{
	Bucket: bucketDeliveries,
	Read:   readDelivery,
	Derived: []kv.Derived[notice.Delivery]{
		kv.Index[notice.Delivery]{Bucket: indexDeliveriesLog, Entries: deliveryLog},
		kv.Index[notice.Delivery]{Bucket: indexDeliveriesJob, Entries: deliveryJob},
		kv.Index[notice.Delivery]{Bucket: indexDeliveriesDue, Entries: deliveryDue},
		count[notice.Delivery]{countDeliveries, deliveryLogs},
		kv.Checksums[notice.Delivery]{Bucket: "deliveries.checksum", Parts: []string{bucketDeliveries}},
	},
}
