// Uploads that survive a lost connection, a pause and a reload of the page: received bytes stay
// on the server for a day, and the upload resumes from there.
import { apiURL, noAnswer, segment, segments } from './address'
import { ApiError, call, reason, type FileList, type ListedFile, type Schemas, type Upload as Grant } from './api'
import { ofDigest, parse } from './reference'

export type Standing = 'waiting' | 'checking' | 'sending' | 'paused' | 'broken' | 'done' | 'failed'

const partSize = 32 << 20 // bytes per request
const hashed = 64 << 20 // bytes; smaller files are hashed first, so that known content isn't sent
const atOnce = 3
const retries = 8 // with doubling delays from half a second: about two minutes
const kept = 'molrun.uploads'

/** A started upload, as stored in this browser. */
interface Begun { fileId: string; name: string; folder: string; size: number; modified: number }

function remembered(): Begun[] {
  try {
    return JSON.parse(localStorage.getItem(kept) ?? '[]') as Begun[]
  } catch {
    return []
  }
}

function remember(list: Begun[]) {
  localStorage.setItem(kept, JSON.stringify(list.slice(-50)))
}

/** Unfinished uploads of this browser, which resume if their files are chosen again. */
export const unfinished = () => remembered()

export class Upload {
  standing = $state<Standing>('waiting')
  sent = $state(0)
  rate = $state(0) // bytes per second, over the last seconds
  problem = $state('')
  fileId = ''
  private sha256 = '' // once uploaded
  private link = ''
  private request: XMLHttpRequest | undefined
  private stopped = false
  private marks: [number, number][] = [] // times and bytes sent

  constructor(
    readonly file: File,
    readonly folder: string,
  ) {}

  /** The reference to the file for settings, once uploaded. */
  get reference() {
    return ofDigest(this.sha256, this.file.name)
  }

  get active() {
    return this.standing === 'waiting' || this.standing === 'checking' || this.standing === 'sending'
  }

  /** Sends the file or the rest of it. Resolves when it is done, failed or paused. */
  async run(): Promise<void> {
    this.stopped = false
    this.problem = ''
    this.standing = 'checking'
    try {
      if (!this.link && !(await this.begin())) return
      this.standing = 'sending'
      await this.sendAll()
      if (this.stopped) return
      this.sha256 = (await call<Schemas['CompletedFile']>('POST', `upload/${segment(this.fileId)}/complete`, { body: { size: this.file.size } })).sha256
      this.forget()
      this.standing = 'done'
    } catch (e) {
      if (this.stopped) return
      this.problem = reason(e)
      this.standing = e instanceof ApiError && e.status >= 400 && e.status < 500 ? 'failed' : 'broken'
      if (this.standing === 'failed') this.forget()
    }
  }

  pause() {
    this.stopped = true
    this.standing = 'paused'
    this.request?.abort()
  }

  /** Cancels the upload and deletes the received part. */
  async abandon() {
    this.pause()
    this.forget()
    if (this.fileId) await call('DELETE', `files/${segment(this.fileId)}`).catch(() => {})
  }

  /** Gets an upload link. Returns false if the server already has these bytes. */
  private async begin(): Promise<boolean> {
    const old = remembered().find((b) => b.name === this.file.name && b.folder === this.folder && b.size === this.file.size && b.modified === this.file.lastModified)
    if (old) {
      const grant = await call<Grant>('POST', `upload/${segment(old.fileId)}/link`).catch(() => undefined)
      if (grant) return this.take(grant)
      this.fileId = old.fileId
      this.forget()
    }
    const sha256 = await digest(this.file)
    const grant = await call<Grant>('PUT', `upload/${segment(this.file.name)}`, { query: { folder: this.folder, sha256 } })
    if (sha256 && grant.status === 'completed' && grant.filename === this.file.name.normalize() && grant.folder === this.folder) {
      this.fileId = grant.fileId
      this.sha256 = sha256
      this.sent = this.file.size
      this.standing = 'done'
      return false
    }
    if (grant.status === 'completed') return this.take(await call<Grant>('PUT', `upload/${segment(this.file.name)}`, { query: { folder: this.folder } }))
    return this.take(grant)
  }

  private take(grant: Grant): boolean {
    this.fileId = grant.fileId
    this.link = linkURL(grant.uploadUrl) // its host can differ from that of this page
    remember([...remembered().filter((b) => b.fileId !== this.fileId), { fileId: this.fileId, name: this.file.name, folder: this.folder, size: this.file.size, modified: this.file.lastModified }])
    return true
  }

  private forget() {
    remember(remembered().filter((b) => b.fileId !== this.fileId))
  }

  private async sendAll() {
    let failures = 0
    for (;;) {
      try {
        const at = await this.offset()
        if (at === undefined) return // complete
        this.sent = at
        await this.part(at, Math.min(at + partSize, this.file.size))
        failures = 0
        if (this.sent >= this.file.size) return
      } catch (e) {
        if (this.stopped) return
        if (e instanceof ApiError && e.status >= 400 && e.status < 500 && e.code !== 'UPLOAD_OFFSET_MISMATCH') throw e
        if (++failures > retries) throw e
        this.problem = 'Connection lost; retrying.'
        await new Promise((r) => setTimeout(r, 250 * 2 ** failures))
        if (this.stopped) return
      }
    }
  }

  /** The number of bytes stored; undefined if all are. */
  private async offset(): Promise<number | undefined> {
    const answer = await fetch(this.link, { method: 'HEAD', cache: 'no-store' }).catch(() => {
      throw new ApiError(0, 'OFFLINE', noAnswer)
    })
    if (!answer.ok) throw new ApiError(answer.status, 'UPLOAD', `The server returned ${answer.status}.`)
    if (answer.headers.get('Upload-Complete') === '?1') {
      this.sent = this.file.size
      return undefined
    }
    return Number(answer.headers.get('Upload-Offset')) || 0
  }

