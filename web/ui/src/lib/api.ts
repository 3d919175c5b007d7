// The API, typed by its specification. Every error response becomes an ApiError whose message
// is a sentence for users.
import { apiURL, noAnswer, type Query } from './address'
import type { components } from './openapi'

type Schemas = components['schemas']
export type Job = Schemas['Job']
export type JobEvent = Schemas['JobEvent']
export type JobList = Schemas['JobList']
export type JobSummary = Schemas['JobSummary']
export type Counts = Schemas['Counts']
export type Status = Schemas['Status']
export type Queue = Schemas['Queue']
export type Failure = Schemas['Failure']
export type Algorithm = Schemas['Algorithm']
export type AlgorithmSummary = Schemas['AlgorithmSummary']
export type Parameter = Schemas['Parameter']
export type Estimate = Schemas['Estimate']
export type Validation = Schemas['Validation']
export type View = Schemas['View']
export type Series = Schemas['Series']
export type TablePage = Schemas['TablePage']
export type BatchTable = Schemas['Table']
export type Row = Schemas['Row']
export type Column = Schemas['Column']
export type ListedFile = Schemas['ListedFile']
export type FileList = Schemas['FileList']
export type Upload = Schemas['Upload']
export type ResultFile = Schemas['ResultFileList']['files'][number]
export type Key = Schemas['Key']
export type User = Schemas['User']
export type Share = Schemas['Share']
export type SharedJob = Schemas['SharedJob']
export type Webhook = Schemas['Webhook']
export type Delivery = Schemas['Delivery']
export type UsageReport = Schemas['UsageReport']
export type FieldError = Schemas['FieldError']
export type { Schemas }

/** The error of a request. status is 0 without a response. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly fields: FieldError[] = [],
    readonly retryAfter = 0, // seconds
  ) {
    super(message)
    this.name = 'ApiError'
  }
}

interface Options {
  query?: Query
  body?: unknown
  signal?: AbortSignal
  headers?: Record<string, string>
}

/** Called when the session has ended. */
let onSignedOut = () => {}
export const whenSignedOut = (tell: () => void) => (onSignedOut = tell)

/** Sends a request and returns the response, or throws an ApiError. */
export async function request(method: string, path: string, o: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: 'application/json', ...o.headers }
  if (o.body !== undefined) headers['Content-Type'] ??= 'application/json'
  let answer: Response
  try {
    answer = await fetch(apiURL(path, o.query), {
      method, headers, credentials: 'same-origin', cache: 'no-store',
      body: o.body === undefined ? undefined : JSON.stringify(o.body),
      signal: o.signal,
    })
  } catch (e) {
    if (o.signal?.aborted) throw e
    throw new ApiError(0, 'OFFLINE', noAnswer)
  }
  if (answer.ok) return answer
  const wrong = await explain(answer)
  if (answer.status === 401 && path !== 'session') onSignedOut()
  throw wrong
}

/** Sends a request and returns the JSON of the response. */
export async function call<T>(method: string, path: string, o: Options = {}): Promise<T> {
  const answer = await request(method, path, o)
  return (answer.status === 204 ? undefined : await answer.json()) as T
}

export const get = <T>(path: string, query: Query = {}, signal?: AbortSignal) => call<T>('GET', path, { query, signal })

/** Converts an error response to an ApiError. */
async function explain(answer: Response): Promise<ApiError> {
  const retryAfter = Number(answer.headers.get('Retry-After')) || 0
  try {
    const body = await answer.json()
    if (Array.isArray(body.detail)) return new ApiError(answer.status, 'INVALID', sentence(body.detail), body.detail)
    if (body.error) return new ApiError(answer.status, body.error.code, body.error.message, [], retryAfter)
  } catch {
    // The response is not from the service but, for example, from a proxy.
  }
  return new ApiError(answer.status, 'UNKNOWN', `The server returned ${answer.status} ${answer.statusText}`.trim() + '.', [], retryAfter)
}

/** The validation errors of a request in one line. */
export function sentence(fields: FieldError[]): string {
  const first = fields[0]
  if (!first) return 'The request was rejected.'
  const more = fields.length > 1 ? ` (and ${fields.length - 1} more)` : ''
  const where = first.loc.filter((part, i) => !(i === 0 && typeof part === 'string')).join('.')
  return (where ? `${where}: ` : '') + first.msg + more
}

/** The message of an error, for users. */
export function reason(e: unknown): string {
  return e instanceof Error ? e.message : String(e)
}

/** Whether this page aborted the request. */
export const aborted = (e: unknown) => e instanceof DOMException && e.name === 'AbortError'
