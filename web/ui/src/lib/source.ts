// Where a result comes from: a job of the organization, or what a share link shows.
import { apiURL, segment, segments, type Query } from './address'
import { get, request } from './api'

export interface Source {
  json<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T>
  fileURL(path: string): string
  /** The first bytes of a file as text, and whether that is all. */
  text(path: string, size: number, signal?: AbortSignal): Promise<{ text: string; whole: boolean }>
  url(path: string, query?: Query): string
}

const previewed = 4 << 20 // bytes of a file that are read as text

function sourceAt(base: string): Source {
  const file = (path: string) => `${base}/files/${segments(path)}`
  return {
    json: (path, query, signal) => get(`${base}/${path}`, query, signal),
    url: (path, query) => apiURL(`${base}/${path}`, query),
    fileURL: (path) => apiURL(file(path)),
    async text(path, size, signal) {
      const whole = size <= previewed
      const answer = await request('GET', file(path), { signal, headers: { Accept: '*/*', ...(whole ? {} : { Range: `bytes=0-${previewed - 1}` }) } })
      return { text: await answer.text(), whole }
    },
  }
}

export const ofJob = (name: string) => sourceAt('jobs/' + segment(name))
export const ofShare = (token: string) => sourceAt('shared/' + segment(token))