  private part(from: number, to: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const request = (this.request = new XMLHttpRequest()) // fetch does not report progress
      request.open('PATCH', this.link)
      request.setRequestHeader('Content-Type', 'application/partial-upload')
      request.setRequestHeader('Upload-Offset', String(from))
      request.setRequestHeader('Upload-Complete', to === this.file.size ? '?1' : '?0')
      if (to === this.file.size) request.setRequestHeader('Upload-Length', String(this.file.size))
      request.upload.onprogress = (e) => this.progress(from + e.loaded)
      request.onload = () => {
        if (request.status < 300) {
          this.progress(to)
          this.problem = ''
          resolve()
        } else reject(refusal(request))
      }
      request.onerror = request.onabort = () => reject(new ApiError(0, 'OFFLINE', 'The connection was lost.'))
      request.send(this.file.slice(from, to))
    })
  }

  private progress(sent: number) {
    this.sent = Math.min(sent, this.file.size)
    const now = performance.now()
    this.marks = [...this.marks.filter(([t]) => now - t < 5_000), [now, sent]]
    const [time, bytes] = this.marks[0]!
    if (now - time > 500) this.rate = Math.max(0, (sent - bytes) / ((now - time) / 1000))
  }
}

function refusal(request: XMLHttpRequest): ApiError {
  try {
    const { error } = JSON.parse(request.responseText)
    return new ApiError(request.status, error.code, error.message)
  } catch {
    return new ApiError(request.status, 'UNKNOWN', `The server returned ${request.status}.`)
  }
}

/** The SHA-256 digest of a small file in hex; undefined for large files, and without TLS, where browsers have no crypto.subtle. */
async function digest(file: File): Promise<string | undefined> {
  if (file.size > hashed || !globalThis.crypto?.subtle) return undefined
  const sum = await crypto.subtle.digest('SHA-256', await file.arrayBuffer())
  return [...new Uint8Array(sum)].map((b) => b.toString(16).padStart(2, '0')).join('')
}

/** The uploads of this page, a few at a time. */
class Uploads {
  list = $state.raw<Upload[]>([])

  constructor() {
    addEventListener('beforeunload', (e) => this.busy && e.preventDefault())
  }

  get busy() {
    return this.list.some((u) => u.active)
  }

  /** Uploads a file and resolves with its reference. */
  async add(file: File, folder = 'inputs'): Promise<string> {
    const upload = new Upload(file, folder)
    this.list = [...this.list, upload]
    await this.turn(upload)
    if (upload.standing !== 'done') throw new Error(upload.problem || 'The upload was stopped.')
    return upload.reference
  }

  async turn(upload: Upload) {
    while (this.list.filter((u) => u.standing === 'checking' || u.standing === 'sending').length >= atOnce) {
      await new Promise((r) => setTimeout(r, 100))
    }
    if (this.list.includes(upload)) await upload.run()
  }

  drop(upload: Upload) {
    if (upload.active || upload.standing === 'paused' || upload.standing === 'broken') void upload.abandon()
    this.list = this.list.filter((u) => u !== upload)
  }
}

export const uploads = new Uploads()

/** Completed uploads with one of the extensions, newest first. */
export async function findFiles(extensions: readonly string[] | undefined, signal?: AbortSignal): Promise<ListedFile[]> {
  const found: ListedFile[] = []
  let startKey: string | undefined
  for (let pages = 0; pages < 5 && found.length < 200; pages++) {
    const page = await call<{ files: ListedFile[]; startKey?: string }>('GET', 'files', { query: { limit: 100, startKey }, signal })
    found.push(...page.files.filter((f) => f.status === 'completed' && fits(f.filename, extensions)))
    if (!page.startKey) break
    startKey = page.startKey
  }
  return found
}

/** The URL of a link, below the address at which this page reached the service. */
export function linkURL(link: string): string {
  const url = new URL(link)
  return apiURL(url.pathname.slice(url.pathname.indexOf('/blobs/') + 1)) + url.search
}

/** The download URL of a completed upload. */
export async function uploadURL(f: Pick<ListedFile, 'filename' | 'folder' | 'sha256'>, signal?: AbortSignal): Promise<string> {
  return linkURL((await call<Grant>('PUT', `upload/${segment(f.filename)}`, { query: { folder: f.folder, sha256: f.sha256 }, signal })).downloadUrl)
}

/** The URL of the file that a setting references: an upload, or job:NAME/PATH. */
export async function fileURL(reference: string, signal?: AbortSignal): Promise<string> {
  const [, job, path] = /^job:([^/]+)\/(.+)$/.exec(reference) ?? []
  if (job && path) return apiURL(`jobs/${segment(job)}/files/${segments(path)}`)
  const bytes = parse(reference)
  const f = bytes
    ? (await call<FileList>('GET', 'files', { query: { sha256: bytes.sha256, limit: 1 }, signal })).files[0]
    : (await findFiles(undefined, signal)).find((x) => `${x.folder}/${x.filename}` === reference || x.fileId === reference)
  if (!f) throw new Error(bytes ? `${bytes.filename} is no longer among your uploads.` : `${reference} is not among your newest uploads.`)
  return uploadURL(f, signal)
}

/** Whether a file name has one of the extensions. */
export function fits(name: string, extensions: readonly string[] | undefined): boolean {
  const lower = name.toLowerCase()
  return !extensions || extensions.length === 0 || extensions.some((e) => lower.endsWith(e.toLowerCase()))
}
