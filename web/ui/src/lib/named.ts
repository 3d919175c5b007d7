// Names of the files that a page offers: after what the page is about, and what they show.
import { onMount } from 'svelte'
import { fileName } from './csv'

const subjects: (() => string)[] = [] // of the page, which is the only one

/** Says, while a page is made, what it is about, such as the name of a job. */
export function about(subject: () => string) {
  onMount(() => {
    subjects.push(subject)
    return () => void subjects.splice(subjects.indexOf(subject), 1)
  })
}

/** A name for the file of something with a title. */
export const fileOf = (title: string, ending: string) => fileName(joined(subjects.at(-1)?.(), title, '-'), ending)

/** The title of something on its own, as in a picture. */
export const titleOf = (title: string) => joined(subjects.at(-1)?.(), title, ': ')

/** A title that names the subject already stays as it is. */
export const joined = (subject: string | undefined, title: string, between: string) => (subject && !` ${title} `.includes(` ${subject} `) ? subject + between + title : title)
