// Names of the files that a page offers: after what the page is about, and what they show.
import { onMount } from 'svelte'
import { fileName } from './csv'

interface Subject { name: () => string; program: () => string }
const subjects: Subject[] = [] // of the page, which is the only one

/** Says, while a page is made, what it is about: the name of a job, and the program that ran. */
export function about(name: () => string, program = () => '') {
  onMount(() => {
    const subject = { name, program }
    subjects.push(subject)
    return () => void subjects.splice(subjects.indexOf(subject), 1)
  })
}

/** A name for the file of something with a title. */
export const fileOf = (title: string, ending: string) => fileName(joined(subjects.at(-1)?.name(), title, '-'), ending)

/** What stands below a figure: its title, notes in whole sentences, and whose result it is. */
export function captionOf(title: string, notes: readonly string[] = []): string {
  const of = subjects.at(-1)
  const [name, program] = [of?.name() ?? '', of?.program() ?? '']
  return [`${title}.`, ...notes, name && `${name}${program && `, ${program}`}.`].filter(Boolean).join(' ')
}

/** A title that names the subject already stays as it is. */
export const joined = (subject: string | undefined, title: string, between: string) => (subject && !` ${title} `.includes(` ${subject} `) ? subject + between + title : title)
