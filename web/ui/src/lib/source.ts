// The source of a result: a job of the organization, or a share link.
import { apiURL, segment, segments, type Query } from './address'
import { get, request } from './api'

export interface Source {
  job: string // the job whose files other jobs can use; "" for a share link
  json<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T>
  fileURL(path: string): string
  /** The first bytes of a file as text, and whether that is the whole file. */
  text(path: string, size: number, signal?: AbortSignal): Promise<{ text: string; whole: boolean }>
  /** A file as a data URL, with the type that the service reports. */
  dataURL(path: string, signal?: AbortSignal): Promise<string>
  url(path: string, query?: Query): string
}

const previewed = 4 << 20 // bytes of a file read as text

function sourceAt(base: string, job: string): Source {
  const file = (path: string) => `${base}/files/${segments(path)}`
  return {
    job,
    json: (path, query, signal) => get(`${base}/${path}`, query, signal),
    url: (path, query) => apiURL(`${base}/${path}`, query),
    fileURL: (path) => apiURL(file(path)),
    async text(path, size, signal) {
      const whole = size <= previewed
      const answer = await request('GET', file(path), { signal, headers: { Accept: '*/*', ...(whole ? {} : { Range: `bytes=0-${previewed - 1}` }) } })
      return { text: await answer.text(), whole }
    },
    async dataURL(path, signal) {
      const answer = await request('GET', file(path), { signal, headers: { Accept: '*/*' } })
      const reader = new FileReader()
      reader.readAsDataURL(await answer.blob())
      return new Promise((resolve, reject) => {
        reader.onload = () => resolve(reader.result as string)
        reader.onerror = () => reject(reader.error!)
      })
    },
  }
}

export const ofJob = (name: string) => sourceAt('jobs/' + segment(name), name)
export const ofShare = (token: string) => sourceAt('shared/' + segment(token), '')
