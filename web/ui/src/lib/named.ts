// Names of downloaded files, made from the subject of the page and the content.
import { onMount } from 'svelte'
import { fileName } from './csv'

interface Subject { name: () => string; program: () => string }
const subjects: Subject[] = [] // of the current page

/** Declares the subject of a page during its setup: the name of a job, and the program that ran. */
export function about(name: () => string, program = () => '') {
  onMount(() => {
    const subject = { name, program }
    subjects.push(subject)
    return () => void subjects.splice(subjects.indexOf(subject), 1)
  })
}

/** The file name for content with this title. */
export const fileOf = (title: string, ending: string) => fileName(joined(subjects.at(-1)?.name(), title, '-'), ending)

/** The caption of a figure: its title, notes in whole sentences, and the job and program. */
export function captionOf(title: string, notes: readonly string[] = []): string {
  const of = subjects.at(-1)
  const [name, program] = [of?.name() ?? '', of?.program() ?? '']
  return [`${title}.`, ...notes, name && `${name}${program && `, ${program}`}.`].filter(Boolean).join(' ')
}

/** Joins subject and title; a title that already contains the subject is unchanged. */
export const joined = (subject: string | undefined, title: string, between: string) => (subject && !` ${title} `.includes(` ${subject} `) ? subject + between + title : title)
