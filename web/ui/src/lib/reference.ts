// References to files in settings. An upload is referenced by its bytes, as
// `sha256:<digest>/<filename>`: `folder/filename` would be the newest upload of that name.
import type { Job } from './api'

type Inputs = NonNullable<Job['inputs']>

/** A reference to an upload by its bytes, which the job sees under this name. macOS has decomposed names. */
export const ofDigest = (sha256: string, filename: string) => `sha256:${sha256}/${filename.normalize()}`

/** The digest and name in a reference by bytes. */
export function parse(reference: string): { sha256: string; filename: string } | undefined {
  const [, sha256, filename] = /^sha256:([0-9a-f]{64})\/([^/]+)$/i.exec(reference) ?? []
  return sha256 && filename ? { sha256, filename } : undefined
}

const isFileID = (reference: string) => /^[0-9A-HJKMNP-TV-Z]{26}$/.test(reference)

/** Names of files by fileId. */
export type Names = Readonly<Record<string, string>>

export const namesOf = (inputs: Inputs | undefined): Names => Object.fromEntries((inputs ?? []).flatMap((i) => (i.fileId ? [[i.fileId, i.filename]] : [])))

/** A reference as shown to users: the file name if it is by bytes or fileId. */
export const shown = (reference: string, names: Names = {}) => parse(reference)?.filename ?? names[reference] ?? reference

/** A reference as shown to users, with the beginning of the digest to distinguish files of one name. */
export function toldApart(reference: string, names: Names = {}): string {
  const name = shown(reference, names)
  return name === reference ? name : `${name} (${parse(reference)?.sha256.slice(0, 12) ?? reference}…)`
}

/** The server's summary of the file that a setting refers to, from the inputs of a job. */
export function seen(setting: string, reference: string, inputs: Inputs | undefined): string | undefined {
  const sha256 = parse(reference)?.sha256.toLowerCase()
  return inputs?.find((i) => i.setting === setting && (sha256 ? i.sha256 === sha256 : i.fileId === reference || `job:${i.job}/${i.output ? '@' + i.output : i.path}` === reference))?.summary
}

/** The names that occur more than once. */
export function repeated(names: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>()
  return new Set(names.filter((n) => seen.has(n) || !seen.add(n)))
}

/** A setting with file names in place of references. */
export function readable(v: unknown, names: Names = {}, say = shown): unknown {
  if (typeof v === 'string') return say(v, names)
  return Array.isArray(v) ? v.map((x) => readable(x, names, say)) : v
}

/** The settings of a job with references to exactly the uploads that it used. Only the owner can reference them by bytes. */
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
    if (!(name in settings)) continue // made by a job, as another setting requested
    const v = settings[name]
    settings[name] = Array.isArray(v) ? v.map(setting(name)) : setting(name)(v)
  }
  return settings
}
