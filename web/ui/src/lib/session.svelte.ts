// The session of the signed-in user.
import { ApiError, call, whenSignedOut, type Schemas } from './api'

export type Session = Schemas['Session']

class Current {
  /** undefined until the server has responded; null if signed out. */
  user = $state.raw<Session | null | undefined>(undefined)
  problem = $state.raw('')
  /** Whether the session ended while in use. */
  ended = false

  constructor() {
    whenSignedOut(() => {
      this.user = null
      this.ended = true
    })
  }

  /** Asks the server who is signed in. */
  async ask() {
    try {
      this.user = await call<Session>('GET', 'session')
      this.problem = ''
    } catch (e) {
      if (e instanceof ApiError && e.status === 401) {
        this.user = null
        this.problem = ''
      } else this.problem = e instanceof Error ? e.message : String(e)
    }
  }

  /** Signs in with an API key or the token of a link. */
  async signIn(by: { key: string } | { token: string }) {
    this.user = await call<Session>('POST', 'session', { body: by })
  }

  async signOut() {
    await call('DELETE', 'session')
    this.user = null
  }

  /** Whether the user has a right: read, submit or admin. */
  may(right: 'read' | 'submit' | 'admin'): boolean {
    return this.user?.rights.includes(right) ?? false
  }
}

export const session = new Current()
