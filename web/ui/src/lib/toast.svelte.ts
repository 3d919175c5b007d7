// Short messages about completed actions and errors.

export interface Message { id: number; text: string; error: boolean }

const shownFor = 8_000 // milliseconds

class Messages {
  list = $state.raw<Message[]>([])
  private last = 0

  say(text: string, error = false) {
    const message = { id: ++this.last, text, error }
    this.list = [...this.list.slice(-2), message]
    if (!error) setTimeout(() => this.drop(message.id), shownFor)
  }

  drop(id: number) {
    this.list = this.list.filter((m) => m.id !== id)
  }
}

export const messages = new Messages()
