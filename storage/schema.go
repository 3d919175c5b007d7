package storage

import (
	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/storage/kv"
)

var schema = &kv.Schema{
	Records: []string{bucketJobs, bucketJobsPrivate, bucketUploads},
	Others:  []string{bucketKeys, bucketDefinitions},
	Tables:  []kv.AnyTable{&jobs, &uploads},
	Journal: &kv.Journal{Bucket: bucketEvents, Entries: maxEvents, Bytes: maxEventBytes},
	Migrations: []kv.Migration{
		// 2: private parts of jobs may leave out settings that equal the record's.
		// Old ones stay valid, but older versions can't read new ones.
		func(*bolt.Tx) error { return nil },
		// 3: more indexes of jobs, which older versions would not keep, pinned jobs in
		// one that they kept without, and a sum by user and type in place of one by
		// user. Open builds what is missing.
		func(tx *bolt.Tx) error { return deleteBuckets(tx, indexJobsFinished, "jobs.statuses.user") },
		// 4: jobs may wait for others, which older versions would start at once.
		func(*bolt.Tx) error { return nil },
	},
	Check:  checkJobs,
	Repair: repairJobs,
}

var jobs = kv.Table[app.Job]{
	Bucket: bucketJobs,
	Read:   readJob,
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
		kv.Index[app.Job]{Bucket: indexJobsUnsettled, Entries: jobUnsettled},
		sum[app.Job]{sumJobsQueue, queueLine},
		sum[app.Job]{sumJobsTotal, jobTotal},
		sum[app.Job]{sumJobsUsage, jobUsage},
		sum[app.Job]{sumStatusesOrganization, statusesOfOrganization},
		sum[app.Job]{sumStatusesType, statusesOfType},
		kv.Checksums[app.Job]{Bucket: "jobs.checksum", Parts: []string{bucketJobs, bucketJobsPrivate}},
	},
}

var uploads = kv.Table[app.Upload]{
	Bucket: bucketUploads,
	Read:   readUpload,
	Derived: []kv.Derived[app.Upload]{
		kv.Index[app.Upload]{Bucket: indexUploadsList, Entries: uploadList},
		kv.Index[app.Upload]{Bucket: indexUploadsName, Entries: uploadName},
		kv.Index[app.Upload]{Bucket: indexUploadsDigest, Entries: uploadDigest},
		sum[app.Upload]{sumUploadsTotal, uploadTotal},
		sum[app.Upload]{sumUploadsUsage, uploadUsage},
		kv.Checksums[app.Upload]{Bucket: "uploads.checksum", Parts: []string{bucketUploads}},
	},
}

// deleteBuckets deletes derived buckets; one that an interrupted build had not made
// is missing.
func deleteBuckets(tx *bolt.Tx, names ...string) error {
	for _, name := range names {
		if tx.Bucket([]byte(name)) == nil {
			continue
		}
		if err := tx.DeleteBucket([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}
