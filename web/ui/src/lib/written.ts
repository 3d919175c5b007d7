// Views of files while their job runs: a file may be empty, half written or replaced.
import { ApiError } from './api'

/** There is no such file, or it can't be read as what it should be. */
export class BadFile extends Error {}

/** Whether a view fails only because its file is not written yet. */
export const notWritten = (running: boolean, e: unknown) => running && (e instanceof BadFile || (e instanceof ApiError && e.status === 404))

/** A file as it was when a view read it. */
export interface Reading { path: string; size: number; running: boolean; failed: boolean }

/** Whether a view has to read its file again: the job has ended since, or the file could not be shown and has changed. */
export const outdated = (read: Reading, now: Pick<Reading, 'size' | 'running'>) => read.running && (!now.running || (read.failed && read.size !== now.size))
