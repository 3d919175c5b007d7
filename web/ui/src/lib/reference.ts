// How settings name files. An upload is named by its bytes, as `sha256:<digest>/<filename>`:
// `folder/filename` would be the newest of that name, whoever sent it since.
import type { Job } from './api'

type Inputs = NonNullable<Job['inputs']>

/** Refers to an upload with these bytes, which the job sees under this name. macOS gives decomposed ones. */
export const ofDigest = (sha256: string, filename: string) => `sha256:${sha256}/${filename.normalize()}`

/** The digest and the name in a reference by bytes. */
export function parse(reference: string): { sha256: string; filename: string } | undefined {
  const [, sha256, filename] = /^sha256:([0-9a-f]{64})\/([^/]+)$/i.exec(reference) ?? []
  return sha256 && filename ? { sha256, filename } : undefined
}

const isFileID = (reference: string) => /^[0-9A-HJKMNP-TV-Z]{26}$/.test(reference)

/** Names of files by fileId. */
export type Names = Readonly<Record<string, string>>

export const namesOf = (inputs: Inputs | undefined): Names => Object.fromEntries((inputs ?? []).flatMap((i) => (i.fileId ? [[i.fileId, i.filename]] : [])))

/** What people see of a reference: the file's name if it is by bytes or by fileId. */
export const shown = (reference: string, names: Names = {}) => parse(reference)?.filename ?? names[reference] ?? reference

/** What tells files of one name apart: the beginning of the digest too. */
export function toldApart(reference: string, names: Names = {}): string {
  const name = shown(reference, names)
  return name === reference ? name : `${name} (${parse(reference)?.sha256.slice(0, 12) ?? reference}…)`
}

/** What the server has seen in the file that a setting refers to, as it says of the inputs of a job. */
export function seen(setting: string, reference: string, inputs: Inputs | undefined): string | undefined {
  const sha256 = parse(reference)?.sha256.toLowerCase()
  return inputs?.find((i) => i.setting === setting && (sha256 ? i.sha256 === sha256 : i.fileId === reference || `job:${i.job}/${i.output ? '@' + i.output : i.path}` === reference))?.summary
}

/** The names that are there more than once. */
export function repeated(names: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>()
  return new Set(names.filter((n) => seen.has(n) || !seen.add(n)))
}

/** A value of a setting with the names of files in the place of references. */
export function readable(v: unknown, names: Names = {}, say = shown): unknown {
  if (typeof v === 'string') return say(v, names)
  return Array.isArray(v) ? v.map((x) => readable(x, names, say)) : v
}

/** The settings of a job with references to exactly the uploads that it has read. Only the owner can name them by their bytes. */
export function pinned(job: Pick<Job, 'settings' | 'inputs'>, mine: boolean): Record<string, unknown> {
  const settings = { ...job.settings }
  const setting = (name: string) => {
    const uploads = (job.inputs ?? []).filter((i) => i.setting === name && i.fileId)
    let next = 0
    return (v: unknown) => {
      if (typeof v !== 'string' || v.startsWith('job:')) return v
      const i = uploads[next++]
      if (!i?.fileId) return v
      return mine && !isFileID(v) && i.sha256 ? ofDigest(i.sha256, i.filename) : i.fileId
    }
  }
  for (const name of new Set((job.inputs ?? []).map((i) => i.setting))) {
    if (!(name in settings)) continue // another setting had a job make it
    const v = settings[name]
    settings[name] = Array.isArray(v) ? v.map(setting(name)) : setting(name)(v)
  }
  return settings
}
