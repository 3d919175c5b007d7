// Views of files while their job runs: a file can be empty, incomplete or replaced.
import { ApiError } from './api'

/** The file does not exist, or can't be parsed. */
export class BadFile extends Error {}

/** Whether a view fails only because its file is not written yet. */
export const notWritten = (running: boolean, e: unknown) => running && (e instanceof BadFile || (e instanceof ApiError && e.status === 404))

/** A file as it was when a view read it. */
export interface Reading { path: string; size: number; running: boolean; failed: boolean }

/** Whether a view must reload its file: the job has finished since, or the file could not be shown and has changed. */
export const outdated = (read: Reading, now: Pick<Reading, 'size' | 'running'>) => read.running && (!now.running || (read.failed && read.size !== now.size))
